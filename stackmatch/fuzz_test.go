package stackmatch_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"github.com/leakguard/leakguard/stackmatch"
)

// seed adds all fixtures whose name has one of the parts, cut to a size that fuzzing likes.
func seed(f *testing.F, convert func([]byte) []byte, parts ...string) {
	f.Helper()
	add := func(name string, data []byte) {
		for _, part := range parts {
			if strings.Contains(name, part) {
				f.Add(convert(data[:min(len(data), 2<<10)]))
				return
			}
		}
	}
	for _, name := range fixtures(f) {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		add(name, data)
	}
	for name, data := range corpusFiles(f) {
		add(name, data)
	}
}

func same(data []byte) []byte { return data }

// plainHeader is a line that any reader must take for the beginning of a goroutine.
var plainHeader = regexp.MustCompile(`(?m)^goroutine [1-9][0-9]{0,5} \[[a-zA-Z .]+(, [0-9]{1,5} minutes)?\]:\r?$`)

func FuzzText(f *testing.F) {
	seed(f, same, "debug2", "crash", "ancestors", "sigquit", "testtimeout", "forms/", ".log")
	f.Fuzz(func(t *testing.T, data []byte) {
		dumps := check(t, data)
		total := 0
		for _, d := range dumps {
			total += d.Total
		}
		if want := len(plainHeader.FindAll(data, -1)); total < want && !bytes.Contains(data, []byte("profile: total")) {
			t.Errorf("%d goroutines, want at least the %d with a plain header", total, want)
		}
	})
}

func FuzzCounts(f *testing.F) {
	seed(f, same, "debug1")
	f.Fuzz(func(t *testing.T, data []byte) { check(t, data) })
}

func FuzzCarrier(f *testing.F) {
	f.Add([]byte(carried))
	seed(f, func(data []byte) []byte { return []byte(`{"stacks":` + quoted(f, string(data)) + "}\n") }, "go1.27/debug2", "go1.27/debug1", "forms/")
	seed(f, func(data []byte) []byte {
		return []byte(eachLine(string(data), func(_ int, l string) string { return "2026-01-02T03:04:05Z stderr F " + l }))
	}, "go1.27/debug2", "forms/")
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, data)
		check(t, []byte(`{"log":`+quoted(t, string(data))+"}\n"))
	})
}

// check reads data in every way and compares.
func check(t *testing.T, data []byte) []*stackmatch.Dump {
	t.Helper()
	dumps, err := stackmatch.ReadAll(bytes.NewReader(data), stackmatch.ReadOptions{})
	if (err == nil) != (len(dumps) > 0) {
		t.Fatalf("%d dumps with error %v", len(dumps), err)
	}
	lines := 1 + bytes.Count(data, []byte("\n"))
	for _, d := range dumps {
		checkDump(t, d, lines)
	}
	whole, err := stackmatch.ReadBytes(data, stackmatch.ReadOptions{})
	if err == nil {
		checkSame(t, "from memory", largest(dumps), whole)
	}
	slow, err := stackmatch.ReadAll(iotest.OneByteReader(bytes.NewReader(data)), stackmatch.ReadOptions{})
	if (err == nil) != (len(slow) > 0) || len(slow) != len(dumps) {
		t.Fatalf("%d dumps byte by byte, want %d", len(slow), len(dumps))
	}
	few, err := stackmatch.ReadAll(bytes.NewReader(data), stackmatch.ReadOptions{GroupsOnly: true})
	if (err == nil) != (len(few) > 0) || len(few) != len(dumps) {
		t.Fatalf("%d dumps with groups only, want %d", len(few), len(dumps))
	}
	for i := range dumps {
		checkSame(t, "byte by byte", dumps[i], slow[i])
		checkGroupsOnly(t, dumps[i], few[i])
	}
	return dumps
}

func largest(dumps []*stackmatch.Dump) (most *stackmatch.Dump) {
	for _, d := range dumps {
		if most == nil || d.Total > most.Total {
			most = d
		}
	}
	return most
}

func checkSame(t *testing.T, how string, want, got *stackmatch.Dump) {
	t.Helper()
	if diff := cmp.Diff(dumpText(want), dumpText(got)); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", how, diff)
	}
}

// checkDump checks what holds for every dump.
func checkDump(t *testing.T, d *stackmatch.Dump, lines int) {
	t.Helper()
	if d.Line < 0 || d.Line > lines {
		t.Errorf("dump at line %d of %d", d.Line, lines)
	}
	for _, e := range d.Errors {
		if e.Line < 0 || e.Line > lines || e.Message == "" {
			t.Errorf("error %+v in %d lines", e, lines)
		}
	}
	if len(d.Errors) > d.ErrorCount || len(d.Errors) > 100 {
		t.Errorf("%d errors, counted %d", len(d.Errors), d.ErrorCount)
	}
	groups := d.GroupBy("example.com/dumper")
	sum := 0
	member := make([]bool, len(d.Goroutines))
	for i, g := range groups {
		sum += g.Count
		if g.Count < 0 || i > 0 && g.Count > groups[i-1].Count {
			t.Errorf("group %d has %d goroutines", i, g.Count)
		}
		if g.Median > g.Oldest || g.Leaked > g.Count {
			t.Errorf("group %+v", g)
		}
		for _, m := range g.Members {
			if member[m] || !cmp.Equal(d.Goroutines[m].Stack, g.Stack) || !cmp.Equal(d.Goroutines[m].Labels, g.Labels) {
				t.Errorf("goroutine %d is in the wrong group", m)
			}
			member[m] = true
		}
	}
	if sum != d.Total {
		t.Errorf("groups have %d goroutines, the dump %d", sum, d.Total)
	}
	if d.Format == stackmatch.FormatText && len(d.Goroutines) != d.Total {
		t.Errorf("%d goroutines, total %d", len(d.Goroutines), d.Total)
	}
	inFamilies := map[int]bool{}
	for _, family := range stackmatch.Families(groups) {
		for _, i := range family.Groups {
			if inFamilies[i] {
				t.Errorf("group %d is in two families", i)
			}
			inFamilies[i] = true
		}
	}
}

func checkGroupsOnly(t *testing.T, d, few *stackmatch.Dump) {
	t.Helper()
	if few.Goroutines != nil {
		t.Error("goroutines with groups only")
	}
	want, got := d.GroupBy(""), few.GroupBy("")
	for i := range want {
		want[i].Members = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("groups only (-want +got):\n%s", diff)
	}
}

func FuzzProfile(f *testing.F) {
	for _, name := range fixtures(f) {
		if !strings.HasSuffix(name, ".gz") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(unzip(f, data))
	}
	f.Add([]byte{0x5a, 0x04, 0x08, 0x01, 0x10, 0x02})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := stackmatch.ProfileReader{MaxProfile: 1 << 20}
		groups, err := p.Read(nil, data)
		again, errAgain := p.Read(nil, data)
		if (err == nil) != (errAgain == nil) || !cmp.Equal(groups, again) {
			t.Fatalf("second reading: %v, want %v", errAgain, err)
		}
		if d, errRead := stackmatch.Read(bytes.NewReader(data), stackmatch.ReadOptions{MaxProfile: 1 << 20}); errRead == nil {
			checkDump(t, d, 1+bytes.Count(data, []byte("\n")))
		}
		if err != nil {
			return
		}
		comparePprof(t, data, groups)
	})
}

// comparePprof compares the sum of all groups with what the reader of google/pprof finds.
func comparePprof(t *testing.T, data []byte, groups []stackmatch.Group) {
	t.Helper()
	if len(data) > 2 && data[0] == 0x1f {
		r, err := newGzip(data)
		if err != nil {
			return
		}
		if data, err = io.ReadAll(io.LimitReader(r, 1<<20)); err != nil {
			return
		}
	}
	prof, err := profile.ParseUncompressed(data)
	if err != nil {
		return // it is stricter, for example about strings
	}
	want, got := int64(0), int64(0)
	for _, s := range prof.Sample {
		if len(s.Value) == 0 || s.Value[0] < 0 || s.Value[0] > 1<<40 || len(s.Location) > 1024 {
			return
		}
		want += s.Value[0]
	}
	for _, g := range groups {
		got += int64(g.Count)
	}
	if got != want {
		t.Errorf("%d goroutines, want %d", got, want)
	}
}

func TestProfileErrors(t *testing.T) {
	data := capture(t)
	plain := unzip(t, data)
	heap := plain
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"cut off", plain[:len(plain)/2], stackmatch.ErrDamaged},
		{"not a goroutine profile", bytes.ReplaceAll(heap, []byte("goroutine"), []byte("allocated")), stackmatch.ErrOtherProfile},
		{"empty", nil, stackmatch.ErrOtherProfile},
		{"cut off gzip", data[:len(data)/2], io.ErrUnexpectedEOF},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var p stackmatch.ProfileReader
			if groups, err := p.Read(nil, test.data); !errors.Is(err, test.want) || len(groups) > 0 {
				t.Errorf("%d groups, error %v, want %v", len(groups), err, test.want)
			}
		})
	}
	p := stackmatch.ProfileReader{MaxProfile: 100}
	if _, err := p.Read(nil, data); !errors.Is(err, stackmatch.ErrTooLarge) {
		t.Errorf("error %v, want %v", err, stackmatch.ErrTooLarge)
	}
	for _, input := range [][]byte{data, plain} {
		if _, err := stackmatch.Read(bytes.NewReader(input), stackmatch.ReadOptions{MaxProfile: 100}); !errors.Is(err, stackmatch.ErrTooLarge) {
			t.Errorf("error %v, want %v", err, stackmatch.ErrTooLarge)
		}
	}
}

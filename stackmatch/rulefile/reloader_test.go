package rulefile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leakguard/leakguard/stackmatch"
	"github.com/leakguard/leakguard/stackmatch/rulefile"
)

// The interfaces of package leakguard and of controller-runtime's managers, written out: importing those makes fuzzing
// build most of Kubernetes.
var _ interface {
	Match(group *stackmatch.Group, in *stackmatch.Context) (rule *stackmatch.Rule, ok bool)
	Start(ctx context.Context) error
	NeedLeaderElection() bool
} = (*rulefile.Reloader)(nil)

// patience is how long a test waits for what must come; only a failing test waits so long.
const patience = 20 * time.Second

// titled is a right file with one rule, named by its title, and a version.
func titled(title string) string {
	return fmt.Sprintf(`schema: 1
version: %q
owner: team
rules:
  - {id: APP-1, title: %q, severity: info, categories: [c], doc: d, advice: a, verdict: suspect, match: {waitReasons: [chan receive]}}
`, title, title)
}

const wrongFile = "schema: 1\nrules: [{id: APP-1}]\n"

// mount is a folder that changes as the kubelet changes a mounted ConfigMap.
type mount struct {
	t      *testing.T
	folder string
	n      int
}

func newMount(t *testing.T, text string) *mount {
	t.Helper()
	m := &mount{t: t, folder: t.TempDir()}
	m.write(text)
	if err := os.Symlink(filepath.Join("..data", "rules.yaml"), m.path()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *mount) path() string { return filepath.Join(m.folder, "rules.yaml") }

// write makes a new folder and renames a new link over ..data; the old folder goes.
func (m *mount) write(text string) {
	m.t.Helper()
	m.n++
	data := filepath.Join(m.folder, "..data")
	old, _ := os.Readlink(data) // there is none at first
	name := fmt.Sprintf("..2026_11_30_12_00_00.%09d", m.n)
	steps := []error{
		os.Mkdir(filepath.Join(m.folder, name), 0o750),
		os.WriteFile(filepath.Join(m.folder, name, "rules.yaml"), []byte(text), 0o600),
		os.Symlink(name, filepath.Join(m.folder, "..data_tmp")),
		os.Rename(filepath.Join(m.folder, "..data_tmp"), data),
	}
	if old != "" {
		steps = append(steps, os.RemoveAll(filepath.Join(m.folder, old)))
	}
	if err := errors.Join(steps...); err != nil {
		m.t.Fatal(err)
	}
}

// started is a reloader that runs until the test ends, with the records it makes.
type started struct {
	*rulefile.Reloader

	t       *testing.T
	records chan rulefile.Record
}

func start(t *testing.T, o rulefile.ReloaderOptions) *started {
	t.Helper()
	s := &started{t: t, records: make(chan rulefile.Record, 100)}
	o.Audit = func(r rulefile.Record) { s.records <- r }
	var err error
	if s.Reloader, err = rulefile.NewReloader(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Start: %v", err)
			}
		case <-time.After(patience):
			t.Error("Start does not return")
		}
	})
	return s
}

// next waits for a record.
func (s *started) next(outcome string) rulefile.Record {
	s.t.Helper()
	select {
	case r := <-s.records:
		if r.Outcome != outcome {
			s.t.Fatalf("got the record %+v, want the outcome %s", r, outcome)
		}
		return r
	case <-time.After(patience):
		s.t.Fatalf("no record, want the outcome %s", outcome)
	}
	return rulefile.Record{}
}

// title gives the title of the rule that matches worker.
func title(r *rulefile.Reloader) string {
	rule, ok := r.Match(worker(), nil)
	if !ok {
		return ""
	}
	return rule.Title
}

// TestConfigMap follows a mounted ConfigMap through a new version, a wrong one and a right one again, by events alone.
func TestConfigMap(t *testing.T) {
	m := newMount(t, titled("one"))
	s := start(t, rulefile.ReloaderOptions{Path: m.path(), Poll: -1, Debounce: time.Millisecond})
	first := s.next(rulefile.OutcomeAccepted)
	if first.Trigger != "start" || title(s.Reloader) != "one" {
		t.Errorf("got the trigger %q and the rule %q, want start and one", first.Trigger, title(s.Reloader))
	}
	m.write(titled("two"))
	second := s.next(rulefile.OutcomeAccepted)
	want := rulefile.Record{
		Trigger: "event", Outcome: "accepted", File: m.path(), Version: "two", Owner: "team",
		SHA256: second.SHA256, InForce: second.SHA256, Rules: len(stackmatch.Builtin()) + 1,
	}
	if diff := cmp.Diff(second, want, cmpopts.IgnoreFields(rulefile.Record{}, "Time")); diff != "" {
		t.Errorf("the record (-got +want):\n%s", diff)
	}
	if len(second.SHA256) != 64 || second.SHA256 == first.SHA256 || second.Time.Before(first.Time) {
		t.Errorf("got the hashes %q and %q", first.SHA256, second.SHA256)
	}
	m.write(wrongFile)
	refused := s.next(rulefile.OutcomeRejected)
	if title(s.Reloader) != "two" || refused.InForce != second.SHA256 || refused.SHA256 == second.SHA256 {
		t.Errorf("a wrong file: the rule is %q, the record %+v", title(s.Reloader), refused)
	}
	if want := "rulefile: " + m.path() + ":2: rule APP-1: title: is empty"; !strings.HasPrefix(refused.Error, want) {
		t.Errorf("got the error %q, want %q", refused.Error, want)
	}
	if got := s.Status(); !got.Stale || got.Problem != refused.Error || got.Version != "two" {
		t.Errorf("got the status %+v, want stale with version two", got)
	}
	m.write(titled("two"))
	s.next(rulefile.OutcomeAccepted)
	if got := s.Status(); got.Stale || got.Problem != "" {
		t.Errorf("got the status %+v, want that it is not stale", got)
	}
	stats := s.Stats()
	if stats.Reloads != 3 || stats.Rejections != 1 || stats.Events == 0 || stats.WatchErrors != 0 {
		t.Errorf("got %+v, want 3 reloads and 1 rejection", stats)
	}
	if got := len(s.Records()); got != 4 {
		t.Errorf("there are %d records, want 4", got)
	}
}

// TestPoll checks that changes are seen without events, and that the same content makes one record.
func TestPoll(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "none", "rules.yaml")
	s := start(t, rulefile.ReloaderOptions{Path: path, Poll: 2 * time.Millisecond, Debounce: time.Hour})
	if r := s.next(rulefile.OutcomeRejected); !strings.Contains(r.Error, "no such file") || r.SHA256 != "" || r.InForce != "" {
		t.Errorf("a missing file: got %+v", r)
	}
	if _, ok := s.RuleSet().Rule("GOR-501"); !ok {
		t.Error("the built-in rules are not in force")
	}
	for checks := s.Stats().Checks; s.Stats().Checks < checks+5; {
		select {
		case r := <-s.records:
			t.Fatalf("the same error makes another record: %+v", r)
		case <-time.After(time.Millisecond):
		}
	}
	if err := os.Mkdir(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	place(t, path, titled("one"))
	if r := s.next(rulefile.OutcomeAccepted); r.Trigger != "poll" || title(s.Reloader) != "one" {
		t.Errorf("got the trigger %q and the rule %q, want poll and one", r.Trigger, title(s.Reloader))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.next(rulefile.OutcomeRejected)
	if title(s.Reloader) != "one" {
		t.Errorf("after deletion the rule is %q, want one", title(s.Reloader))
	}
	place(t, path, titled("two"))
	s.next(rulefile.OutcomeAccepted)
	if title(s.Reloader) != "two" {
		t.Errorf("the rule is %q, want two", title(s.Reloader))
	}
}

// place puts a file in its place at once, as editors do.
func place(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+"~", []byte(text), 0o600), os.Rename(path+"~", path)); err != nil {
		t.Fatal(err)
	}
}

// TestFolderComesBack checks that a folder that was removed is watched again.
func TestFolderComesBack(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "rules")
	path := filepath.Join(folder, "rules.yaml")
	if err := os.Mkdir(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	place(t, path, titled("one"))
	s := start(t, rulefile.ReloaderOptions{Path: path, Poll: 2 * time.Millisecond, Debounce: -1})
	s.next(rulefile.OutcomeAccepted)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	s.next(rulefile.OutcomeRejected)
	if err := os.Mkdir(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	place(t, path, titled("two"))
	s.next(rulefile.OutcomeAccepted)
	events := s.Stats().Events
	for i := 0; s.Stats().Events == events; i++ {
		place(t, path, titled(strconv.Itoa(i)))
		s.next(rulefile.OutcomeAccepted)
	}
}

// TestReload checks what a caller is told.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	r, err := rulefile.NewReloader(rulefile.ReloaderOptions{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if r.File() != nil || !r.Status().Since.IsZero() || r.Status().Rules != len(stackmatch.Builtin()) {
		t.Errorf("before the file was read: %+v", r.Status())
	}
	for range 2 {
		if err := r.Reload(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a missing file: got %v, want os.ErrNotExist", err)
		}
	}
	place(t, path, wrongFile)
	for range 2 {
		if err := r.Reload(); len(rulefile.Problems(err)) != 7 {
			t.Errorf("a wrong file: got %v, want 7 problems", err)
		}
	}
	place(t, path, titled("one"))
	for range 2 {
		if err := r.Reload(); err != nil {
			t.Error(err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(); !errors.Is(err, rulefile.ErrInvalid) {
		t.Errorf("a folder in its place: got %v, want ErrInvalid", err)
	}
	want := rulefile.Stats{Reloads: 1, Rejections: 3, Checks: 7}
	if diff := cmp.Diff(r.Stats(), want); diff != "" {
		t.Errorf("the counters (-got +want):\n%s", diff)
	}
	if title(r) != "one" {
		t.Errorf("the rule is %q, want one", title(r))
	}
}

// TestUnreadable checks a file that may not be read. Root may read everything, so a link that points to itself stands
// for it: it is there and cannot be opened either.
func TestUnreadable(t *testing.T) {
	m := newMount(t, titled("one"))
	r, err := rulefile.NewReloader(rulefile.ReloaderOptions{Path: m.path()})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(m.folder, "..data", "rules.yaml")
	if err := os.Chmod(target, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Remove(target), os.Symlink("rules.yaml", target)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Reload(); err == nil {
		t.Error("a file that cannot be opened gives no error")
	}
	if title(r) != "one" || !r.Status().Stale {
		t.Errorf("the rule is %q, the status %+v", title(r), r.Status())
	}
}

func TestReloaderMisuse(t *testing.T) {
	if _, err := rulefile.NewReloader(rulefile.ReloaderOptions{}); !errors.Is(err, rulefile.ErrOptions) {
		t.Errorf("no path: got %v, want ErrOptions", err)
	}
	s := start(t, rulefile.ReloaderOptions{Path: newMount(t, titled("one")).path()})
	s.next(rulefile.OutcomeAccepted)
	if err := s.Start(t.Context()); !errors.Is(err, rulefile.ErrRunning) {
		t.Errorf("a second Start: got %v, want ErrRunning", err)
	}
	if s.NeedLeaderElection() {
		t.Error("the reloader waits to be leader")
	}
}

// TestExpiryIsRecorded checks that a suppression that expires while the file stays is told of once.
func TestExpiryIsRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	place(t, path, "schema: 1\nsuppressions:\n  - {rule: GOR-505, owner: team, reason: known, expires: 2000-01-02}\n")
	synctest.Test(t, func(t *testing.T) { // whose clock starts in 2000
		r, err := rulefile.NewReloader(rulefile.ReloaderOptions{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := r.Reload(); err != nil {
				t.Fatal(err)
			}
			if owner, reason, ok := r.Suppressed("GOR-505", "any", "f", ""); owner != "team" || reason != "known" || !ok {
				t.Errorf("before: got %q, %q, %v", owner, reason, ok)
			}
			<-time.After(12 * time.Hour)
		}
		<-time.After(24 * time.Hour)
		for range 2 {
			if err := r.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, ok := r.Suppressed("GOR-505", "any", "f", ""); ok {
			t.Error("the suppression still holds")
		}
		records := r.Records()
		if len(records) != 2 || records[1].Outcome != rulefile.OutcomeExpired || records[1].Expired != 1 ||
			records[1].Error != "rulefile: "+path+":3: suppression of GOR-505 by team expired on 2000-01-03: known" {
			t.Errorf("got %+v, want a second record of the expiry", records)
		}
		if got := r.Status(); got.Expired != 1 || got.Suppressions != 1 || got.Stale {
			t.Errorf("got the status %+v, want one expired", got)
		}
	})
}

// TestReloaderSlope checks that conditions on growth work with nothing but being asked, and that failures are counted.
func TestReloaderSlope(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	place(t, path, withCondition(`group.slopePerMinute > 5 || group.labels["none"] == ""`))
	synctest.Test(t, func(t *testing.T) {
		r, err := rulefile.NewReloader(rulefile.ReloaderOptions{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		g := worker()
		matched := 0
		for range 10 {
			if _, ok := r.Match(g, nil); ok {
				matched++
			}
			g.Count++
			<-time.After(10 * time.Second)
		}
		if matched != 7 {
			t.Errorf("%d samples matched, want 7: from the fourth on", matched)
		}
		if got := r.Stats().ConditionErrors; got != 3 {
			t.Errorf("%d conditions failed, want 3", got)
		}
		if got := r.Status().ConditionError; !strings.Contains(got, "APP-1") || !strings.Contains(got, "no such key") {
			t.Errorf("got the error %q", got)
		}
	})
}

// TestReloaderConcurrently reads and reloads at once.
func TestReloaderConcurrently(t *testing.T) {
	m := newMount(t, titled("0"))
	r, err := rulefile.NewReloader(rulefile.ReloaderOptions{Path: m.path()})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				if title(r) == "" {
					t.Error("no rules are in force")
				}
				_ = r.Reload() // the folder may just be changing
				_, _, _, _ = r.Stats(), r.Status(), r.Records(), r.File()
			}
		})
	}
	for i := range 20 {
		m.write(titled(strconv.Itoa(i)))
	}
	wg.Wait()
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if title(r) != "19" {
		t.Errorf("the rule is %q, want 19", title(r))
	}
	if got := len(r.Records()); got > 64 {
		t.Errorf("there are %d records, want at most 64", got)
	}
}

// TestDeletedWhileRead checks that a file that goes while it is looked at makes one record, whichever call of the system
// misses it first.
func TestDeletedWhileRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	r, err := rulefile.NewReloader(rulefile.ReloaderOptions{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 200
	for i := range rounds {
		place(t, path, titled(strconv.Itoa(i)))
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan error)
		go func() { gone <- os.Remove(path) }()
		for r.Reload() == nil {
		}
		if err := <-gone; err != nil {
			t.Fatal(err)
		}
		if err := r.Reload(); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("a deleted file: got %v, want os.ErrNotExist", err)
		}
	}
	if got := r.Stats().Rejections; got != rounds {
		t.Errorf("%d deletions made %d rejections", rounds, got)
	}
}

// Command replay runs leakguard's growth detector over recorded numbers: series as CSV or JSON, and heap profiles in
// time order.
//
//	go run github.com/leakguard/leakguard/memstats/cmd/replay [flags] FILE…
//
// A FILE is a series (CSV with a header line, or JSON with columns and rows; one column is named t, time, timestamp
// or ts), or a heap profile (binary, or the text of debug=1). Each may be compressed with gzip; "-" is the standard
// input. Several heap profiles are compared in time order: by the time that binary ones carry, by the MemStats that
// text ones end with, else as given.
//
// The output is the verdict over time as text, with -o svg a chart, with -o json one object:
//
//	{"verdict": "leak|suspect|benign",
//	 "series": [{"name", "shape", "per_hour", "since", "reason"}],
//	 "findings": [{"schema", "fingerprint", "rule", "category", "verdict", "culprit", "reason", …}]}
//
// since is a time, or null; a recording whose seconds begin at zero begins in 1970. With -limit there is
// "time_to_limit", in nanoseconds, too, when memory grows.
//
// The exit status is 0 when nothing is wrong, 1 when there are findings, 2 when the arguments or an input cannot be
// used.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/leakguard/leakguard/memstats"
)

// The exit statuses.
const (
	exitBenign = iota
	exitFindings
	exitUnusable
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// report is the JSON form of the output.
type report struct {
	Verdict     memstats.Outcome         `json:"verdict"`
	Series      []memstats.SeriesVerdict `json:"series"`
	Findings    []memstats.Finding       `json:"findings"`
	TimeToLimit *memstats.TimeToLimit    `json:"time_to_limit,omitempty"`

	recordings []recording
	heaps      []heapFile
}

// recording is one series file and what the replay said of it.
type recording struct {
	name   string
	table  *memstats.Table
	result memstats.ReplayResult
}

type heapFile struct {
	name string
	heap *memstats.Heap
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, files, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitBenign
	}
	if err == nil {
		var r report
		if r, err = analyse(o, files, stdin); err == nil {
			err = write(stdout, o, r)
		}
		if err == nil && (r.Verdict > memstats.Benign || len(r.Findings) > 0) {
			return exitFindings
		}
	}
	if err != nil {
		say(stderr, "replay: "+err.Error()+"\n")
		return exitUnusable
	}
	return exitBenign
}

// analyse reads all files and judges them.
func analyse(o options, files []string, stdin io.Reader) (report, error) {
	r := report{Series: []memstats.SeriesVerdict{}, Findings: []memstats.Finding{}}
	for _, name := range files {
		if err := r.read(name, o, stdin); err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, rec := range r.recordings {
		for _, s := range rec.result.Series {
			if len(r.recordings) > 1 {
				s.Name = rec.name + ": " + s.Name
			}
			r.Series = append(r.Series, s)
		}
		r.Findings = append(r.Findings, rec.result.Findings...)
		r.Verdict = max(r.Verdict, rec.result.Verdict)
		if r.TimeToLimit == nil {
			r.TimeToLimit = rec.result.TimeToLimit
		}
	}
	heaps := make([]*memstats.Heap, 0, len(r.heaps))
	for _, h := range r.heaps {
		heaps = append(heaps, h.heap)
	}
	memstats.SortHeaps(heaps)
	found := memstats.JudgeHeap(heaps, o.heap)
	r.Findings = append(r.Findings, found...)
	r.Verdict = max(r.Verdict, memstats.WorstOutcome(found))
	return r, nil
}

// read takes one file in.
func (r *report) read(name string, o options, stdin io.Reader) error {
	data, err := load(name, stdin)
	if err != nil {
		return err
	}
	if isHeap(data) {
		return r.readHeap(name, data)
	}
	t, err := memstats.ReadTable(data)
	if err != nil {
		return err
	}
	if len(t.Times) == 0 {
		return fmt.Errorf("%w: no rows", memstats.ErrTable)
	}
	if err = o.checkColumns(t); err != nil {
		return err
	}
	r.recordings = append(r.recordings, recording{name: name, table: t, result: memstats.Replay(t, o.replay)})
	return nil
}

func (r *report) readHeap(name string, data []byte) error {
	h, err := memstats.ReadHeap(data)
	if err != nil {
		return err
	}
	r.heaps = append(r.heaps, heapFile{name: name, heap: h})
	return nil
}

func write(w io.Writer, o options, r report) error {
	switch o.output {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	case "svg":
		return writeSVG(w, r)
	}
	return writeText(w, r)
}

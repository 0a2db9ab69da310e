package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/examples/traps"
)

// GOTOOLCHAIN=go1.27.3 go test ./examples/operator -run TestMeasureTraps -measure=all -timeout 30m runs every trap that
// alarms, alone, until its finding fires, and writes what it took and what other detectors say into
// examples/traps/results.json. Names with commas between them measure those anew.
var measure = flag.String("measure", "", "traps to measure, or all, for examples/traps/results.json")

const measuredScale = 0.05

var resultsFile = filepath.Join("..", "traps", "results.json")

// measurement is what results.json holds.
type measurement struct {
	Go    string       `json:"go"`
	Scale float64      `json:"scale"`
	Traps []trapResult `json:"traps"`
}

// What is measured is what the table of the traps shows. Without -measure it is two of them, and nothing is written.
func TestMeasureTraps(t *testing.T) {
	t.Parallel()
	const example = "select-forever,watch-unread"
	names := example
	if *measure != "" {
		names = *measure
	}
	got := measureTraps(t, names)
	for _, trap := range got.Traps {
		if trap.FiringSeconds == 0 || trap.Count == 0 || trap.Rule == "" || trap.Peers == nil {
			t.Errorf("%s: got %+v, want when it fired, what was counted, its rule and what the peers say", trap.Name, trap)
			continue
		}
		// Those leave goroutines behind, which goleak sees as long as they are new.
		if slices.Contains(strings.Split(example, ","), trap.Name) && trap.Peers.Goleak == 0 {
			t.Errorf("%s: goleak reports nothing", trap.Name)
		}
	}
	if *measure != "" && !t.Failed() {
		if err := got.write(); err != nil {
			t.Fatal(err)
		}
	}
}

// measureTraps runs the traps of these names that alarm.
func measureTraps(t *testing.T, names string) *measurement {
	t.Helper()
	var runs []string
	for _, trap := range traps.All() {
		if trap.Expect == traps.ExpectAlarm && (names == "all" || slices.Contains(strings.Split(names, ","), trap.Name)) {
			runs = append(runs, fmt.Sprintf("--peers --until-found --expect=finding --duration=180s --scale=%v --leak=%s", measuredScale, trap.Name))
		}
	}
	got := &measurement{Scale: measuredScale}
	for _, o := range runAll(t, runs...) {
		o.mustBeOK(t)
		var r result
		if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || len(r.Traps) != 1 {
			t.Fatalf("%s: got %v, %s\nwant a result of one trap", o.args, err, o.stdout)
		}
		got.Go = r.Go
		got.Traps = append(got.Traps, r.Traps[0])
	}
	return got
}

// write puts what was measured into results.json, in the order of the registry, beside what else is in there.
func (m *measurement) write() error {
	var old measurement
	if text, err := os.ReadFile(resultsFile); err == nil {
		if err = json.Unmarshal(text, &old); err != nil {
			return err
		}
	}
	known := slices.Concat(m.Traps, old.Traps) // the first of a name counts
	m.Traps = nil
	for _, trap := range traps.All() {
		if at := slices.IndexFunc(known, func(r trapResult) bool { return r.Name == trap.Name }); at >= 0 && trap.Expect == traps.ExpectAlarm {
			m.Traps = append(m.Traps, known[at])
		}
	}
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(resultsFile, append(text, '\n'), 0o644) //nolint:gosec // it is there to be read
}

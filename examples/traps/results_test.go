package traps_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leakguard/leakguard/examples/traps"
	"github.com/leakguard/leakguard/leakguard"
)

const resultsIntro = `
The columns from Found to goroutineleak are measured, each trap alone, with %[1]s and all intervals multiplied by %[2]v (a sample
every %[3]s instead of %[4]s): the rule that carried the finding and the seconds from the start until it fired; how often the
trap had leaked by then (- where it does not leak in reconciles) and what the finding counted; and how many goroutines of the leak
two other detectors see at that moment: goleak, as if a test ended there, and the goroutineleak profile of the runtime.
They are in results.json: ` + "`GOTOOLCHAIN=go1.27.3 go test ./examples/operator -run TestMeasureTraps -measure=all -timeout 30m`" + `
measures all anew, and with names instead of all only those.
`

// results is what results.json holds.
type results struct {
	Go    string           `json:"go"`
	Scale float64          `json:"scale"`
	Traps []measuredResult `json:"traps"`
}

type measuredResult struct {
	Name          string       `json:"name"`
	Got           traps.Expect `json:"got"`
	FiringSeconds float64      `json:"firing_seconds"`
	FiringSamples uint64       `json:"firing_samples"`
	Rule          string       `json:"rule"`
	Count         int64        `json:"count"`
	Rollouts      int64        `json:"rollouts"`
	Peers         struct {
		Goleak        int  `json:"goleak"`
		GoroutineLeak *int `json:"goroutineleak"`
	} `json:"peers"`
}

func readResults(t *testing.T) *results {
	t.Helper()
	text, err := os.ReadFile("results.json")
	if err != nil {
		t.Fatal(err)
	}
	r := &results{}
	if err = json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// intro says how the columns were measured.
func (r *results) intro() string {
	sample := time.Duration(r.Scale * float64(leakguard.DefaultInterval))
	return fmt.Sprintf(resultsIntro, r.Go, r.Scale, sample, leakguard.DefaultInterval)
}

// columns are the measured ones of a trap: found, leaks, counted, goleak, goroutineleak.
func (r *results) columns(t *traps.Trap) []string {
	at := slices.IndexFunc(r.Traps, func(m measuredResult) bool { return m.Name == t.Name })
	if at < 0 {
		return []string{"-", "-", "-", "-", "-"}
	}
	m := &r.Traps[at]
	leaks, counted, proved := "-", strconv.FormatInt(m.Count, 10), "-"
	if m.Rollouts > 0 {
		leaks = strconv.FormatInt(m.Rollouts, 10)
	}
	if t.Grows == traps.Heap {
		counted = fmt.Sprintf("%.1f MiB", float64(m.Count)/(1<<20))
	}
	if m.Peers.GoroutineLeak != nil {
		proved = strconv.Itoa(*m.Peers.GoroutineLeak)
	}
	left := strconv.Itoa(m.Peers.Goleak)
	if !strings.Contains(t.Culprit.Function, ".") && len(t.Also)+len(t.Parts) == 0 { // no function that a stack could have
		left, proved = "-", "-"
	}
	return []string{fmt.Sprintf("%s, %.0f s", m.Rule, m.FiringSeconds), leaks, counted, left, proved}
}

// Each trap that alarms was measured, and was found by a rule that it declares.
func TestResultsAreOfTheRegistry(t *testing.T) {
	t.Parallel()
	measured := map[string]measuredResult{}
	for _, m := range readResults(t).Traps {
		measured[m.Name] = m
		if _, err := traps.Find(m.Name); err != nil {
			t.Errorf("results.json: %v", err)
		}
	}
	for _, trap := range traps.All() {
		m, has := measured[trap.Name]
		switch alarm := trap.Expect == traps.ExpectAlarm && trap.Gap == ""; {
		case alarm && !has:
			t.Errorf("%s is not in results.json: -measure=%s measures it", trap.Name, trap.Name)
		case has && (m.Got != trap.Expect || m.FiringSeconds <= 0 || m.Count <= 0 || !slices.Contains(trap.Evidence(), m.Rule)):
			t.Errorf("%s: got %+v in results.json, want %s by rule %s", trap.Name, m, trap.Expect, strings.Join(trap.Evidence(), " or "))
		case has && (2*m.FiringSamples > trap.Deadline() || m.FiringSamples > 0 && 12*m.FiringSamples < trap.Deadline()):
			t.Errorf("%s: took %d samples by results.json, and its deadline is %d: it is to be two to twelve times as many", trap.Name, m.FiringSamples, trap.Deadline())
		}
	}
}

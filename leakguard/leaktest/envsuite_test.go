package leaktest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// leakRows are the leaks of the suite in testdata/envsuite, one test each, with what the report of that test must name.
func leakRows() map[string]string {
	const own = "testdata/envsuite."
	return map[string]string{
		"S1-02": own + "leaks.func1", "S1-03a": "watch.(*StreamWatcher).receive", "S1-03b": "watch.(*StreamWatcher).receive",
		"S1-03c": own + "leaks.func4", "S1-03d": "net/http.(*persistConn).readLoop", "S1-03e": "watch.(*StreamWatcher).receive",
		"S1-04": "cache.(*sharedProcessor).run", "S1-05": own + "leaks.func8", "S1-05b": "net/http.(*persistConn).readLoop",
		"S1-07": "goroutine [chan send", "S1-07g": own + "leaks.func11", "S1-10": "goroutine [select (no cases)", "S1-13": own + "leaks.func13",
		"S1-14b": own + "leaks.func14", "S1-14c": own + "leaks.func15", "S1-14e": own + "leaks.func16",
		"S2-01": "pod_cache: 3 pod cache, before the test 0", "S2-02": "9 × goroutine", "S2-07a": "informers: ", "S2-07c": own + "slowHandler",
		"S2-09": "cache.(*Reflector).Run", "S2-11h": own + "leaks.func19", "S2-13c": "http2.(*ClientConn).readLoop", "S2-16": "watch.(*StreamWatcher).receive",
		"X-1": "watch.(*Broadcaster).loop", "X-2": "waitingLoop", "X-5": "cache.(*multiNamespaceCache).Start",
	}
}

// TestEnvtestSuite runs the suite of an operator that starts and stops a manager in each test: without leaks it is quiet,
// and each leak is found in its own test.
func TestEnvtestSuite(t *testing.T) {
	binary := buildTests(t, "envsuite")
	out, code := runTests(t, binary, nil, "-test.run=^(TestQuiet.*|TestTwin)$", "-test.shuffle=on", "-test.v")
	if code != 0 {
		t.Errorf("the suite without leaks ends with %d:\n%s", code, out)
	}
	for row := range leakRows() {
		if !strings.Contains(out, "--- PASS: TestTwin/"+row) {
			t.Errorf("the suite has no twin of %s", row)
		}
	}
	out, _ = runTests(t, binary, nil, "-test.run=^TestLeak$", "-test.v")
	_, results, _ := strings.Cut(out, "--- FAIL: TestLeak ")
	for _, row := range slices.Sorted(maps.Keys(leakRows())) {
		if !strings.Contains(results, "--- FAIL: TestLeak/"+row+" ") {
			t.Errorf("the leak %s is not found in its test:\n%s", row, results)
			continue
		}
		_, section, _ := strings.Cut(out, "=== RUN   TestLeak/"+row+"\n")
		section, _, _ = strings.Cut(section, "=== RUN ")
		if !strings.Contains(section, leakRows()[row]) {
			t.Errorf("the report of %s does not name %q:\n%s", row, leakRows()[row], section)
		}
	}
	if strings.Contains(results, "--- PASS") || strings.Count(results, "--- FAIL: ") != len(leakRows()) {
		t.Errorf("other tests than those of the %d leaks ended:\n%s", len(leakRows()), results)
	}
}

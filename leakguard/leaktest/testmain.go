package leaktest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// TestingM is the part of [testing.M] that [VerifyTestMain] needs.
type TestingM interface {
	// Run runs the tests and gives the exit code.
	Run() int
}

// UnknownTest is the name for goroutines of which nothing tells the test that started them.
const UnknownTest = "unknown test"

// VerifyTestMain runs a package's tests and, when they pass, looks for goroutines that are still there after the last one:
//
//	func TestMain(m *testing.M) {
//		leaktest.VerifyTestMain(m)
//	}
//
// Each is reported under the name of the test that started it: the one whose label it carries, else the one whose function
// is on its stack or holds its go statement, else [UnknownTest]. Each test gets its label from VerifyTestMain, so that tests
// need not call [VerifyNone] for that; where the running version of package testing does not allow it, those without
// VerifyNone are told by their functions.
//
// It does not return: the process ends with the exit code of the tests, or with 1 when they passed and goroutines are left.
// With the option [Cleanup] the exit is left to its function. When tests fail nothing is checked, as with goleak: a test
// that was broken off leaves things behind.
func VerifyTestMain(m TestingM, opts ...Option) {
	c, err := newConfig(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // a test main ends the process
	}
	labelTests(m)
	code := m.Run()
	if code == 0 {
		code = verifyPackage(c)
	}
	if c.cleanup != nil {
		c.cleanup(code)
		return
	}
	os.Exit(code) //nolint:forbidigo // a test main ends the process
}

// verifyPackage gives the exit code of a package whose tests passed.
func verifyPackage(c *config) int {
	k := newChecker(c, scope{})
	k.everything = true
	leaks, waited, err := k.settled()
	if err != nil {
		fmt.Fprintf(os.Stderr, "leaktest: the package was not checked: %v\n", err)
		return 1
	}
	if len(leaks) == 0 {
		return 0
	}
	asked := k.prove(leaks)
	fmt.Fprintf(os.Stderr, "leaktest: %d goroutines are left after the tests, which passed, and had not ended after %s\n", len(leaks), waited.Round(time.Millisecond))
	names, byTest := groupByTest(leaks)
	for _, name := range names {
		fmt.Fprintf(os.Stderr, "\n%s left %d:\n%s", name, len(byTest[name]), describe(byTest[name], asked))
	}
	return 1
}

// groupByTest sorts leaks by the test that started them, in the order in which they are met.
func groupByTest(leaks []Leak) (names []string, byTest map[string][]Leak) {
	byTest = map[string][]Leak{}
	for i := range leaks {
		l := leaks[i]
		if l.Test == "" {
			l.Test = testOf(&l)
		}
		if len(byTest[l.Test]) == 0 {
			names = append(names, l.Test)
		}
		byTest[l.Test] = append(byTest[l.Test], l)
	}
	return names, byTest
}

// testOf names the test by the functions of a goroutine: its creator's, then those of its stack, outermost first.
func testOf(l *Leak) string {
	if name, ok := testFunction(l.CreatedBy); ok {
		return name
	}
	for _, f := range slices.Backward(l.Stack) {
		if name, ok := testFunction(f); ok {
			return name
		}
	}
	return UnknownTest
}

// testFunction gives the name of the test function that a frame is in: "TestQueue" for app_test.TestQueue.func1.
func testFunction(f frame.Frame) (name string, ok bool) {
	if !strings.HasSuffix(filepath.Base(f.File), "_test.go") {
		return "", false
	}
	name = frame.Split(f.Function).Name
	for _, prefix := range []string{"Test", "Fuzz", "Benchmark", "Example"} {
		rest, found := strings.CutPrefix(name, prefix)
		first, _ := utf8.DecodeRuneInString(rest)
		if found && (rest == "" || !unicode.IsLower(first)) {
			return name, name != "TestMain"
		}
	}
	return "", false
}

// labelTests has each test of a [testing.M] run under its label. The list of tests is not public; where it is not what is
// expected nothing is done, and VerifyTestMain tells tests by their functions.
func labelTests(m TestingM) {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return
	}
	field := v.Elem().FieldByName("tests")
	if !field.IsValid() || field.Type() != reflect.TypeFor[[]testing.InternalTest]() {
		return
	}
	tests := *(*[]testing.InternalTest)(unsafe.Pointer(field.UnsafeAddr()))
	for i := range tests {
		run := tests[i].F
		tests[i].F = func(t *testing.T) { //nolint:thelper // it is the test
			newScope(t.Name()).enter(context.Background())
			run(t)
		}
	}
}

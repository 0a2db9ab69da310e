package gomegaleak_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/leakguard/leakguard/leakguard/leaktest"
	"github.com/leakguard/leakguard/leakguard/leaktest/gomegaleak"
)

func park(started chan<- struct{}, stop <-chan struct{}) {
	close(started) // before that its stack does not name it
	<-stop
}

func TestHaveLeaked(t *testing.T) {
	g := gomega.NewWithT(t)
	good := gomegaleak.Goroutines()
	g.Expect(gomegaleak.Goroutines()).NotTo(gomegaleak.HaveLeaked(good))

	started, stop := make(chan struct{}), make(chan struct{})
	go park(started, stop)
	<-started
	g.Eventually(gomegaleak.Goroutines).Should(gomegaleak.HaveLeaked(good))
	now := gomegaleak.Goroutines()
	g.Expect(now).NotTo(gomegaleak.HaveLeaked(now))
	name := "github.com/leakguard/leakguard/leakguard/leaktest/gomegaleak_test.park"
	g.Expect(now).NotTo(gomegaleak.HaveLeaked(good, leaktest.IgnoreFunction(name, "the test's")))
	m := gomegaleak.HaveLeaked(good)
	if ok, err := m.Match(now); !ok || err != nil || !strings.Contains(m.NegatedFailureMessage(now), name) {
		t.Errorf("Match gives %v, %v and the message\n%s\nwant a leak of %s", ok, err, m.NegatedFailureMessage(now), name)
	}
	close(stop)
	g.Eventually(gomegaleak.Goroutines).WithTimeout(5 * time.Second).ShouldNot(gomegaleak.HaveLeaked(good))
}

func TestHaveLeakedMisuse(t *testing.T) {
	if _, err := gomegaleak.HaveLeaked(1).Match(gomegaleak.Goroutines()); err == nil {
		t.Error("an argument of the wrong type is taken")
	}
	if _, err := gomegaleak.HaveLeaked().Match(3); err == nil {
		t.Error("an actual value of the wrong type is taken")
	}
	if _, err := gomegaleak.HaveLeaked(leaktest.IgnoreRule("none", "because")).Match(gomegaleak.Goroutines()); !errors.Is(err, leaktest.ErrOption) {
		t.Errorf("a bad option gives %v, want ErrOption", err)
	}
}

var failedSpec = regexp.MustCompile(`(?m)^\s*\[FAIL\] (.+)$`)

// TestGinkgo runs a suite in one and in four parallel processes: the leaking specs fail, and only they.
func TestGinkgo(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "ginkgo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/onsi/ginkgo/v2/ginkgo").CombinedOutput(); err != nil {
		t.Fatalf("building ginkgo: %v\n%s", err, out)
	}
	for _, procs := range []string{"1", "4"} {
		for _, leak := range []string{"", "1"} {
			t.Run("procs "+procs+" leak "+leak, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), binary, "--procs="+procs, "--randomize-all", "--no-color", "./suite")
				cmd.Env = append(os.Environ(), "LEAK="+leak)
				out, err := cmd.CombinedOutput()
				failed := map[string]bool{}
				for _, m := range failedSpec.FindAllStringSubmatch(string(out), -1) {
					failed[m[1]] = true
				}
				want := 0
				if leak != "" {
					want = 2
				}
				if (err != nil) != (want > 0) || len(failed) != want {
					t.Fatalf("ginkgo ends with %v, failed specs %v, want %d\n%s", err, failed, want, out)
				}
				for name := range failed {
					if !strings.Contains(name, "leaks") {
						t.Errorf("%q is blamed", name)
					}
				}
			})
		}
	}
}

package stackmatch_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/leakguard/leakguard/stackmatch"
)

// renamedModules are the modules that only a rebuilt report has. Libraries that many programs use keep their names:
// rules may be about them.
var renamedModules = []string{
	"github.com/argoproj/argo-cd/v2", "github.com/argoproj/gitops-engine", "github.com/cilium/cilium", "github.com/gitpod-io/gitpod",
	"github.com/golang/glog", "github.com/hashicorp/golang-lru/v2", "github.com/hazelcast/hazelcast-go-client",
	"github.com/hazelcast/hazelcast-platform-operator", "github.com/ipfs/go-ipfs", "github.com/istio-ecosystem/admiral",
	"github.com/jbenet/goprocess", "github.com/prometheus-operator/prometheus-operator", "github.com/rancher/wrangler/v3",
	"example.com/widget-operator", "go.opencensus.io", "istio.io/istio", "k8s.io/kubernetes", "sigs.k8s.io/cluster-api",
}

// renamer gives modules, user functions and lines other names, always the same ones.
type renamer struct {
	functions *regexp.Regexp
	lines     *regexp.Regexp
}

func newRenamer() *renamer {
	var quoted []string
	for _, m := range renamedModules {
		quoted = append(quoted, regexp.QuoteMeta(m))
	}
	return &renamer{
		functions: regexp.MustCompile(`(` + strings.Join(quoted, "|") + `)((?:/[\w%@.-]+)*?)((?:\.(?:\(\*?\w+(?:\[\.\.\.\])?\)|[\w·]+(?:\[\.\.\.\])?(?:-fm)?))+)`),
		lines:     regexp.MustCompile(`(\.go|\.s):(\d+)`),
	}
}

// keptNames are the parts of a symbol that the compiler made, and file name endings.
var keptNames = regexp.MustCompile(`^(func[\d·]*|gowrap\d+|deferwrap\d+|\d+|init|main|go|fm|v\d+)$`)

// text renames in a dump.
func (r *renamer) text(in string) string {
	in = r.functions.ReplaceAllStringFunc(in, r.function)
	for _, m := range renamedModules { // in file paths
		in = strings.ReplaceAll(in, m, newModule(m))
	}
	return r.lines.ReplaceAllStringFunc(in, func(s string) string {
		head, digits, _ := strings.Cut(s, ":")
		n, err := strconv.Atoi(digits)
		if err != nil {
			return s
		}
		return head + ":" + strconv.Itoa(n+1000)
	})
}

// function renames one symbol of a module.
func (r *renamer) function(in string) string {
	m := r.functions.FindStringSubmatch(in)
	if strings.Contains(m[2], "/vendor/") || strings.Contains(m[2], "/_workspace/") {
		return strings.Replace(in, m[1], newModule(m[1]), 1) // somebody else's symbol
	}
	words := regexp.MustCompile(`[A-Za-z_]\w*(·\w+)?`)
	return newModule(m[1]) + m[2] + words.ReplaceAllStringFunc(m[3], func(word string) string {
		if keptNames.MatchString(word) {
			return word
		}
		return newWord(word)
	})
}

func newModule(old string) string {
	return "corp.example/" + newWord(old)
}

// newWord makes a word of a hash. The first letter keeps its case.
func newWord(old string) string {
	h := fnv.New32a()
	h.Write([]byte(old))
	first := "q"
	if old[0] >= 'A' && old[0] <= 'Z' {
		first = "Q"
	}
	return first + fmt.Sprintf("%07x", h.Sum32()&0xfffffff)
}

// testCorpusRenamed gives everything that is a report's own another name: verdicts and culprits must not depend on it.
func testCorpusRenamed(t *testing.T, command string) {
	t.Helper()
	r := newRenamer()
	for _, c := range corpusCases(t) {
		t.Run(c.name, func(t *testing.T) {
			var files []string
			changed := false
			for _, f := range c.files {
				old := string(gunzip(t, filepath.Join(corpusDir, f+".gz")))
				text := r.text(old)
				changed = changed || text != old
				name := filepath.Join(t.TempDir(), f)
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				files = append(files, name)
			}
			if !changed {
				t.Error("nothing was renamed")
			}
			got := resultOf(runCommand(t, command, c.objects, files...), c.want.Category)
			if got.verdict != c.want.Verdict {
				t.Errorf("verdict: got %s, want %s", got.verdict, c.want.Verdict)
			}
			if c.want.Verdict == stackmatch.VerdictBenign {
				return
			}
			want := c.want.Culprit
			if r.functions.MatchString(want) {
				want = r.function(want)
			}
			if c.want.ID != "C35" && got.culprit != want {
				t.Errorf("culprit: got %s, want %s", got.culprit, want)
			}
			if got.count != c.want.Leaked {
				t.Errorf("count: got %d, want %d", got.count, c.want.Leaked)
			}
		})
	}
}

// TestRulesNameNoReport keeps rules general: no pattern may name a module that only one report has.
func TestRulesNameNoReport(t *testing.T) {
	for _, rule := range stackmatch.Builtin() {
		rule.Sources = nil // they name the reports, of course
		data, err := json.Marshal(rule)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range renamedModules {
			if strings.Contains(string(data), m) {
				t.Errorf("%s names %s", rule.ID, m)
			}
		}
	}
}

package memstats

import (
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// Blame is the frame to look at, and how sure that is.
type Blame struct {
	// Frame is the frame; zero for an empty stack.
	Frame frame.Frame
	// Origin is whose code it is.
	Origin frame.Origin
	// Owner says whether Frame is code of the operator, or of a library that is not there to allocate for others. If
	// not, the code to fix is in no frame: the memory was allocated on behalf of somebody who is not on the stack.
	Owner bool
}

// BlameSite picks the frame to look at from an allocation stack, leaf first: the first frame of the main module; else
// the first one that is neither the standard library's, nor Kubernetes', nor of a library that allocates for its
// caller (metrics, decoders, loggers); else the first outside the standard library; else the leaf. The site that
// allocates is often not the owner: a decoded object is allocated by the decoder, whoever keeps it.
func BlameSite(stack []frame.Frame, main string) Blame {
	if f, origin, ok := frame.Culprit(stack, frame.Frame{}, main); ok && origin == frame.Main {
		return Blame{Frame: f, Origin: origin, Owner: true}
	}
	for _, f := range stack {
		if origin := frame.OriginOf(f.Function, main); origin == frame.Library && !allocatesForOthers(frame.Package(f.Function)) {
			return Blame{Frame: f, Origin: origin, Owner: true}
		}
	}
	for _, f := range stack {
		if origin := frame.OriginOf(f.Function, main); origin != frame.Standard {
			return Blame{Frame: f, Origin: origin}
		}
	}
	if len(stack) == 0 {
		return Blame{}
	}
	return Blame{Frame: stack[0]}
}

// allocatesForOthers knows the libraries whose allocations belong to their caller.
func allocatesForOthers(pkg string) bool {
	if i := strings.LastIndex(pkg, "/vendor/"); i >= 0 {
		pkg = pkg[i+len("/vendor/"):]
	}
	for _, module := range []string{
		"k8s.io/kubectl", "k8s.io/cli-runtime", "k8s.io/component-helpers", "k8s.io/metrics", "k8s.io/apiserver", "sigs.k8s.io/yaml", "sigs.k8s.io/kustomize",
		"github.com/prometheus", "github.com/google/gnostic", "github.com/google/gnostic-models", "github.com/google/cel-go", "github.com/google/uuid",
		"github.com/gogo/protobuf", "github.com/golang/protobuf", "github.com/json-iterator", "github.com/modern-go", "github.com/go-openapi",
		"github.com/go-logr", "github.com/sirupsen/logrus", "github.com/evanphx/json-patch", "github.com/hashicorp/golang-lru", "github.com/patrickmn/go-cache",
		"github.com/emicklei/go-restful", "github.com/fsnotify/fsnotify", "github.com/spf13", "github.com/mitchellh/mapstructure",
		"golang.org/x", "google.golang.org", "go.uber.org", "gopkg.in", "go.opentelemetry.io", "go.etcd.io",
	} {
		if rest, ok := strings.CutPrefix(pkg, module); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

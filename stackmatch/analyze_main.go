package stackmatch

import (
	"path"
	"strings"

	"github.com/leakguard/leakguard/stackmatch/frame"
)

// GuessMain guesses the path of the main module from a dump: the module whose source files lie neither in the module
// cache, nor below a vendor folder, nor in the standard library. It is "" when no frame tells, as in a dump of nothing
// but libraries.
func GuessMain(d *Dump) string {
	votes := make(map[string]int)
	for i := range d.groups {
		voteMain(&d.groups[i], votes)
	}
	if d.groups == nil {
		groups := d.GroupBy("")
		for i := range groups {
			voteMain(&groups[i], votes)
		}
	}
	best := ""
	for module, n := range votes {
		if n > votes[best] || n == votes[best] && module < best {
			best = module
		}
	}
	return best
}

// voteMain counts the modules that a group's frames speak for.
func voteMain(g *Group, votes map[string]int) {
	for _, f := range g.Stack {
		if module := ownModule(f); module != "" {
			votes[module]++
		}
	}
	if module := ownModule(g.CreatedBy); module != "" {
		votes[module]++
	}
}

// ownModule gives the module of a frame whose source is the program's own; "" for any other.
func ownModule(f frame.Frame) string {
	pkg := strings.TrimSuffix(frame.Package(f.Function), "_test")
	file := strings.ReplaceAll(f.File, `\`, "/")
	switch {
	case pkg == "" || pkg == "main" || file == "" || frame.IsStandard(pkg):
		return ""
	case strings.Contains(file, "/pkg/mod/"), strings.Contains(file, "@"), strings.Contains(file, "/vendor/"), strings.Contains(file, "/Godeps/"),
		strings.HasPrefix(file, "_"), strings.HasPrefix(file, "<"):
		return ""
	}
	return moduleOf(pkg, path.Dir(file))
}

// moduleOf cuts from an import path what the file's folder has as well, which leaves the module's path:
// "example.com/app/internal/run" in "/workspace/internal/run" gives "example.com/app". Where the folder has the whole import
// path, as in a GOPATH, the usual number of elements of the host is taken.
func moduleOf(pkg, dir string) string {
	elements := strings.Split(pkg, "/")
	folders := strings.Split(dir, "/")
	n := 0
	for n < len(elements) && n < len(folders) && elements[len(elements)-1-n] == folders[len(folders)-1-n] {
		n++
	}
	keep := len(elements) - n
	if least := hostElements(elements); keep < least {
		keep = least
	}
	return strings.Join(elements[:min(keep, len(elements))], "/")
}

// hostElements is how many elements the shortest module path of a host has.
func hostElements(elements []string) int {
	switch elements[0] {
	case "github.com", "gitlab.com", "bitbucket.org":
		if len(elements) > 3 && len(elements[3]) > 1 && elements[3][0] == 'v' && elements[3][1] >= '2' && elements[3][1] <= '9' {
			return 4
		}
		return 3
	}
	return 2
}

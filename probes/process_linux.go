package probes

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxLinks bounds the files whose kind is looked up in one Read; the others are counted without.
const maxLinks = 4096

// maxChildren bounds the child processes that are looked at in one Read.
const maxChildren = 4096

// zombiesLeaked is the least number of children that ended and were not waited for.
const zombiesLeaked = 3

// readProc counts files and children.
func (p *Process) readProc(dst []Reading) []Reading {
	dst = p.files(dst)
	return p.children(dst)
}

// files counts the open files by kind.
func (p *Process) files(dst []Reading) []Reading {
	dir := filepath.Join(p.proc, "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return dst
	}
	kinds := map[string]int{}
	for i, e := range entries {
		if i >= maxLinks {
			kinds["other"] += len(entries) - i
			break
		}
		link, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // the one that lists the folder, or one that was closed meanwhile
		}
		kinds[kindOfLink(link)]++
	}
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		n := kinds[kind]
		total += n
		r := Reading{Resource: "open files: " + kind, Count: float64(n), Covariate: -1, Advice: fileAdvice[kind]}
		if r.Climbing = p.climb.Observe(kind, n) >= Climbing; r.Climbing {
			r.Reason = fmt.Sprintf("%d of the process's %d open files are of the kind %q, and there are ever more of them", n, len(entries), kind)
		}
		dst = append(dst, r)
	}
	p.climb.EndRound()
	return append(dst, Reading{Resource: "open files", Count: float64(total), Covariate: -1, Advice: "look which kind of open files grows beside it, and close what opens those"})
}

// fileAdvice is what to do about files of a kind that are left open. It is never changed.
var fileAdvice = map[string]string{
	"socket":        "close the body of every response and every connection by defer; make one HTTP client for the process instead of one for each call",
	"pipe":          "call Wait after Start of every exec.Cmd, and close both ends of an os.Pipe",
	"file":          "close every os.File by defer, right after it was opened; in a loop, at the end of each turn",
	"kernel object": "close what holds it by defer: a watcher of files, an epoll or a timer of a library",
	"device":        "close every device by defer, right after it was opened",
	"other":         "close what /proc/self/fd shows to be open, where it was opened",
}

// kindOfLink tells the kind of a file by where /proc/self/fd links to: "socket:[4711]" is a socket.
func kindOfLink(link string) string {
	for _, kind := range [...]string{"socket", "pipe"} {
		if strings.HasPrefix(link, kind+":[") {
			return kind
		}
	}
	switch {
	case strings.HasPrefix(link, "anon_inode:"):
		return "kernel object"
	case strings.HasPrefix(link, "/dev/"):
		return "device"
	case strings.HasPrefix(link, "/"):
		return "file"
	}
	return "other"
}

// children counts the child processes, and those that ended and were not waited for.
func (p *Process) children(dst []Reading) []Reading {
	pids, ok := p.childIDs()
	if !ok {
		return dst
	}
	zombies, stayed := map[int]bool{}, 0
	for _, pid := range pids {
		if !isZombie(filepath.Join(filepath.Dir(p.proc), strconv.Itoa(pid), "stat")) {
			continue
		}
		zombies[pid] = true
		if p.zombies[pid] {
			stayed++
		}
	}
	p.zombies = zombies
	dst = append(dst, Reading{Resource: "child processes", Count: float64(len(pids)), Covariate: -1})
	if stayed == 0 {
		return dst
	}
	return append(dst, Reading{
		Resource: "child processes never waited for", Count: float64(stayed), Covariate: -1, Leaked: stayed >= zombiesLeaked,
		Reason: fmt.Sprintf("%d child processes have ended and nobody has waited for them", stayed),
		Advice: "call Wait after Start of every exec.Cmd; as process 1 of a container use an init that reaps orphans",
	})
}

// childIDs gives the children of all threads; ok is false when the kernel does not list them.
func (p *Process) childIDs() (pids []int, ok bool) {
	tasks, err := os.ReadDir(filepath.Join(p.proc, "task"))
	if err != nil {
		return nil, false
	}
	for _, task := range tasks {
		list, err := os.ReadFile(filepath.Join(p.proc, "task", task.Name(), "children"))
		if err != nil {
			continue // the thread has ended, or the kernel was built without
		}
		ok = true
		for field := range strings.FieldsSeq(string(list)) {
			if pid, err := strconv.Atoi(field); err == nil && len(pids) < maxChildren {
				pids = append(pids, pid)
			}
		}
	}
	return pids, ok
}

// isZombie reads the state of a process, the letter after its name in parentheses: "42 (sh) Z 1 …".
func isZombie(stat string) bool {
	data, err := os.ReadFile(stat)
	if err != nil {
		return false
	}
	i := bytes.LastIndexByte(data, ')')
	return i >= 0 && bytes.HasPrefix(bytes.TrimSpace(data[i+1:]), []byte("Z"))
}

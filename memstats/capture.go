package memstats

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// MaxCaptures is the largest number of files that a [Captures] keeps.
const MaxCaptures = 8

// ErrCapture is the reason why a capture was not kept: the name is not usable. Errors of the file system are returned
// as they are.
var ErrCapture = errors.New("memstats: capture not kept")

// Captures keeps profiles in a directory: at most [MaxCaptures] files with its prefix, the oldest goes first. A file
// is either there in whole or not at all. The zero value keeps nothing. It may be used concurrently by one process;
// two processes need two directories.
type Captures struct {
	// Dir is the directory; it is made when it does not exist. Empty means off: Write then does nothing.
	Dir string
	// Max is how many files are kept; default and at most MaxCaptures.
	Max int
}

// capturePrefix marks the files that Captures may delete.
const capturePrefix = "leakguard-"

// Write keeps data as "leakguard-<time>-<name>" and gives the path; empty when Captures is off. name is like
// "heap.pb.gz": letters, digits, dots, dashes and underscores. A full or read-only disk costs the capture only: the
// error says so.
func (c Captures) Write(at time.Time, name string, data []byte) (path string, err error) {
	if c.Dir == "" {
		return "", nil
	}
	if !plainName(name) {
		return "", fmt.Errorf("%w: the name %q has other characters than letters, digits, dots, dashes and underscores", ErrCapture, name)
	}
	if err := os.MkdirAll(c.Dir, 0o750); err != nil {
		return "", fmt.Errorf("memstats: capture: %w", err)
	}
	path = filepath.Join(c.Dir, capturePrefix+at.UTC().Format("20060102T150405.000000000Z")+"-"+name)
	if err := writeAtomically(c.Dir, path, data); err != nil {
		return "", fmt.Errorf("memstats: capture: %w", err)
	}
	return path, c.prune()
}

func plainName(name string) bool {
	return name != "" && len(name) <= 100 && strings.Trim(name, ".") != "" && !strings.ContainsFunc(name, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
	})
}

// writeAtomically writes a temporary file beside path, syncs it and renames it.
func writeAtomically(dir, path string, data []byte) (err error) {
	f, err := os.CreateTemp(dir, ".leakguard-*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(f.Name())))
		}
	}()
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// prune deletes the oldest captures beyond the number kept; their names sort by time.
func (c Captures) prune() error {
	most := MaxCaptures
	if c.Max > 0 {
		most = min(most, c.Max)
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return fmt.Errorf("memstats: capture: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), capturePrefix) {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, cmp.Compare[string])
	var errs []error
	for i := range max(0, len(names)-most) {
		errs = append(errs, ignoreMissing(os.Remove(filepath.Join(c.Dir, names[i]))))
	}
	return errors.Join(errs...)
}

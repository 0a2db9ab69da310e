package miniapi

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// The types of journal entries beside the watch event types.
const (
	snapshotEntry = "SNAPSHOT" // first line of a rewritten journal: the version it was made at
	storedEntry   = "STORED"   // an object of the snapshot
)

// compactAt is the size in bytes from which a journal is rewritten.
const compactAt = 16 << 20

// entry is one line of the journal.
type entry struct {
	Type     string         `json:"type"`
	Resource string         `json:"resource,omitempty"`
	Version  uint64         `json:"version,omitempty"`
	Object   map[string]any `json:"object,omitempty"`
}

// journal is an append-only file of entries, one JSON document a line. It is written before a change is answered and
// without buffering, so that what a client was told survives the process.
type journal struct {
	file  *os.File
	size  int64
	limit int64
}

// openJournal hands every entry of a journal to replay and opens it for appending. A last line that was cut off by a
// kill was never answered: it is cut away.
func openJournal(path string, replay func(entry) error) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("miniapi: open the journal: %w", err)
	}
	size, err := replayJournal(file, replay)
	if err == nil {
		err = file.Truncate(size)
	}
	if err == nil {
		_, err = file.Seek(size, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("miniapi: read the journal: %w", err), file.Close())
	}
	return &journal{file: file, size: size, limit: compactAt}, nil
}

// replayJournal reads whole lines and gives the length of what it read.
func replayJournal(r io.Reader, replay func(entry) error) (int64, error) {
	var size int64
	in := bufio.NewReader(r)
	for line := 1; ; line++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return size, nil // text holds a line without an end
		}
		if err != nil {
			return size, err
		}
		var e entry
		if err = utiljson.Unmarshal(text, &e); err == nil {
			err = replay(e)
		}
		if err != nil {
			return size, fmt.Errorf("line %d: %w", line, err)
		}
		size += int64(len(text))
	}
}

func (j *journal) append(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("miniapi: journal: %w", err)
	}
	n, err := j.file.Write(append(line, '\n'))
	if err != nil {
		// A half-written line would hide what follows: take it back.
		err = errors.Join(err, j.file.Truncate(j.size))
		_, seekErr := j.file.Seek(j.size, io.SeekStart)
		return fmt.Errorf("miniapi: journal: %w", errors.Join(err, seekErr))
	}
	j.size += int64(n)
	return nil
}

// rewrite puts other entries in the place of all that is there: beside it first, then by renaming, so that a kill leaves
// the old or the new journal whole.
func (j *journal) rewrite(entries []entry) error {
	path := j.file.Name()
	file, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("miniapi: rewrite the journal: %w", err)
	}
	next := &journal{file: file, limit: j.limit}
	for _, e := range entries {
		if err = next.append(e); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	// Windows renames neither from nor to an open file.
	if err = errors.Join(j.file.Close(), file.Close(), os.Rename(path+".new", path)); err != nil {
		return fmt.Errorf("miniapi: rewrite the journal: %w", err)
	}
	if j.file, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0o600); err != nil {
		return fmt.Errorf("miniapi: rewrite the journal: %w", err)
	}
	j.size = next.size
	j.limit = max(j.limit, 2*j.size)
	return nil
}

func (j *journal) close() error {
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("miniapi: close the journal: %w", err)
	}
	return nil
}

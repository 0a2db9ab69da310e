package memstats

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"
)

// Bounds of what the readers of recorded series take.
const (
	// MaxTableBytes is the longest input.
	MaxTableBytes = 256 << 20
	// MaxTableColumns is the largest number of columns.
	MaxTableColumns = 4096
)

// ErrTable is the reason why a recorded series cannot be read; the error that wraps it names the line, the column and
// the field.
var ErrTable = errors.New("memstats: bad series")

// Table is a recorded series: columns of numbers over time.
type Table struct {
	// Columns are the names of the values, without the time.
	Columns []string
	// Times has one entry per row; it never falls.
	Times []time.Time
	// Rows has one value per column; NaN where there is none.
	Rows [][]float64
	// Marks are what the recording says happened, in time order.
	Marks []Mark
}

// Mark is an event in a recording. One that speaks of a restart, a deployment, an upgrade or a new version starts a
// new life.
type Mark struct {
	Time  time.Time
	Event string
}

// ReadTable reads a recorded series in either form: CSV with a header line, or JSON with columns and rows, as the
// replay command takes them.
//
//	t,heap_alloc,num_goroutine        {"columns": ["t","heap_alloc","num_goroutine"],
//	0,37087619,93                      "rows": [[0,37087619,93],
//	60,38112332,94                              [60,38112332,94]]}
//
// Times are seconds, from any origin, or in CSV dates as in RFC 3339, with a T or a space before the time of day and
// UTC without a zone. A column named t, time, timestamp or ts holds them. An empty CSV cell and a JSON null are "no
// value", and for [Replay] so is what is beyond 1e37 or -1e37. The fields of CSV may be separated by semicolons or tabs,
// too; lines that begin with # are left out.
func ReadTable(data []byte) (*Table, error) {
	if len(data) > MaxTableBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrTable, len(data), MaxTableBytes)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	if len(trimmed) > 0 && trimmed[0] == '{' {
		return readJSON(data)
	}
	return readCSV(data)
}

// timeColumn finds the column that holds the time.
func timeColumn(columns []string) (int, error) {
	if len(columns) > MaxTableColumns {
		return 0, fmt.Errorf("%w: %d columns, at most %d are read", ErrTable, len(columns), MaxTableColumns)
	}
	seen := make(map[string]bool, len(columns))
	found := -1
	for i, name := range columns {
		if seen[name] {
			return 0, fmt.Errorf("%w: column %d: the name %q occurs twice", ErrTable, i+1, name)
		}
		seen[name] = true
		if found < 0 && isTimeColumn(name) {
			found = i
		}
	}
	if found < 0 {
		return 0, fmt.Errorf("%w: no column is named t, time, timestamp or ts", ErrTable)
	}
	return found, nil
}

// appendRow checks a row and takes its time out; where names it in errors.
func (t *Table) appendRow(row []float64, timeAt int, where string) error {
	if want := len(t.Columns) + 1; len(row) != want {
		return fmt.Errorf("%w: %s: %d values, want %d", ErrTable, where, len(row), want)
	}
	seconds := row[timeAt]
	at, ok := secondsTime(seconds)
	if !ok {
		return fmt.Errorf("%w: %s: the time %v is no number of seconds from 0 to 1e11", ErrTable, where, seconds)
	}
	if n := len(t.Times); n > 0 && at.Before(t.Times[n-1]) {
		return fmt.Errorf("%w: %s: the time %v is before the row above", ErrTable, where, seconds)
	}
	t.Times = append(t.Times, at)
	t.Rows = append(t.Rows, append(row[:timeAt:timeAt], row[timeAt+1:]...))
	return nil
}

// secondsTime makes a time of seconds since the epoch; NaN fails every comparison.
func secondsTime(seconds float64) (time.Time, bool) {
	if !(seconds >= 0 && seconds <= 1e11) {
		return time.Time{}, false
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)).UTC(), true
}

// lineColumn turns a byte offset into a line and a column, from 1.
func lineColumn(data []byte, offset int64) (line, column int) {
	head := data[:min(max(offset, 0), int64(len(data)))]
	return 1 + bytes.Count(head, []byte("\n")), len(head) - bytes.LastIndexByte(head, '\n')
}

package memstats

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

func readCSV(data []byte) (*Table, error) {
	reader := csv.NewReader(bytes.NewReader(data))
	reader.Comma = separator(data)
	reader.Comment = '#'
	reader.ReuseRecord = true
	reader.TrimLeadingSpace = true
	header, err := reader.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: empty", ErrTable)
		}
		return nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	names := make([]string, 0, len(header))
	for _, name := range header {
		names = append(names, strings.Clone(strings.TrimSpace(name)))
	}
	timeAt, err := timeColumn(names)
	if err != nil {
		return nil, err
	}
	t := &Table{Columns: slices.Delete(slices.Clone(names), timeAt, timeAt+1)}
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return t, fmt.Errorf("%w: %w", ErrTable, err)
		}
		row, err := csvRow(reader, record, names, timeAt)
		if err != nil {
			return t, err
		}
		line, _ := reader.FieldPos(0)
		if err := t.appendRow(row, timeAt, fmt.Sprintf("line %d", line)); err != nil {
			return t, err
		}
	}
}

// separator picks what is between the fields of the header: commas, else semicolons, else tabs.
func separator(data []byte) rune {
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		for _, comma := range ",;\t" {
			if bytes.ContainsRune(line, comma) {
				return comma
			}
		}
		break
	}
	return ','
}

// csvRow parses the cells of a line.
func csvRow(reader *csv.Reader, record, names []string, timeAt int) ([]float64, error) {
	row := make([]float64, len(record))
	for i, cell := range record {
		v, err := csvCell(strings.TrimSpace(cell), i == timeAt)
		if err != nil {
			line, column := reader.FieldPos(i)
			return nil, fmt.Errorf("%w: line %d, column %d: %s: %q is no number", ErrTable, line, column, names[i], cell)
		}
		row[i] = v
	}
	return row, nil
}

// csvCell parses a number, or a time in seconds or as a date; an empty cell is NaN.
func csvCell(cell string, isTime bool) (float64, error) {
	if cell == "" {
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(cell, 64)
	if err == nil || !isTime {
		return v, err
	}
	at, err := parseDate(cell)
	if err != nil {
		return 0, err
	}
	return float64(at.UnixNano()) / 1e9, nil
}

// parseDate reads a date and a time of day, in UTC when it has no zone.
func parseDate(cell string) (at time.Time, err error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", time.DateTime, "2006-01-02T15:04:05"} {
		if at, err = time.Parse(layout, cell); err == nil {
			return at, nil
		}
	}
	return at, err
}

package memstats

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// tableJSON is the form of the file. Pointers tell a null, which is "no value", from a zero.
type tableJSON struct {
	Columns []string     `json:"columns"`
	Rows    [][]*float64 `json:"rows"`
	Marks   []struct {
		T     float64 `json:"t"`
		Event string  `json:"event"`
	} `json:"marks"`
}

func readJSON(data []byte) (*Table, error) {
	var raw tableJSON
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, jsonError(data, err)
	}
	if len(raw.Columns) == 0 {
		return nil, fmt.Errorf("%w: the field columns is missing or empty", ErrTable)
	}
	timeAt, err := timeColumn(raw.Columns)
	if err != nil {
		return nil, err
	}
	t := &Table{Columns: slices.Delete(slices.Clone(raw.Columns), timeAt, timeAt+1)}
	for i, cells := range raw.Rows {
		row := make([]float64, len(cells))
		for k, cell := range cells {
			if row[k] = math.NaN(); cell != nil {
				row[k] = *cell
			}
		}
		if err := t.appendRow(row, timeAt, fmt.Sprintf("field rows[%d]", i)); err != nil {
			return t, err
		}
	}
	for i, m := range raw.Marks {
		at, ok := secondsTime(m.T)
		if !ok {
			return t, fmt.Errorf("%w: field marks[%d].t: %v is no number of seconds from 0 to 1e11", ErrTable, i, m.T)
		}
		t.Marks = append(t.Marks, Mark{Time: at, Event: m.Event})
	}
	slices.SortStableFunc(t.Marks, func(a, b Mark) int { return a.Time.Compare(b.Time) })
	return t, nil
}

// jsonError adds the place to an error of encoding/json, whose offset is behind the byte that is wrong.
func jsonError(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		line, column := lineColumn(data, syntax.Offset-1)
		return fmt.Errorf("%w: line %d, column %d: %w", ErrTable, line, column, err)
	case errors.As(err, &kind):
		line, column := lineColumn(data, kind.Offset-1)
		return fmt.Errorf("%w: line %d, column %d: field %s: %s where %s belongs", ErrTable, line, column, kind.Field, kind.Value, kind.Type)
	}
	return fmt.Errorf("%w: %w", ErrTable, err)
}

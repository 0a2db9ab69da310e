package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/leakguard/leakguard/memstats"
)

// The chart's sizes, in pixels.
const (
	chartWidth  = 960
	panelHeight = 110
	panelGap    = 46
	marginLeft  = 92
	marginTop   = 34
	plotWidth   = chartWidth - marginLeft - 24
	maxPanels   = 40
)

// writeSVG draws one panel per column: the values, the time of each change of verdict, and the last verdict as its
// title.
func writeSVG(out io.Writer, r report) error {
	w := newPrinter(out)
	panels := 0
	for _, rec := range r.recordings {
		panels += len(rec.result.Series)
	}
	panels = min(panels, maxPanels)
	height := marginTop + panels*(panelHeight+panelGap) + 20*(len(r.Findings)+2)
	w.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12">`+"\n",
		chartWidth, height, chartWidth, height)
	w.printf(`<rect width="100%%" height="100%%" fill="#ffffff"/><text x="16" y="20" font-size="15" fill="#111827">verdict: %s</text>`+"\n", r.Verdict)
	y, drawn := marginTop, 0
	for _, rec := range r.recordings {
		for _, s := range rec.result.Series {
			if drawn == maxPanels {
				break
			}
			drawn++
			drawPanel(w, rec, s, y+panelGap-12)
			y += panelHeight + panelGap
		}
	}
	for i, f := range r.Findings {
		w.printf(`<text x="16" y="%d" fill="%s">%s</text>`+"\n", y+20*(i+1), color(f.Verdict), escape(cut(f.Verdict.String()+": "+f.Reason, 150)))
	}
	w.printf("</svg>\n")
	return w.flush()
}

// panel maps values to pixels.
type panel struct {
	from, to  time.Time
	low, high float64
	top       int
}

func (p panel) x(at time.Time) float64 {
	span := p.to.Sub(p.from).Seconds()
	if span <= 0 {
		return marginLeft
	}
	return marginLeft + at.Sub(p.from).Seconds()/span*plotWidth
}

func (p panel) y(v float64) float64 {
	if p.high <= p.low {
		return float64(p.top) + panelHeight/2
	}
	return float64(p.top) + (p.high-v)/(p.high-p.low)*panelHeight
}

func drawPanel(w *printer, rec recording, s memstats.SeriesVerdict, top int) {
	values := columnOf(rec, s.Name)
	if len(values) == 0 {
		return
	}
	p := panel{from: values[0].Time, to: values[len(values)-1].Time, low: math.Inf(1), high: math.Inf(-1), top: top}
	for _, v := range values {
		p.low, p.high = min(p.low, v.Value), max(p.high, v.Value)
	}
	w.printf(`<text x="%d" y="%d"><tspan fill="#111827" font-weight="600">%s</tspan><tspan dx="8" fill="%s">%s</tspan><tspan dx="8" fill="#6b7280">%s</tspan></text>`+"\n",
		marginLeft, top-6, escape(s.Name), color(s.Outcome), s.Shape, escape(cut(s.Reason, 105)))
	w.printf(`<rect x="%d" y="%d" width="%d" height="%d" fill="#f9fafb" stroke="#d1d5db"/>`+"\n", marginLeft, top, plotWidth, panelHeight)
	for _, label := range []struct {
		v float64
		y int
	}{{p.high, top + 10}, {p.low, top + panelHeight}} {
		w.printf(`<text x="%d" y="%d" text-anchor="end" fill="#6b7280" font-size="11">%s</text>`+"\n", marginLeft-6, label.y, human(label.v))
	}
	if s.Since != nil && !s.Since.Before(p.from) && s.Outcome > memstats.Benign {
		w.printf(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" fill-opacity="0.08"/>`+"\n",
			p.x(*s.Since), top, float64(marginLeft+plotWidth)-p.x(*s.Since), panelHeight, color(s.Outcome))
	}
	drawLine(w, p, values, color(s.Outcome))
	for _, e := range rec.result.Events {
		if e.Name == s.Name {
			w.printf(`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s" stroke-dasharray="3 3"><title>%s %s: %s</title></line>`+"\n",
				p.x(e.Time), p.x(e.Time), top, top+panelHeight, color(e.Verdict.Outcome), clock(rec.table, e.Time), e.Verdict.Shape, escape(e.Verdict.Reason))
		}
	}
	w.printf(`<text x="%d" y="%d" fill="#6b7280" font-size="11">%s</text><text x="%d" y="%d" text-anchor="end" fill="#6b7280" font-size="11">%s</text>`+"\n",
		marginLeft, top+panelHeight+13, clock(rec.table, p.from), marginLeft+plotWidth, top+panelHeight+13, clock(rec.table, p.to))
}

// drawLine draws the lowest and the highest value of each pixel column, so that a long recording keeps its shape and
// the file stays small.
func drawLine(w *printer, p panel, values []memstats.Point, stroke string) {
	var path []byte
	command := byte('M')
	for i := 0; i < len(values); {
		column := math.Floor(p.x(values[i].Time))
		low, high := values[i].Value, values[i].Value
		first, last := values[i].Value, values[i].Value
		for ; i < len(values) && math.Floor(p.x(values[i].Time)) == column; i++ {
			last = values[i].Value
			low, high = min(low, last), max(high, last)
		}
		for _, v := range []float64{first, low, high, last} {
			path = fmt.Appendf(path, "%c%.1f %.1f", command, column, p.y(v))
			command = 'L'
			if low == high {
				break
			}
		}
	}
	w.printf(`<path d="%s" fill="none" stroke="%s" stroke-width="1.4"/>`+"\n", path, stroke)
}

// columnOf gives the values of a column, or of the difference of two that the replay made.
func columnOf(rec recording, name string) (values []memstats.Point) {
	plus, minus, ok := rec.result.Source(rec.table, name)
	if !ok {
		return nil
	}
	for i, row := range rec.table.Rows {
		v := row[plus]
		if minus >= 0 {
			v -= row[minus]
		}
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, memstats.Point{Time: rec.table.Times[i], Value: v})
		}
	}
	return values
}

func color(o memstats.Outcome) string {
	switch o {
	case memstats.Leak:
		return "#b91c1c"
	case memstats.Suspect:
		return "#b45309"
	default:
		return "#1d4ed8"
	}
}

// human prints a number with at most four digits and a unit prefix.
func human(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if math.Abs(v) >= unit.size {
			if unit.name == "k" {
				return fmt.Sprintf("%.1fk", v/1e3)
			}
			return fmt.Sprintf("%.2f%s", v/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.4g", v)
}

func cut(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return ""
	}
	return b.String()
}

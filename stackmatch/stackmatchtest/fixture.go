package stackmatchtest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/leakguard/leakguard/stackmatch"
)

// Problem is a difference between what a fixture expects and what the rules found, or a mistake in the fixture.
type Problem struct {
	// Scenario is the name of the scenario; empty for mistakes before the first one.
	Scenario string
	// Line is the line of the fixture, from 1.
	Line int
	// Message says what is wrong.
	Message string
}

// Error gives "line 7 (leak): no finding of MY-7".
func (p Problem) Error() string {
	if p.Scenario == "" {
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return fmt.Sprintf("line %d (%s): %s", p.Line, p.Scenario, p.Message)
}

// scenario is a part of a fixture: dumps of one process and what is expected.
type scenario struct {
	name    string
	line    int
	options stackmatch.Options
	dumps   []*dump
}

// dump is one dump of a scenario with its repetitions written out.
type dump struct {
	text  strings.Builder
	lines int // in text
	line  int // in the fixture
	wants []want
	next  int // the next id of a repeated goroutine
}

// want is what one goroutine expects.
type want struct {
	rule, culprit, category string
	verdict                 stackmatch.Verdict
	count                   int64 // -1 for any
	line                    int   // in the fixture
	header                  int   // line of the header in the text
}

// parser reads a fixture.
type parser struct {
	scenarios []*scenario
	problems  []Problem
	line      int
	block     []string // of the goroutine that is being read
	repeat    int
	same      bool
	want      *want
}

func (p *parser) wrong(format string, args ...any) {
	name := ""
	if n := len(p.scenarios); n > 0 {
		name = p.scenarios[n-1].name
	}
	p.problems = append(p.problems, Problem{Scenario: name, Line: p.line, Message: fmt.Sprintf(format, args...)})
}

// parse reads a whole fixture.
func parse(text string) ([]*scenario, []Problem) {
	var p parser
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		p.line++
		switch {
		case strings.HasPrefix(line, "//"):
		case strings.HasPrefix(line, "=== "):
			p.flush()
			p.begin(strings.Fields(line[4:]))
		case strings.TrimSpace(line) == "---":
			p.flush()
			if s := p.current(); s != nil {
				s.dumps = append(s.dumps, &dump{line: p.line, next: 100000})
			}
		default:
			p.content(line)
		}
	}
	p.flush()
	if len(p.scenarios) == 0 {
		p.wrong("no scenario: a line \"=== NAME\" begins one")
	}
	return p.scenarios, p.problems
}

// current is the scenario that is being read.
func (p *parser) current() *scenario {
	if len(p.scenarios) == 0 {
		p.wrong("text before the first scenario")
		return nil
	}
	return p.scenarios[len(p.scenarios)-1]
}

// begin starts a scenario from the fields of its line.
func (p *parser) begin(fields []string) {
	s := &scenario{line: p.line, dumps: []*dump{{line: p.line, next: 100000}}}
	p.scenarios = append(p.scenarios, s)
	if len(fields) == 0 {
		p.wrong("the scenario has no name")
		return
	}
	s.name = fields[0]
	for _, field := range fields[1:] {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "main":
			s.options.Main = value
		case "objects":
			for number := range strings.SplitSeq(value, ",") {
				n, err := strconv.Atoi(number)
				if err != nil {
					p.wrong("objects: %q is no number", number)
				}
				s.options.Objects = append(s.options.Objects, n)
			}
		default:
			p.wrong("unknown setting %q: main and objects are known", key)
		}
	}
}

// content takes a line of a dump.
func (p *parser) content(line string) {
	isRecord := len(line) > 0 && line[0] >= '0' && line[0] <= '9' && strings.Contains(line, " @")
	if strings.HasPrefix(line, "goroutine ") || isRecord {
		p.flush()
		line = p.remarks(line, isRecord)
	}
	if len(p.block) == 0 && strings.TrimSpace(line) == "" {
		return
	}
	p.block = append(p.block, line)
}

// remarks takes what stands behind a header: repetition and want.
func (p *parser) remarks(line string, isRecord bool) string {
	p.repeat, p.same, p.want = 1, false, nil
	parts := strings.Split(line, " // ")
	for _, part := range parts[1:] {
		fields := strings.Fields(part)
		switch {
		case len(fields) == 0:
		case fields[0] == "want":
			p.want = p.parseWant(fields[1:])
		case fields[0][0] == 'x' && !isRecord:
			n, err := strconv.Atoi(fields[0][1:])
			if err != nil || n < 1 {
				p.wrong("%q is no repetition: x12 is one", fields[0])
				n = 1
			}
			p.repeat, p.same = n, len(fields) > 1 && fields[1] == "same"
		default:
			p.wrong("unknown remark %q: xN and want are known", part)
		}
	}
	return strings.TrimRight(parts[0], " ")
}

// parseWant reads "MY-7 leak count=12 culprit=main.f".
func (p *parser) parseWant(fields []string) *want {
	w := &want{line: p.line, count: -1}
	for i, field := range fields {
		if key, value, pair := strings.Cut(field, "="); pair {
			p.setWant(w, key, value)
			continue
		}
		switch {
		case i == 0:
			w.rule = field
		case stackmatch.Verdict(field).Valid():
			w.verdict = stackmatch.Verdict(field)
		default:
			p.wrong("want: %q is none of leak, suspect, benign, count=, culprit=, category=", field)
		}
	}
	if w.rule == "" {
		p.wrong("want: no rule")
	}
	return w
}

// setWant takes one of the settings of a want.
func (p *parser) setWant(w *want, key, value string) {
	switch key {
	case "count":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			p.wrong("count: %q is no number", value)
		}
		w.count = n
	case "culprit":
		w.culprit = value
	case "category":
		w.category = value
	default:
		p.wrong("want: unknown setting %q: count, culprit and category are known", key)
	}
}

// minutesOf finds the minutes of a header.
var minutesOf = regexp.MustCompile(`, (\d+) minutes`)

// idOf finds the id of a header.
var idOf = regexp.MustCompile(`^goroutine \d+`)

// flush writes the goroutine that was read to the dump, as often as it is to be repeated.
func (p *parser) flush() {
	if len(p.block) == 0 {
		return
	}
	block := p.block
	p.block = nil
	s := p.current()
	if s == nil {
		return
	}
	d := s.dumps[len(s.dumps)-1]
	if p.want != nil {
		p.want.header = d.lines + 1
		d.wants = append(d.wants, *p.want)
		p.want = nil
	}
	for i := range p.repeat {
		for at, line := range block {
			if at == 0 && p.repeat > 1 {
				line = p.copyOf(line, i, d)
			}
			d.write(line)
		}
		if strings.HasPrefix(block[0], "goroutine ") && !strings.HasPrefix(block[0], "goroutine profile") {
			d.write("")
		}
	}
	p.repeat = 1
}

// copyOf gives the header of one of several copies.
func (p *parser) copyOf(header string, i int, d *dump) string {
	if i > 0 {
		d.next++
		header = idOf.ReplaceAllString(header, "goroutine "+strconv.Itoa(d.next))
	}
	if p.same {
		return header
	}
	return minutesOf.ReplaceAllStringFunc(header, func(s string) string {
		oldest, err := strconv.Atoi(minutesOf.FindStringSubmatch(s)[1])
		if err != nil {
			return s
		}
		if m := oldest - i*oldest/p.repeat; m > 0 {
			return fmt.Sprintf(", %d minutes", m)
		}
		return ""
	})
}

func (d *dump) write(line string) {
	d.text.WriteString(line)
	d.text.WriteByte('\n')
	d.lines++
}

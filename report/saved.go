package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// A Saved is a run as report.json has it, without what takes room: the proofs, and the
// lists of injections and overlaps. It is what runs are compared by.
type Saved struct{ j jsonReport }

// Saved keeps of a run what it is compared by.
func (r Run) Saved() Saved { return saved(toJSON(r)) }

func saved(j jsonReport) Saved {
	for i := range j.Verdicts {
		j.Verdicts[i].Proofs = nil
	}
	j.Injections.List, j.Injections.Turns, j.Facts.Overlaps = nil, nil, nil
	return Saved{j}
}

// ReadSaved reads a report.json. It refuses one of a schema that it does not know.
func ReadSaved(in io.Reader) (Saved, error) {
	var j jsonReport
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return Saved{}, fmt.Errorf("read report: %w", err)
	}
	if j.Schema != Schema {
		return Saved{}, fmt.Errorf("read report: its schema is %d, expected %d", j.Schema, Schema)
	}
	return saved(j), nil
}

// Exit is what the run came to.
func (s Saved) Exit() int { return s.j.Exit }

// A figure is a number of a run that is compared from run to run.
type figure struct {
	Name  string `json:"name"`
	value int64
	known bool
	span  bool // a time, in nanoseconds
}

// figures lists a run's, in the same order for each run, those of its counters last.
func (s Saved) figures() []figure {
	f, in := s.j.Facts, s.j.Injections
	number := func(name string, n int) figure { return figure{Name: name, value: int64(n), known: true} }
	out := []figure{
		number("injections that landed", in.Landed),
		number("injections in a section", in.Section),
		number("leases that ended while held", f.EndedWhileHeld),
		number("overlaps", f.Overlap),
		number("grants", f.Grants),
		number("refusals", f.Refusals),
		number("sections", f.Sections),
		number("reads in sections", f.Reads),
		number("writes in sections", f.Writes),
		number("writes refused by a guard", f.Rejected),
		number("writes of no section for sure", f.Unattributed),
	}
	for _, c := range s.j.Counters {
		name := c.name() + ": "
		out = append(out,
			figure{Name: name + "acknowledged", value: c.Acknowledged, known: c.GivenUp == ""},
			known(name+"net deficit", c.NetDeficit),
			number(name+"writes from a stale base", c.StaleBase),
			number(name+"acknowledged writes overwritten", c.Victims))
	}
	return append(out, figure{Name: "took", value: f.ElapsedNs, known: f.ElapsedNs > 0, span: true})
}

func known(name string, value *int64) figure {
	if value == nil {
		return figure{Name: name}
	}
	return figure{Name: name, value: *value, known: true}
}

func (c jsonCounter) name() string {
	if c.Table != "" {
		return "counter " + c.Table + "." + c.Column
	}
	return "counter " + c.Name
}

// of prints a value as the figure's are.
func (f figure) of(value int64) string {
	if f.span {
		return span(time.Duration(value))
	}
	return fmt.Sprint(value)
}

func (f figure) String() string {
	if !f.known {
		return "not known"
	}
	return f.of(f.value)
}

// kind is what a verdict is told apart by from run to run.
func (v jsonVerdict) kind() string {
	return fmt.Sprint(v.Code, " ", v.Level, " ", v.Class, " ", v.Harm, " ", v.Accepted != "")
}

// title is a verdict with its name, and what it means.
func (v jsonVerdict) title() string {
	g := group{Class: v.Class, Harm: v.Harm}
	said := fmt.Sprintf("%s %s: %s %s", v.Code, v.Name, v.Level, g.meaning())
	if v.Accepted != "" {
		said += ", accepted"
	}
	return said
}

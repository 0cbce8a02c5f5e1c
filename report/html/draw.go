package html

import (
	"fmt"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/report"
)

// A drawing is a figure laid out: shapes in the order in which they are painted.
type drawing struct {
	N             int
	Width, Height int
	Title, Desc   string
	Shapes        []shape
	Steps         []step
	Left          int
}

// A shape is one element of an SVG. Which fields count depends on What: rect, line, path,
// dot or text.
type shape struct {
	What           string
	Class          string
	X, Y, W, H     float64 // of a line: from X,Y to W,H
	D              string  // of a path
	Anchor         string  // of a text: start, middle or end
	Text, Op, Full string  // of a text: what it says, the op, and all of it where that was cut
}

// A step is a row of the table that says the same as the drawing.
type step struct{ At, Who, What, Op string }

// The measures of a drawing, in pixels.
const (
	width     = 720
	axisEnd   = 84  // the times end here
	first     = 118 // the first lifeline
	lastLane  = 706
	rowHeight = 27
	tallest   = 120 // a stretch of time in which nothing happens
	stretch   = 300 // all of a drawing's time, if nothing happened
	letter    = 6.3 // the width of one, about
)

// draw lays a cause's figure out; nil if it has none.
func draw(c report.Cause, n int) *drawing {
	f := c.Figure
	if f == nil || len(f.Steps) == 0 {
		return nil
	}
	d := &drawing{N: n, Width: width, Left: f.Left}
	d.Title = fmt.Sprintf("Sequence of %s %s", c.Code, c.Name)
	d.describe(f)
	top := d.strip(f)
	s := &sequence{drawing: d, figure: f, top: top}
	s.places()
	s.layOut()
	return d
}

// describe puts the figure into words, for those who do not see it, and into a table.
func (d *drawing) describe(f *report.Figure) {
	said := make([]string, 0, len(f.Steps))
	for _, s := range f.Steps {
		who, what := nameOf(f.Lanes[s.Lane]), s.Words()
		op := ""
		if s.Op != 0 {
			op = fmt.Sprint(s.Op)
		}
		d.Steps = append(d.Steps, step{report.At(s.At), who, what, op})
		said = append(said, fmt.Sprintf("%s ms: %s %s", report.At(s.At), who, what))
	}
	d.Desc = strings.Join(said, ". ") + "."
}

func nameOf(l report.Lane) string {
	if l.Letter == "" {
		return l.Who
	}
	return l.Letter + " (" + l.Who + ")"
}

func (d *drawing) rect(class string, x, y, w, h float64) {
	d.Shapes = append(d.Shapes, shape{What: "rect", Class: class, X: x, Y: y, W: max(w, 0.5), H: max(h, 0.5)})
}

func (d *drawing) line(class string, x, y, x2, y2 float64) {
	d.Shapes = append(d.Shapes, shape{What: "line", Class: class, X: x, Y: y, W: x2, H: y2})
}

func (d *drawing) path(class, data string) {
	d.Shapes = append(d.Shapes, shape{What: "path", Class: class, D: data})
}

func (d *drawing) dot(class string, x, y, r float64) {
	d.Shapes = append(d.Shapes, shape{What: "dot", Class: class, X: x, Y: y, W: r})
}

// text writes what there is room for, without the op if need be, and keeps the whole as its
// title.
func (d *drawing) text(class, anchor string, x, y, room float64, text, op string) {
	s := shape{What: "text", Class: class, Anchor: anchor, X: x, Y: y, Text: plain(text, longName), Op: op}
	runes, fits := []rune(s.Text), int(room/letter)
	if len(runes)+len(op) > fits {
		s.Full, s.Op = s.Text+op, ""
	}
	if len(runes) > fits && fits > 1 {
		s.Text = string(runes[:fits-1]) + "…"
	}
	d.Shapes = append(d.Shapes, s)
}

// arrow is a line with a head at its end; a cross stands for the head of what did not
// take effect.
func (d *drawing) arrow(class string, from, to, y float64, void bool) {
	dir := 1.0
	if to < from {
		dir = -1
	}
	d.line(class, from, y, to-dir*2, y)
	if void {
		x := to - dir*8
		d.path(class+" head", fmt.Sprintf("M%.1f %.1fl8 8M%.1f %.1fl8 -8", x-4, y-4, x-4, y+4))
		return
	}
	d.path(class+" head", fmt.Sprintf("M%.1f %.1fL%.1f %.1fL%.1f %.1f", to-dir*8, y-4, to-dir, y, to-dir*8, y+4))
}

// leaseOf is where the lease of a lane ends, and where it may: a release in time ends it.
func leaseOf(l report.Lane) lock.Interval {
	e := l.Lease
	if l.Asked > 0 && l.Asked < e.Earliest {
		return lock.Interval{Earliest: l.Asked, Latest: l.Asked}
	}
	return lock.Interval{Earliest: max(e.Earliest, l.Given), Latest: max(e.Latest, l.Given)}
}

// span is the first and last instant of a figure.
func span(f *report.Figure) (from, to lock.Instant) {
	from, to = f.Steps[0].At, f.Steps[len(f.Steps)-1].At
	for _, l := range f.Lanes {
		if l.Holds && l.Given > 0 {
			from = min(from, l.Given)
		}
	}
	return from, max(to, from+1)
}

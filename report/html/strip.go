package html

import (
	"fmt"
	"math"
	"strconv"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/report"
)

const (
	stripLane = 34.0
	stripFrom = 118.0
	stripTo   = 706.0
)

// strip draws the figure's time to scale, from left to right, and returns where what
// stands below it begins.
func (d *drawing) strip(f *report.Figure) (bottom float64) {
	from, to := span(f)
	x := func(at lock.Instant) float64 {
		at = max(from, min(to, at))
		return stripFrom + (stripTo-stripFrom)*float64(at-from)/float64(to-from)
	}
	y := 18.0
	for i, l := range f.Lanes {
		d.stripLane(f, i, y+float64(i)*stripLane, x)
		d.text("who lane"+strconv.Itoa(i), "start", 8, y+float64(i)*stripLane+4, 100, nameOf(l), "")
	}
	y += float64(len(f.Lanes))*stripLane - 4
	d.line("axis", stripFrom, y, stripTo, y)
	for _, at := range ticks(from, to) {
		d.line("axis", x(at), y, x(at), y+4)
		d.text("time", "middle", x(at), y+17, 120, millis(at), "")
	}
	d.text("time", "end", axisEnd+22, y+17, 100, "ms, to scale", "")
	return y + 40
}

func (d *drawing) stripLane(f *report.Figure, lane int, y float64, x func(lock.Instant) float64) {
	_, to := span(f)
	l := f.Lanes[lane]
	n := strconv.Itoa(lane)
	d.line("life", stripFrom, y, stripTo, y)
	if l.Holds {
		until := l.Asked
		if until == 0 {
			until = to
		}
		d.rect("section lane"+n, x(l.From), y-6, x(until)-x(l.From), 12)
		if l.Leased {
			e := leaseOf(l)
			d.rect("lease lane"+n, x(l.Given), y+12, x(e.Earliest)-x(l.Given), 4)
			if e.Latest > e.Earliest && e.Earliest < to {
				d.rect("unsure", x(e.Earliest), y+11, x(e.Latest)-x(e.Earliest), 6)
			}
		}
	}
	for _, p := range l.Pauses {
		d.rect("pause", x(p.From), y-10, max(2, x(p.To)-x(p.From)), 20)
	}
	for _, s := range f.Steps {
		if s.Lane != lane {
			continue
		}
		switch {
		case s.Kind == report.StepRead:
			d.dot("read lane"+n, x(s.At), y, 4)
		case s.Kind == report.StepWrite && s.Late:
			d.path("late mark", fmt.Sprintf("M%.1f %.1fl6 6l-6 6l-6 -6z", x(s.At), y-6))
		case s.Kind == report.StepWrite:
			d.rect("write lane"+n, x(s.At)-4, y-4, 8, 8)
		}
	}
}

// ticks are about five round instants.
func ticks(from, to lock.Instant) (out []lock.Instant) {
	rough := float64(to-from) / 5
	unit := math.Pow(10, math.Floor(math.Log10(max(rough, 1))))
	for _, m := range []float64{1, 2, 5, 10} {
		if unit*m >= rough {
			unit *= m
			break
		}
	}
	step := lock.Instant(max(unit, 1))
	for at := (from + step - 1) / step * step; at <= to; at += step {
		out = append(out, at)
	}
	return out
}

// millis is an instant in milliseconds, with no more digits than it has.
func millis(at lock.Instant) string {
	return strconv.FormatFloat(float64(at)/1e6, 'f', -1, 64)
}

package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A sign stands for a kind of mark on the timeline. Of several in one cell, the one of greater weight is drawn.
type sign struct {
	glyph  string
	style  style
	weight int
	name   string
}

// signs has those of all kinds, in the order of the legend.
var signs = []struct {
	kind string
	sign sign
}{
	{MarkSection, sign{"=", blue, 1, "section"}},
	{MarkWrite, sign{"w", usual, 3, "write"}},
	{MarkRejected, sign{"x", green, 6, "write refused"}},
	{MarkRefusal, sign{".", faint, 2, "lock refused"}},
	{MarkFreeze, sign{"#", strong, 5, "freeze"}},
	{MarkStall, sign{"~", amber, 4, "stall"}},
	{MarkInjection, sign{"!", amber, 7, "injection"}},
	{MarkVerdict, sign{"V", red, 8, "verdict"}},
	{MarkGap, sign{"?", faint, 9, "not seen"}},
}

func signOf(kind string) sign {
	for _, s := range signs {
		if s.kind == kind {
			return s.sign
		}
	}
	return sign{"*", usual, 1, kind}
}

const (
	minute    = time.Minute
	mostLanes = 12
	verdicts  = "verdicts" // the lane of what belongs to no actor
)

// A lane is what one actor, or one lock, did in the last minute.
type lane struct {
	name  string
	cells []sign
	heavy int
}

// minute draws the last minute: a lane for each actor, now at its right end.
func (p *sheet) minute(s Snapshot) {
	if len(s.Marks) == 0 {
		return
	}
	var names []string
	for _, m := range s.Marks {
		names = append(names, laneOf(m))
	}
	name := p.column(names)
	lanes, used := p.lanes(s.Marks, p.width-name-5)
	remark := ""
	if n := len(lanes) - mostLanes; n > 0 {
		remark = fmt.Sprintf("%d lanes more", n)
		slices.SortStableFunc(lanes, func(a, b *lane) int { return b.heavy - a.heavy })
		lanes = lanes[:mostLanes]
	}
	slices.SortFunc(lanes, func(a, b *lane) int { return cmp.Compare(a.name, b.name) })
	p.title("THE LAST MINUTE", remark)
	for _, l := range lanes {
		p.line(append([]piece{{usual, "  " + pad(plain(l.name), name) + " "}, {faint, "|"}}, append(l.pieces(), piece{faint, "|"})...)...)
	}
	p.line(piece{faint, "  " + pad("", name) + "  " + pad("60 s ago", p.width-name-5-4) + "now"})
	p.flow(2, piece{faint, strings.Join(used, ", ")}, piece{usual, "  "})
}

func laneOf(m Mark) string {
	if m.Kind == MarkVerdict {
		return verdicts
	}
	return cmp.Or(m.Actor, m.Lock)
}

// lanes sorts marks into lanes of n cells, and says which signs it used.
func (p *sheet) lanes(marks []Mark, n int) (lanes []*lane, used []string) {
	by, kinds := map[string]*lane{}, map[string]bool{}
	for _, m := range marks {
		name := laneOf(m)
		if name == "" || by[name] != nil {
			continue
		}
		by[name] = &lane{name: name, cells: make([]sign, n)}
		lanes = append(lanes, by[name])
	}
	for _, m := range marks {
		from, to, ok := p.place(m, n)
		if !ok {
			continue
		}
		kinds[m.Kind] = true
		if l := by[laneOf(m)]; l != nil {
			l.draw(signOf(m.Kind), from, to)
			continue
		}
		for _, l := range lanes { // it is everybody's
			l.draw(signOf(m.Kind), from, to)
		}
	}
	for _, s := range signs {
		if kinds[s.kind] {
			used = append(used, s.sign.glyph+" "+s.sign.name)
		}
	}
	return lanes, used
}

// place returns the first and the last cell of a mark, and whether it has any.
func (p *sheet) place(m Mark, n int) (from, to int, ok bool) {
	began, at, end := p.now.Add(-minute), m.At, m.To
	switch {
	case m.Open || end.After(p.now):
		end = p.now
	case end.IsZero():
		end = at
	}
	if end.Before(began) || at.After(p.now) {
		return 0, 0, false
	}
	if at.Before(began) {
		at = began
	}
	cell := func(t time.Time) int { return min(n-1, int(int64(n)*int64(t.Sub(began))/int64(minute))) }
	return cell(at), cell(end), true
}

func (l *lane) draw(s sign, from, to int) {
	l.heavy += s.weight
	for i := from; i <= to; i++ {
		if s.weight > l.cells[i].weight {
			l.cells[i] = s
		}
	}
}

// pieces joins neighbours of one style.
func (l *lane) pieces() []piece {
	var out []piece
	for _, c := range l.cells {
		glyph := cmp.Or(c.glyph, " ")
		if n := len(out); n > 0 && out[n-1].style == c.style {
			out[n-1].text += glyph
			continue
		}
		out = append(out, piece{c.style, glyph})
	}
	return out
}

package html

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/report"
)

// A sequence is the lower part of a drawing: time runs down it, each step in a row of its
// own, so that what came close together stands apart.
type sequence struct {
	*drawing
	figure *report.Figure
	top    float64

	x    []float64 // of the lifelines
	data float64   // of what was read and written; 0: nothing was
	ys   []float64 // of the steps
	end  float64
}

// places puts the lifelines, and the data between two holders or beside any other number.
func (s *sequence) places() {
	n := len(s.figure.Lanes)
	with := s.figure.Data != ""
	switch {
	case n == 2 && with:
		s.x, s.data = []float64{first, lastLane - 14}, (first+lastLane-14)/2
	case with:
		for i := range n {
			s.x = append(s.x, first+float64(i)*(lastLane-40-first)/float64(n))
		}
		s.data = lastLane - 40
	case n == 1:
		s.x = []float64{first}
	default:
		for i := range n {
			s.x = append(s.x, first+float64(i)*(lastLane-14-first)/float64(n-1))
		}
	}
}

func (s *sequence) layOut() {
	s.rows()
	s.heads()
	if s.data > 0 {
		s.line("life data", s.data, s.top+40, s.data, s.end)
	}
	for i := range s.figure.Lanes {
		s.lifeline(i)
	}
	s.times()
	for i, st := range s.figure.Steps {
		s.step(st, s.ys[i])
	}
	s.Height = int(s.end) + 14
}

// rows gives each step its place: further from the one before it the more time had passed.
func (s *sequence) rows() {
	from, to := span(s.figure)
	y := s.top + 66
	before := from
	for i, st := range s.figure.Steps {
		if i > 0 {
			y += gap(st.At-before, to-from)
		}
		s.ys = append(s.ys, y)
		before = st.At
	}
	s.end = y + 22
}

func gap(passed, all lock.Instant) float64 {
	return max(rowHeight, min(tallest, stretch*float64(passed)/float64(all)))
}

// y is where an instant is: among the rows, and between two of them by its share.
func (s *sequence) y(at lock.Instant) float64 {
	steps := s.figure.Steps
	i := slices.IndexFunc(steps, func(st report.Step) bool { return st.At >= at })
	switch {
	case i < 0:
		return s.end
	case i == 0 && steps[0].At > at:
		return s.ys[0] - 14
	case steps[i].At == at:
		return s.ys[i]
	}
	a, b := steps[i-1], steps[i]
	return s.ys[i-1] + (s.ys[i]-s.ys[i-1])*float64(at-a.At)/float64(b.At-a.At)
}

func (s *sequence) heads() {
	for i, l := range s.figure.Lanes {
		anchor, x := s.side(i)
		room := s.room(i)
		if i+1 < len(s.x) && len(s.x) > 2 {
			room = s.x[i+1] - s.x[i] - 20
		}
		s.text("who lane"+strconv.Itoa(i), anchor, x, s.top+12, room, nameOf(l), "")
		s.text("small", anchor, x, s.top+28, room, l.Title, "")
	}
	switch {
	case s.data == 0:
	case s.data > s.x[len(s.x)-1]:
		s.text("who", "end", width-8, s.top+12, width-8-s.x[len(s.x)-1]-90, s.figure.Data, "")
	default:
		s.text("who", "middle", s.data, s.top+12, 190, s.figure.Data, "")
	}
}

// side is where the text of a lane stands: to the right of the lifeline, and of the last
// one to its left.
func (s *sequence) side(lane int) (anchor string, x float64) {
	if s.left(lane) {
		return "end", s.x[lane] + 10
	}
	return "start", s.x[lane] - 10
}

func (s *sequence) left(lane int) bool {
	return lane > 0 && lane == len(s.x)-1 && (s.data == 0 || s.data < s.x[lane])
}

// room is how wide a lane's text may be. It has its row for itself, so it may cross other
// lifelines.
func (s *sequence) room(lane int) float64 {
	switch {
	case len(s.x) == 2 && s.data > 0 && s.data < s.x[1]:
		return s.data - s.x[0] - 20
	case s.left(lane):
		return (s.x[lane] - s.x[lane-1]) / 2
	}
	return lastLane - 20 - s.x[lane]
}

// lifeline draws what a holder had, and for how long.
func (s *sequence) lifeline(lane int) {
	l, x, n := s.figure.Lanes[lane], s.x[lane], strconv.Itoa(lane)
	s.line("life", x, s.top+40, x, s.end)
	if l.Holds {
		until := s.end
		if l.Asked > 0 {
			until = s.y(l.Asked)
		}
		from := s.y(l.From)
		s.rect("section lane"+n, x-5, from, 10, until-from)
		if l.Leased {
			beside := x - 13
			if s.left(lane) {
				beside = x + 9
			}
			e := leaseOf(l)
			early, late := s.y(e.Earliest), s.y(e.Latest)
			given := s.y(l.Given)
			s.rect("lease lane"+n, beside, given, 4, early-given)
			if late > early {
				s.rect("unsure", beside-1, early, 6, late-early)
			}
		}
	}
	for _, p := range l.Pauses {
		s.rect("pause", x-9, s.y(p.From), 18, max(4, s.y(p.To)-s.y(p.From)))
	}
}

// times writes when each step was, and how long nothing happened.
func (s *sequence) times() {
	s.text("time", "end", axisEnd, s.top+28, 90, "ms", "")
	for i, st := range s.figure.Steps {
		s.text("time", "end", axisEnd, s.ys[i]+4, 90, report.At(st.At), "")
		if i > 0 && s.ys[i]-s.ys[i-1] >= 2*rowHeight {
			mid := (s.ys[i] + s.ys[i-1]) / 2
			s.text("wait", "end", axisEnd, mid+4, 90, "⋮ "+report.Wait(s.figure.Steps[i-1].At, st.At), "")
		}
	}
}

// step draws one row.
func (s *sequence) step(st report.Step, y float64) {
	x, n := s.x[st.Lane], strconv.Itoa(st.Lane)
	op := ""
	if st.Op != 0 {
		op = fmt.Sprintf("  op %d", st.Op)
	}
	toData := st.Kind == report.StepRead || st.Kind == report.StepWrite || st.Kind == report.StepEnd
	if toData && s.data > 0 {
		s.exchange(st, x, y, op)
		return
	}
	class := "lane" + n
	switch st.Kind {
	case report.StepLease:
		class = "leased " + class
		s.line("tick", x-15, y, x+15, y)
	case report.StepPause:
		class = "paused"
		s.rect("pausing", x-3, y-3, 6, 6)
	default:
		s.dot("held "+class, x, y, 4)
	}
	anchor, at := "start", x+20
	if s.left(st.Lane) {
		anchor, at = "end", x-20
	}
	s.text("label "+class, anchor, at, y+4, s.room(st.Lane), st.Text, op)
}

// exchange draws a read, which comes from the data, a write or a COMMIT, which go to it.
func (s *sequence) exchange(st report.Step, x, y float64, op string) {
	class, text := "lane"+strconv.Itoa(st.Lane), st.Words()
	if st.Late {
		class = "late"
	}
	dir := 1.0
	if x > s.data {
		dir = -1
	}
	from, to := x+dir*7, s.data
	if st.Kind == report.StepRead {
		class = "reading " + class
		from, to = to, from
	}
	s.arrow("arrow "+class, from, to, y+3, st.Void)
	s.text("label over "+class, "middle", (x+s.data)/2, y-3, max(s.data-x, x-s.data)-24, text, op)
}

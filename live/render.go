package live

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A style is what colours a piece of a line, as the terminal is told it.
type style string

const (
	usual  style = ""
	strong style = "1"
	faint  style = "2"
	red    style = "1;31"
	green  style = "32"
	amber  style = "33"
	blue   style = "36"
)

// A piece is a part of a line in one style.
type piece struct {
	style style
	text  string
}

// A sheet gathers lines that are no wider than it.
type sheet struct {
	lines  []string
	width  int
	colour bool
	now    time.Time
}

// narrowest is the width for which a picture still makes sense.
const narrowest = 40

// Render writes a snapshot as lines that are at most width cells wide, each with its newline. Times of day are in the zone
// of s.Now. What a terminal would act on is spelled out wherever it comes from; without colour, there is no escape
// sequence at all.
func Render(w io.Writer, s Snapshot, width int, colour bool) error {
	p := &sheet{width: max(width, narrowest), colour: colour, now: s.Now}
	p.head(s)
	p.locks(s)
	if s.Control || len(s.Actors) > 0 {
		p.actors(s.Actors)
	}
	if s.Control {
		p.rules(s.Rules)
	}
	p.invariants(s.Invariants)
	p.verdicts(s)
	p.minute(s)
	p.sight(s)
	_, err := io.WriteString(w, strings.Join(p.lines, "\n")+"\n")
	return err
}

// line adds one that is cut where it is too wide.
func (p *sheet) line(pieces ...piece) {
	var b strings.Builder
	room := p.width
	for _, x := range pieces {
		text := cut(plain(x.text), room)
		room -= cells(text)
		if p.colour && x.style != usual && strings.TrimSpace(text) != "" {
			text = "\x1b[" + string(x.style) + "m" + text + "\x1b[0m"
		}
		b.WriteString(text)
	}
	p.lines = append(p.lines, strings.TrimRight(b.String(), " "))
}

// flow adds a line with a tail, which goes on beneath it, n cells in, where it does not fit.
func (p *sheet) flow(n int, tail piece, pieces ...piece) {
	used := 0
	for _, x := range pieces {
		used += cells(plain(x.text))
	}
	lines := wrap(plain(tail.text), p.width-used, p.width-n)
	p.line(append(pieces, piece{tail.style, lines[0]})...)
	for _, l := range lines[1:] {
		p.line(piece{usual, strings.Repeat(" ", n)}, piece{tail.style, l})
	}
}

// title begins a part, which has a remark at its right.
func (p *sheet) title(name, remark string) {
	p.lines = append(p.lines, "")
	if remark == "" {
		p.line(piece{strong, name})
		return
	}
	p.line(piece{strong, pad(name, p.width-cells(plain(remark))-1) + " "}, piece{faint, remark})
}

// column is how wide the column of names is.
func (p *sheet) column(names []string) int {
	w := 0
	for _, n := range names {
		w = max(w, cells(plain(n)))
	}
	return min(w, p.width*3/10)
}

// begin begins a part that has a line for each of a list, or says that there is none. It returns how wide the column of names is.
func begin[T any](p *sheet, title, none string, list []T, name func(T) string) int {
	p.title(title, "")
	if len(list) == 0 {
		p.line(piece{faint, "  " + none})
	}
	var names []string
	for _, x := range list {
		names = append(names, name(x))
	}
	return p.column(names)
}

func (p *sheet) head(s Snapshot) {
	left := join(s.Name)
	if s.Version != "" {
		left += " " + s.Version
	}
	right := s.Now.Format("15:04:05")
	if !s.Since.IsZero() {
		right += "  up " + spell(s.Now.Sub(s.Since))
	}
	p.line(piece{strong, pad(plain(left), p.width-cells(right)-1) + " "}, piece{faint, right})
	word, st, rest := headline(s)
	p.flow(0, piece{usual, rest}, piece{st, word + ": "})
}

func (p *sheet) locks(s Snapshot) {
	p.title("LOCKS", "")
	locks := s.Locks
	if !s.Blind.IsZero() {
		p.line(piece{amber, "  not known since " + clock(s.Blind, p.now)})
		return
	}
	if len(locks) == 0 {
		p.line(piece{faint, "  none has been seen"})
		return
	}
	var names, holders []string
	for _, l := range locks {
		names, holders = append(names, l.Name), append(holders, l.Holder)
	}
	name, holder := p.column(names), min(p.column(holders), p.width/5)
	former := ""
	for i, l := range locks {
		shown := l.Name
		if i > 0 && shown == former {
			shown = ""
		}
		former = l.Name
		p.lock(l, pad(plain(shown), name), pad(plain(l.Holder), holder))
	}
}

// lock is one term: its bar has what is left of the lease, dark where it is certain and light where it may have ended.
func (p *sheet) lock(l Lock, name, holder string) {
	waiting := ""
	if l.Waiters > 0 {
		waiting = fmt.Sprintf("%d waiting", l.Waiters)
	}
	if !l.Held && !l.Overrun {
		p.line(piece{faint, "  " + name + "  " + join(unheld(l), waiting)})
		return
	}
	bar, words, st := p.lease(l)
	facts := join(goneOf(l), fenceOf(l), waiting, marginOf(l))
	p.flow(cells(name)+cells(holder)+6, piece{faint, facts}, piece{usual, "  "}, piece{strong, name}, piece{usual, "  " + holder + "  "}, piece{st, bar}, piece{st, " " + pad(words, 15) + "  "})
}

// unheld is what there is to say of a lock that nobody is known to hold.
func unheld(l Lock) string {
	if l.Stranger {
		return "held by somebody unseen"
	}
	return "free"
}

func goneOf(l Lock) string {
	if !l.Gone {
		return ""
	}
	return "its holder is gone"
}

func fenceOf(l Lock) string {
	if l.Fence == nil {
		return ""
	}
	return fmt.Sprintf("fence %d", *l.Fence)
}

func marginOf(l Lock) string {
	if l.Margin == nil {
		return ""
	}
	margin := milliseconds(*l.Margin)
	if margin < 0 {
		return "wrote " + spell(-margin) + " after its end"
	}
	return "wrote " + spell(margin) + " before its end"
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// lease draws a bar, and says in words what it shows.
func (p *sheet) lease(l Lock) (bar, words string, st style) {
	n := min(24, p.width/5)
	ttl := milliseconds(l.TTL)
	switch {
	case ttl <= 0:
		return strings.Repeat("█", n), "no lifetime", usual
	case l.Overrun && l.EndsTo.IsZero():
		return strings.Repeat("!", n), "overrun", red
	case l.Overrun:
		return strings.Repeat("!", n), "overrun " + spell(max(0, p.now.Sub(l.EndsTo))), red
	case l.EndsFrom.IsZero() || l.EndsTo.IsZero():
		return strings.Repeat("▒", n), "end not known", amber
	}
	part := func(d time.Duration) int {
		return int(min(1, max(0, float64(d)/float64(ttl)))*float64(n) + 0.5)
	}
	sure, open := part(l.EndsFrom.Sub(p.now)), part(l.EndsTo.Sub(p.now))
	if open = max(open, sure); open == sure && open < n && l.EndsTo.After(p.now) {
		open++
	}
	bar = strings.Repeat("█", sure) + strings.Repeat("▒", open-sure) + strings.Repeat("░", n-open)
	switch left := l.EndsFrom.Sub(p.now); {
	case l.EndsTo.Before(p.now):
		return bar, "ended", usual
	case left <= 0:
		return bar, "may have ended", amber
	case left < ttl/5:
		return bar, spell(left) + " left", amber
	default:
		return bar, spell(left) + " left", blue
	}
}

func (p *sheet) actors(actors []Actor) {
	name := begin(p, "ACTORS", "nobody is connected", actors, func(a Actor) string { return a.Label })
	for _, a := range actors {
		st := green
		by, left := "", ""
		switch a.State {
		case Frozen:
			st = blue
		case Stalled:
			st = amber
		}
		if a.State != Running {
			by = prefixed("by ", strings.TrimPrefix(a.By, "by "))
			left = p.left(a.Until)
		}
		facts := join(by, left, prefixed("holds ", strings.Join(a.Holds, ", ")), many(a.Sessions, "connection"), pidOf(a))
		p.flow(name+13, piece{usual, facts}, piece{usual, "  "}, piece{strong, pad(plain(a.Label), name)}, piece{usual, "  "}, piece{st, pad(plain(a.State), 7)}, piece{usual, "  "})
	}
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func pidOf(a Actor) string {
	if a.PID == 0 {
		return ""
	}
	return fmt.Sprintf("pid %d", a.PID)
}

// left says how long it is until t.
func (p *sheet) left(t time.Time) string {
	switch d := t.Sub(p.now); {
	case t.IsZero():
		return ""
	case d <= 0:
		return "is being let go"
	default:
		return spell(d) + " left"
	}
}

func (p *sheet) rules(rules []Rule) {
	name := begin(p, "RULES", "there is none: it only watches", rules, func(r Rule) string { return r.Name })
	for _, r := range rules {
		state, st := "off  ", faint
		if r.Armed {
			state, st = "armed", amber
		}
		p.flow(name+11, piece{usual, r.Text}, piece{usual, "  "}, piece{st, state}, piece{usual, "  "}, piece{strong, pad(plain(r.Name), name)}, piece{usual, "  "})
		p.flow(name+11, piece{faint, join(fmt.Sprintf("%d seen", r.Seen), fmt.Sprintf("%d fired", r.Fired), barredOf(r), timesOf(r), p.forOf(r), r.Why)}, piece{usual, strings.Repeat(" ", name+11)})
	}
}

func barredOf(r Rule) string {
	if r.Barred == 0 {
		return ""
	}
	return fmt.Sprintf("%d barred", r.Barred)
}

func timesOf(r Rule) string {
	switch {
	case r.Left == nil:
		return ""
	case *r.Left == 1:
		return "1 time left"
	}
	return fmt.Sprintf("%d times left", *r.Left)
}

func (p *sheet) forOf(r Rule) string {
	if !r.Armed || r.Until.IsZero() {
		return ""
	}
	return "armed for " + spell(max(0, r.Until.Sub(p.now)))
}

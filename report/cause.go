package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// ShownCauses is how many root causes a report shows one by one.
const ShownCauses = 50

// A Cause is what one thing that went wrong comes to: the verdicts of one code and level
// about the locks whose keys are alike and one table, and what follows from them.
type Cause struct {
	Code, Name, Level string
	Meaning           string // harm, hazard, good or inconclusive, in words
	Bad               bool   // it fails the run, or is harm that is not accepted
	Good              bool   // a defence that worked
	Standing          string // why it counts otherwise than its class would
	Where             string
	Count, Victims    int
	With              []string // verdicts that are about the same holders, in a line each
	Premise           string   // under what was injected
	Proof             string
	Means, Do         string  // what docs/verdicts.md says
	Figure            *Figure // nil: there is none
}

// A caused is a cause while it is found.
type caused struct {
	group
	first check.Verdict     // the one to show: with a picture, if one has one
	at    map[lockTerm]bool // what its verdicts blame
	with  map[string]int    // by the title of a code and its level
	order []string          // of those
}

type lockTerm struct {
	lock string
	term lock.TermID
}

// rootCauses lays the verdicts together by what caused them, the worst first.
func (r Run) rootCauses() []*caused {
	var out []*caused
	byKey, of := map[string]*caused{}, blame{terms: map[lockTerm]*caused{}, lost: map[string]*caused{}}
	for _, v := range r.byWeight() {
		g := r.groupOf(v)
		if into := r.followsFrom(v, of); into != nil {
			into.also(g)
			continue
		}
		shape := r.shapeOf(v.Lock)
		key := fmt.Sprint(v.Code, v.Level, v.Class, v.Harm, g.accepted, shape, "\x00", v.Table)
		c := byKey[key]
		if c == nil {
			c = &caused{group: g, first: v, at: map[lockTerm]bool{}, with: map[string]int{}}
			byKey[key], out = c, append(out, c)
		} else {
			c.count(v, shape)
			if c.first.Picture == nil && v.Picture != nil {
				c.first = v
			}
		}
		of.note(v, c)
	}
	return out
}

// A blame is where to look for the cause that a verdict follows from: by the term, and
// lost updates by level and table.
type blame struct {
	terms map[lockTerm]*caused
	lost  map[string]*caused
}

func (b blame) note(v check.Verdict, c *caused) {
	for _, t := range blamed(v) {
		at := lockTerm{v.Lock, t}
		c.at[at] = true
		if b.terms[at] == nil {
			b.terms[at] = c
		}
	}
	if kind := string(v.Level) + v.Table; (v.Code == "LF104" || v.Code == "LF106") && b.lost[kind] == nil {
		b.lost[kind] = c
	}
}

// count adds a verdict to a cause that is there already. Of several locks it names the
// shape that they have in common.
func (c *caused) count(v check.Verdict, shape string) {
	locks, proofs := c.Locks, c.Proofs
	c.add(v)
	c.Locks, c.Proofs = locks, proofs
	if v.Lock != "" && !slices.Contains(locks, v.Lock) {
		c.Locks = []string{shape}
	}
}

// byWeight sorts the verdicts as their groups are sorted.
func (r Run) byWeight() []check.Verdict {
	all := slices.Concat(r.Result.Verdicts, r.blindSpots())
	groups := make([]group, len(all))
	order := make([]int, len(all))
	for i, v := range all {
		groups[i], order[i] = r.groupOf(v), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return byWeight(groups[a], groups[b]) })
	out := make([]check.Verdict, len(all))
	for i, at := range order {
		out[i] = all[at]
	}
	return out
}

// groupOf is the group of one verdict alone.
func (r Run) groupOf(v check.Verdict) group {
	g := group{Code: v.Code, Name: nameOf(v), Class: string(v.Class), Level: string(v.Level), Harm: v.Harm, accepted: r.acceptedBy(v)}
	g.add(v)
	g.fails = r.fails(g)
	return g
}

// shapeOf is a lock with * for what looks like an identifier in its key.
func (r Run) shapeOf(key string) string {
	if strings.HasPrefix(key, "row:") {
		return r.patternOf(key)
	}
	return lock.Shape(key)
}

// blamed lists the terms that a verdict blames: of a pile of several only the first is
// known, so none.
func blamed(v check.Verdict) []lock.TermID {
	if len(v.Terms) == 0 || v.Count > 1 && v.Code == "LF102" {
		return nil
	}
	return v.Terms[:1]
}

// signs are the codes that tell what a lease that ended led to. A verdict of another code
// says itself what is to be mended.
func signs() []string { return []string{"LF101", "LF102", "LF103", "LF201"} }

// followsFrom returns the cause that a verdict is one more sign of: one that blames the
// same term, or lost updates that a counter fell short by.
func (r Run) followsFrom(v check.Verdict, of blame) *caused {
	if v.Code == "LF403" && !r.ranAhead(v.Table) {
		return of.lost[string(v.Level)+v.Table]
	}
	if len(v.Terms) == 0 || !slices.Contains(signs(), v.Code) {
		return nil
	}
	for i, t := range v.Terms {
		c := of.terms[lockTerm{v.Lock, t}]
		switch {
		case c == nil || c.Code == v.Code:
		case v.Code == "LF102" && (v.Count == 1 || r.overlapsOf(v, c)): // of the two either may be the late one
			return c
		case v.Code != "LF102" && i == 0:
			return c
		}
	}
	return nil
}

// overlapsOf reports whether each pair that a verdict counts has a term that a cause blames.
func (r Run) overlapsOf(v check.Verdict, c *caused) bool {
	n := 0
	for _, o := range r.Result.Facts.Overlaps {
		switch {
		case o.Lock != v.Lock:
		case c.at[lockTerm{v.Lock, o.A}] || c.at[lockTerm{v.Lock, o.B}]:
			n++
		default:
			return false
		}
	}
	return n >= v.Count
}

func (r Run) ranAhead(table string) bool {
	return slices.ContainsFunc(r.Result.Counters, func(c check.Counter) bool { return c.Table == table && c.Known && c.NetDeficit < 0 })
}

// also counts a verdict that is one more sign of the same.
func (c *caused) also(g group) {
	c.fails = c.fails || g.fails
	title := g.Code + " " + g.Name + ", " + g.Level + " " + g.meaning()
	if c.with[title] == 0 {
		c.order = append(c.order, title)
	}
	c.with[title] += g.Count
}

// Causes lists the root causes, the worst first, at most fifty, and says how many more
// there are.
func (r Run) Causes() (shown []Cause, more int) {
	all := r.rootCauses()
	if r.unexercised() {
		all = append(all, &caused{group: notExercised(r), first: check.Verdict{Proof: strings.Join(notExercised(r).Proofs, " ")}})
	}
	more = max(0, len(all)-ShownCauses)
	soiled := r.whySoiled() != ""
	for _, c := range all[:len(all)-more] {
		shown = append(shown, r.told(c, soiled))
	}
	return shown, more
}

func (r Run) told(c *caused, soiled bool) Cause {
	t := Cause{Code: c.Code, Name: c.Name, Level: c.Level, Meaning: c.meaning(), Standing: c.standing(r), Where: c.where(),
		Bad: c.fails && !soiled || c.doubtful() && !r.expects(c.Code), Good: c.Class == string(check.Good),
		Count: c.Count, Victims: c.Victims, Proof: c.first.Proof, Figure: r.figure(c.first)}
	for _, title := range c.order {
		t.With = append(t.With, fmt.Sprintf("%s x%d", title, c.with[title]))
	}
	if c.Train > 0 {
		t.With = append(t.With, fmt.Sprintf("%d of them follow from others", c.Train))
	}
	t.Premise = r.premise(t.Figure)
	if code, ok := lookup(c.Code); ok {
		t.Means, t.Do = Advice(code)
	}
	return t
}

// premise says what was done to the holders of a figure.
func (r Run) premise(f *Figure) string {
	if f == nil {
		return ""
	}
	var said []string
	for _, l := range f.Lanes {
		for _, p := range l.Pauses {
			i := slices.IndexFunc(r.Injections, func(i history.Injection) bool { return i.ID == p.Injection })
			said = append(said, under(l, p, r.Injections[i]))
		}
	}
	if len(said) == 0 {
		return "No fault was injected into these holders meanwhile: it came about by itself."
	}
	return "Under " + strings.Join(said, ", and ") + "."
}

func under(l Lane, p Pause, i history.Injection) string {
	who := l.Who
	if l.Letter != "" {
		who = l.Letter + " (" + l.Who + ")"
	}
	lasted := span(max(0, p.To.Sub(p.From)))
	what := map[string]string{
		"freeze": "a pause of " + lasted + ": " + who + " was frozen", "stall": "a stall of " + lasted + ": " + who + " was held up",
		"hold": "a stall of " + lasted + ": one direction of a connection of " + who + " was held", "drop-reply": "the loss of a reply to " + who,
		"reset": "the reset of a connection of " + who, "lose-key": "the loss of a key of " + who, "kill-backend": "the end of a backend of " + who,
	}[i.Effect]
	return fmt.Sprintf("%s, by %s (injection %d)", cmp.Or(what, i.Effect+" of "+who), i.Rule, i.ID)
}

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A group is the verdicts of one code at one level, as every output shows
// them. They are kept apart by what they mean, too: of two locks one may be
// declared and the other not.
type group struct {
	Code, Name, Class, Level string
	Harm                     bool
	Count                    int // how often: root causes, pairs, writes, by code
	Victims                  int // acknowledged writes that they cost
	Train                    int // of Count, those that follow from others
	Locks, Tables            []string
	Proofs                   []string

	fails    bool // fails the run by itself
	accepted int  // the entry of Run.Accepted that covers it, from 1; 0: none
}

// groups lays the judge's verdicts together and adds LF401, and LF402 for what
// the judge was not told of. Harm that was
// proven comes first, then the rest by class, level and code, and last what is accepted.
func groups(r Run) []group {
	var out []group
	for _, v := range slices.Concat(r.Result.Verdicts, r.blindSpots()) {
		by := r.acceptedBy(v)
		i := slices.IndexFunc(out, func(g group) bool {
			return g.Code == v.Code && g.Level == string(v.Level) && g.Class == string(v.Class) && g.Harm == v.Harm && g.accepted == by
		})
		if i < 0 {
			out = append(out, group{Code: v.Code, Name: nameOf(v), Class: string(v.Class),
				Level: string(v.Level), Harm: v.Harm, accepted: by})
			i = len(out) - 1
		}
		out[i].add(v)
	}
	if r.unexercised() {
		out = append(out, notExercised(r))
	}
	soiled := r.whySoiled() != ""
	for i := range out {
		out[i].fails = r.fails(out[i]) && !soiled
	}
	slices.SortStableFunc(out, byWeight)
	return out
}

// blindSpots is LF402 of what the judge was not told of: connections that could not
// be followed, and whatever else the caller knows not to have been seen.
func (r Run) blindSpots() []check.Verdict {
	var out []check.Verdict
	for _, said := range r.Blind {
		out = append(out, check.Verdict{Code: "LF402", Class: check.Inconclusive, Level: check.Proven, Count: 1, Proof: said + "."})
	}
	return out
}

func nameOf(v check.Verdict) string {
	if v.Name != "" {
		return v.Name
	}
	c, _ := lookup(v.Code)
	return c.Name
}

func notExercised(r Run) group {
	return group{Code: "LF401", Name: "not-exercised", Class: string(check.Inconclusive),
		Level: string(check.Proven), Count: 1,
		Proofs: append([]string{"Rules were armed, and " + nothingEnded(r.Result.Facts) + " between its grant and its owner's release request."},
			r.whyUnexercised()...)}
}

func (g *group) add(v check.Verdict) {
	count, victims := Counts(v)
	g.Count += count
	g.Victims += victims
	g.Train += v.Train
	g.Locks = addOnce(g.Locks, v.Lock)
	g.Tables = addOnce(g.Tables, v.Table)
	if v.Proof != "" {
		g.Proofs = append(g.Proofs, v.Proof)
	}
}

// Counts returns what a verdict adds to the count of its code, and how many
// acknowledged writes it cost where its code counts those apart.
func Counts(v check.Verdict) (count, victims int) {
	c, _ := lookup(v.Code)
	switch {
	case c.victims:
		return 1, v.Count
	case c.amount:
		return 1, 0
	}
	return max(1, v.Count), 0
}

func addOnce(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func byWeight(a, b group) int {
	return cmp.Or(
		cmp.Compare(one(a.accepted > 0), one(b.accepted > 0)),
		cmp.Compare(classWeight(a), classWeight(b)),
		cmp.Compare(levelWeight(a.Level), levelWeight(b.Level)),
		cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.accepted, b.accepted),
	)
}

func classWeight(g group) int {
	order := []string{string(check.Declared), string(check.Hazard), string(check.Good), string(check.Inconclusive)}
	if g.Harm {
		return 0
	}
	return 1 + slices.Index(order, g.Class)
}

func levelWeight(level string) int {
	return slices.Index([]string{string(check.Proven), string(check.Likely), string(check.Possible)}, level)
}

// doubtful: harm that the evidence neither proves nor rules out.
func (g group) doubtful() bool {
	return g.Harm && g.Level != string(check.Proven) && g.accepted == 0
}

// noDefence: a hazard under a code that is else a defence that worked. Whoever
// expects the defence has not seen it.
func (g group) noDefence() bool {
	c, _ := lookup(g.Code)
	return c.Class == string(check.Good) && g.Class != c.Class
}

// inconclusive: what by its nature says that it could not be told.
func (g group) inconclusive() bool {
	return g.Class == string(check.Inconclusive) && g.accepted == 0
}

// title is the group in one line: code, name, count.
func (g group) title() string {
	return fmt.Sprintf("%s %s x%d", g.Code, g.Name, g.Count)
}

// where names the locks and tables of the group, at most three of each.
func (g group) where() string {
	parts := make([]string, 0, 2)
	if len(g.Locks) > 0 {
		parts = append(parts, few(g.Locks, 3))
	}
	if len(g.Tables) > 0 {
		parts = append(parts, "table "+few(g.Tables, 3))
	}
	return strings.Join(parts, ", ")
}

// few joins the first n of a list and counts the others.
func few(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:n], ", "), len(list)-n)
}

// many is a number with its noun, which takes an s unless there is one of it.
func many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockfaultd/lockfaultd/internal/nearest"
)

// A Requirement is what a run must have counted to show anything, as --require
// names it. A run that does not meet one is inconclusive.
type Requirement struct {
	Fact string // one of Countable
	Op   string // one of >= <= > < =
	N    int
}

func (q Requirement) String() string { return fmt.Sprintf("%s%s%d", q.Fact, q.Op, q.N) }

// A Countable is a fact that can be required, and what it counts.
type Countable struct {
	Name, What string
	count      func(Run) int
}

// endedWhileHeld is what every run with rules must have come to, unless it says else.
const endedWhileHeld = "lease-expired-while-held"

// Countables returns every fact that can be required, the most telling first.
func Countables() []Countable {
	return []Countable{
		{endedWhileHeld, "leases that ended, and locks that were lost, between the grant and the owner's release request", func(r Run) int { return r.Result.Facts.EndedWhileHeld }},
		{"injections", "pauses that landed", func(r Run) int { return r.tallyAll().Landed }},
		{"injections-in-section", "pauses that began while their target held a lock", func(r Run) int { return r.tallyAll().Section }},
		{"resets", "connections that rules reset, under a lock or while it was asked for", func(r Run) int { return r.resets() }},
		{"overlaps", "pairs of terms that were in their sections at once", func(r Run) int { return r.Result.Facts.Overlap }},
		{"rejected", "writes and claims that a guard refused", func(r Run) int { return r.Result.Facts.Rejected }},
		{"grants", "locks that were granted", func(r Run) int { return r.Result.Facts.Grants }},
		{"refusals", "locks that were asked for in vain", func(r Run) int { return r.Result.Facts.Refusals }},
		{"renewals", "leases that were renewed", func(r Run) int { _, n := shortestLease(r.Result.Facts); return n }},
		{"sections", "sections that ended by a release request", func(r Run) int { return r.Result.Facts.Sections }},
		{"reads", "reads inside sections", func(r Run) int { return r.Result.Facts.Reads }},
		{"writes", "writes inside sections", func(r Run) int { return r.Result.Facts.Writes }},
		{"actors", "processes that were told apart", func(r Run) int { return r.Result.Facts.Actors }},
		{"connections", "connections to the proxies", func(r Run) int { return r.Sessions }},
	}
}

func countable(name string) (Countable, bool) {
	for _, c := range Countables() {
		if c.Name == name {
			return c, true
		}
	}
	return Countable{}, false
}

// countableNames lists the names, for errors.
func countableNames() (names []string) {
	for _, c := range Countables() {
		names = append(names, c.Name)
	}
	return names
}

// ParseRequirement reads a value of --require, such as grants>=10. An error says
// what it expected, and of an unknown name which there are and which is nearest.
func ParseRequirement(text string) (Requirement, error) {
	at := strings.IndexAny(text, "<>=")
	if at < 0 {
		return Requirement{}, fmt.Errorf("--require %q: expected NAME>=N, NAME<=N or NAME=N, in quotes, as a shell takes > and < for its own", text)
	}
	rest := strings.TrimLeft(text[at:], "<>=")
	q := Requirement{Fact: strings.TrimSpace(text[:at]), Op: text[at : len(text)-len(rest)]}
	if _, ok := countable(q.Fact); !ok {
		names := countableNames()
		return q, fmt.Errorf("--require %q: unknown name %q: the nearest is %s; expected one of %s", text, q.Fact, nearest.Word(q.Fact, names), strings.Join(names, ", "))
	}
	if _, ok := compares()[q.Op]; !ok {
		return q, fmt.Errorf("--require %q: unknown comparison %q: expected >=, <=, >, < or =", text, q.Op)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(rest), 10, 31)
	if err != nil {
		return q, fmt.Errorf("--require %q: %q is no number: expected a whole one that is not negative", text, strings.TrimSpace(rest))
	}
	q.N = int(n)
	return q, nil
}

func compares() map[string]func(a, b int) bool {
	return map[string]func(a, b int) bool{
		">=": func(a, b int) bool { return a >= b }, "<=": func(a, b int) bool { return a <= b },
		">": func(a, b int) bool { return a > b }, "<": func(a, b int) bool { return a < b },
		"=": func(a, b int) bool { return a == b },
	}
}

// metBy reports whether a count is enough.
func (q Requirement) metBy(n int) bool { return compares()[q.Op](n, q.N) }

func (q Requirement) counted(r Run) int {
	c, _ := countable(q.Fact)
	return c.count(r)
}

// said is the requirement with what was counted.
func (q Requirement) said(r Run) string {
	n := q.counted(r)
	if q.metBy(n) {
		return fmt.Sprintf("required %s: counted %d", q, n)
	}
	return fmt.Sprintf("required %s and not met: counted %d", q, n)
}

// unmetRequirements says of each requirement that is not met what was counted.
func (r Run) unmetRequirements() (out []string) {
	for _, q := range r.Require {
		if !q.metBy(q.counted(r)) {
			out = append(out, q.said(r))
		}
	}
	return out
}

// ownHazard reports whether the user says for himself how many leases are to end
// while held, and takes none for enough. It is then no LF401 that none did.
func (r Run) ownHazard() bool {
	named, enough := false, true
	for _, q := range r.Require {
		if q.Fact == endedWhileHeld {
			named, enough = true, enough && q.metBy(0)
		}
	}
	return named && enough
}

// requirements lists those of the user, and before them the one that rules bring
// along where the user has none of his own about it, and none has reset a connection under a lock.
func (r Run) requirements() (list []Requirement, implied int) {
	own := false
	for _, q := range r.Require {
		own = own || q.Fact == endedWhileHeld
	}
	if len(r.Rules) > 0 && !own && r.resets() == 0 {
		return append([]Requirement{{endedWhileHeld, ">=", 1}}, r.Require...), 1
	}
	return r.Require, 0
}

func (r Run) toJSONRequirements() []jsonRequirement {
	all, implied := r.requirements()
	out := make([]jsonRequirement, 0, len(all))
	for i, q := range all {
		n := q.counted(r)
		out = append(out, jsonRequirement{Text: q.String(), Counted: n, Met: q.metBy(n), Implied: i < implied})
	}
	return out
}

func (r Run) requireCases() (cases []junitCase) {
	for _, q := range r.Require {
		c := junitCase{Class: "lockfaultd.require", Name: q.String(), Out: q.said(r)}
		if !q.metBy(q.counted(r)) {
			c.Skipped, c.Out = note("", c.Out, ""), ""
		}
		cases = append(cases, c)
	}
	return cases
}

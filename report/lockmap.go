package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// Map writes which lock guards what, and for how long, for a terminal: every entry,
// and nothing else of the report. It returns the writer's first error.
func Map(w io.Writer, r Run) error {
	p := &page{w: w}
	if len(r.Result.Map) == 0 {
		p.raw("no lock was seen")
	}
	for i, m := range r.Result.Map {
		if i > 0 {
			p.raw("")
		}
		mapEntry(p, 0, m)
	}
	return p.err
}

// textMap is the map in the summary: its first entries.
func textMap(p *page, r Run) {
	if len(r.Result.Map) == 0 {
		return
	}
	p.raw("")
	p.raw("map")
	for _, m := range r.Result.Map[:min(len(r.Result.Map), shownLocks)] {
		mapEntry(p, 2, m)
	}
	if n := len(r.Result.Map) - shownLocks; n > 0 {
		p.sub(2, fmt.Sprintf("and %d more: probe report --map", n))
	}
}

func mapEntry(p *page, depth int, m check.MapEntry) {
	p.sub(depth, mapTitle(m))
	for _, line := range mapLines(m) {
		p.sub(depth+4, line)
	}
}

// mapTitle is the lock and what is known of its nature.
func mapTitle(m check.MapEntry) string {
	title := m.Lock
	var parts []string
	if m.Keys > 1 {
		parts = append(parts, fmt.Sprintf("%d keys", m.Keys))
	}
	if sort := sortOf(m); sort != "" {
		parts = append(parts, sort)
	}
	switch {
	case m.Purpose != "" && m.Declared:
		parts = append(parts, "for "+m.Purpose+", as declared")
	case m.Purpose != "":
		parts = append(parts, "for "+m.Purpose+", it seems: "+m.Because)
	default:
		parts = append(parts, "nothing shows what for")
	}
	return title + " (" + strings.Join(parts, "; ") + ")"
}

// sortOf says how many may hold the lock. The rows that a condition chooses may be several,
// of which each admits one: a name for them is no semaphore.
func sortOf(m check.MapEntry) string {
	if m.Sort == lock.Semaphore && strings.HasPrefix(m.Lock, "row:") {
		return "row lock"
	}
	return string(m.Sort)
}

func mapLines(m check.MapEntry) []string {
	var lines []string
	for _, g := range m.Guards {
		lines = append(lines, verbOf(g)+guardLine(g))
	}
	if len(m.Guards) == 0 {
		lines = append(lines, "guards no table that was seen to be written")
	}
	if m.Length.N > 0 {
		lines = append(lines, fmt.Sprintf("%s: half within %s, 99 %% within %s, 99.9 %% within %s, the longest %s",
			many(m.Length.N, "section"), span(m.Length.P50), span(m.Length.P99), span(m.Length.P999), span(m.Length.Max)))
	}
	if lease := leaseLine(m); lease != "" {
		lines = append(lines, lease)
	}
	return lines
}

// verbOf says that the lock guards a table, or that it may.
func verbOf(g check.Guarded) string {
	if g.Writes == 0 {
		return "may guard "
	}
	return "guards "
}

// guardLine is one table, with how sure it is that the lock guards it.
func guardLine(g check.Guarded) string {
	s := tableOf(check.TableFact{Table: g.Table, Columns: g.Columns})
	if g.Rows > 0 {
		s += ", " + many(g.Rows, "row")
		if g.Where != "" {
			s += " by " + g.Where
		}
	}
	all := g.Writes + g.Elsewhere + g.Nobodys
	if g.Writes == all {
		s += fmt.Sprintf(": all of %s", many(all, "write"))
	} else {
		s += fmt.Sprintf(": %d of %s, %d under other locks and %d under none for sure", g.Writes, many(all, "write"), g.Elsewhere, g.Nobodys)
	}
	if g.Perhaps > 0 {
		s += fmt.Sprintf(", of which %d may be of its sections", g.Perhaps)
	}
	s += fmt.Sprintf("; confidence %.2f", g.Sure)
	if g.Declared {
		s += ", declared"
	}
	return s
}

func leaseLine(m check.MapEntry) string {
	var parts []string
	if m.Lifetime > 0 {
		parts = append(parts, "lease "+span(m.Lifetime))
	}
	if m.Margin.N > 0 {
		parts = append(parts, fmt.Sprintf("left of it at a section's last write: %s at least, %s in half of them", span(m.Margin.Min), span(m.Margin.P50)))
	}
	if m.Suffices > 0 {
		parts = append(parts, span(sufficing(m))+" would have sufficed for all that was seen")
	}
	return strings.Join(parts, "; ")
}

// sufficing is the lifetime that would have sufficed, in whole milliseconds.
func sufficing(m check.MapEntry) time.Duration {
	return (m.Suffices + time.Millisecond - 1).Truncate(time.Millisecond)
}

type jsonMap struct {
	Lock       string        `json:"lock"`
	Keys       int           `json:"keys"`
	Sort       string        `json:"sort,omitempty"`
	Purpose    string        `json:"purpose,omitempty"`
	Declared   bool          `json:"declared"`
	Because    string        `json:"because,omitempty"`
	Guards     []jsonGuarded `json:"guards"`
	Sections   int           `json:"sections"`
	Length     jsonSpread    `json:"length"`
	LifetimeNs int64         `json:"lifetime_ns"`
	Margin     jsonSpread    `json:"margin"`
	SufficesNs int64         `json:"suffices_ns"`
}

type jsonGuarded struct {
	Table     string   `json:"table"`
	Columns   []string `json:"columns"`
	Where     string   `json:"where,omitempty"`
	Rows      int      `json:"rows"`
	Writes    int      `json:"writes"`
	Elsewhere int      `json:"elsewhere"`
	Nobodys   int      `json:"nobodys"`
	Perhaps   int      `json:"perhaps,omitempty"`
	Sure      float64  `json:"sure"`
	Declared  bool     `json:"declared"`
}

type jsonSpread struct {
	N      int   `json:"n"`
	MinNs  int64 `json:"min_ns"`
	P50Ns  int64 `json:"p50_ns"`
	P99Ns  int64 `json:"p99_ns"`
	P999Ns int64 `json:"p999_ns"`
	MaxNs  int64 `json:"max_ns"`
}

func toJSONMap(m check.MapEntry) jsonMap {
	return jsonMap{Lock: m.Lock, Keys: m.Keys, Sort: sortOf(m), Purpose: m.Purpose, Declared: m.Declared, Because: m.Because,
		Guards: each(m.Guards, func(g check.Guarded) jsonGuarded {
			return jsonGuarded{g.Table, list(g.Columns), g.Where, g.Rows, g.Writes, g.Elsewhere, g.Nobodys, g.Perhaps, g.Sure, g.Declared}
		}),
		Sections: m.Sections, Length: spread(m.Length), LifetimeNs: int64(m.Lifetime), Margin: spread(m.Margin), SufficesNs: int64(sufficing(m))}
}

func spread(q check.Quantiles) jsonSpread {
	return jsonSpread{q.N, int64(q.Min), int64(q.P50), int64(q.P99), int64(q.P999), int64(q.Max)}
}

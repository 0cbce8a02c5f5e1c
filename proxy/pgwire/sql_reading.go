package pgwire

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Reading is what is told of one statement of a SQL text: what a rule can be
// about, and what the transaction's writes are known by.
type Reading struct {
	Verb     string    // in capitals; that of the write, if there is one in a WITH list or behind EXPLAIN ANALYZE
	Kind     lock.Kind // "" if it neither reads nor writes a table, nor begins or ends a transaction
	Tables   []string  // that it names, sorted; those of a catalog are among them
	Writes   []string  // those of Tables that it changes, locks or defines
	Maybe    bool      // it runs code that cannot be seen, and so may write
	Secret   bool      // nothing of it is kept: it may hold a password
	From, To int       // offsets in the text
}

// Read reads a text as a [Tracker] reads that of a Query or a Parse.
func Read(text string) []Reading {
	var s surveyor
	s.start(text)
	var out []Reading
	for s.found() && len(out) < maxList {
		o := s.statement()
		t := s.read()
		r := Reading{Verb: t.verb, Kind: t.kind, Maybe: t.maybe, Secret: secret(text[o.from:o.to]), From: o.from, To: o.to}
		if t.system {
			r.Kind = o.kind
		}
		for i := range s.tables {
			r.add(s.table(i))
		}
		out = append(out, r)
	}
	return out
}

func (r *Reading) add(m *mention) {
	lists := []*[]string{&r.Tables, &r.Writes}
	if !m.written {
		lists = lists[:1]
	}
	name := m.name()
	for _, list := range lists {
		if i, found := slices.BinarySearch(*list, name); !found {
			*list = slices.Insert(*list, i, name)
		}
	}
}

package pgwire

import "github.com/lockfaultd/lockfaultd/lock"

// query reads a statement that may stand in a WITH list. Its verb is that of
// the outer one if that one writes, else of the first in the list that does.
func (s *surveyor) query() {
	known := s.known
	if s.kw == kwWith {
		s.with()
	}
	verb := s.tok
	switch s.kw {
	case kwInsert:
		s.insert()
	case kwUpdate:
		s.next()
		s.target()
		s.clauses(true)
	case kwDelete:
		s.next()
		s.take(kwFrom)
		s.change()
	case kwMerge:
		s.next()
		s.take(kwInto)
		s.change()
	default:
		s.reads(verb)
		s.known = known
		return
	}
	s.known = known
	s.writes(verb)
}

// writes notes a statement that changes data. One in a WITH list gives its
// place up to the outer one.
func (s *surveyor) writes(verb token) {
	if s.depth == 0 {
		s.out.kind, s.out.indirect = "", false
	}
	s.does(lock.Write, verb)
}

// reads reads a SELECT and kin.
func (s *surveyor) reads(verb token) {
	if (s.depth == 0 || s.out.verb.op("(")) && s.out.kind != lock.Write {
		s.out.verb = verb
	}
	s.operand()
	s.clauses(true)
	if s.out.kind == lock.Write {
		s.out.indirect = s.depth == 0 && s.out.verb != verb
	} else if s.tables > 0 {
		s.does(lock.Read, verb)
	}
}

// operand reads the first word of what UNION and kin join: for TABLE also the
// name.
func (s *surveyor) operand() {
	switch {
	case s.kw == kwTable:
		s.next()
		s.take(kwOnly)
		if m, ok := s.name(); ok {
			s.mention(m)
		}
	case s.kw == kwSelect, s.kw == kwValues:
		s.next()
	}
}

// with reads a WITH list. A name is known to what stands behind it, in a
// recursive list also to its own query, and to those before it: where such a list
// is not whole, any table of it may turn out to be a name.
func (s *surveyor) with() {
	s.next()
	recursive, known, mentioned := s.take(kwRecursive), s.known, s.tables
	s.queries(recursive)
	switch {
	case !recursive:
	case s.end():
		s.forget(mentioned, mention.plain)
	default:
		names := s.common[known:s.known]
		s.forget(mentioned, func(m mention) bool { return m.among(names) })
	}
}

// queries reads the queries of a WITH list and learns their names.
func (s *surveyor) queries(recursive bool) {
	for !s.end() {
		name := s.tok
		s.next()
		if s.tok.op("(") {
			s.brackets()
		}
		if recursive {
			s.learn(name)
		}
		s.takeAll(kwAs, kwNot, kwMaterialized)
		if !s.tok.op("(") {
			return
		}
		s.within(s.query)
		if !recursive {
			s.learn(name)
		}
		s.ordered()
		if !s.tok.op(",") {
			return
		}
		s.next()
	}
}

// forget takes back tables, from the n-th on, that are read and are names of a
// recursive list, or may be.
func (s *surveyor) forget(n int, named func(mention) bool) {
	all := s.tables
	s.tables = n
	for i := n; i < all; i++ {
		if m := *s.table(i); m.written || !named(m) {
			*s.table(s.tables) = m
			s.tables++
		}
	}
	s.more = s.more[:max(s.tables-len(s.few), 0)]
	if s.tables == 0 && s.out.kind == lock.Read {
		s.out.kind = ""
	}
}

// ordered passes over SEARCH and CYCLE, which hold commas of their own.
func (s *surveyor) ordered() {
	for s.kw == kwSearch || s.kw == kwCycle {
		last := kwSet
		if s.kw == kwCycle {
			last = kwUsing
		}
		for !s.end() && s.kw != last {
			s.next()
		}
		s.next()
		s.next()
	}
}

func (s *surveyor) learn(name token) {
	if s.known == maxCommon {
		s.out.deep = true
		return
	}
	s.common[s.known] = name
	s.known++
}

// within lets read see what is in the parentheses that follow, and goes behind
// them. Those that are too deep are passed over.
func (s *surveyor) within(read func()) {
	if s.depth == maxNested {
		s.out.deep = true
		s.brackets()
		return
	}
	known := s.known
	s.depth++
	s.next()
	read()
	for !s.end() {
		s.skip()
	}
	s.depth--
	s.known = known
	if s.tok.op(")") {
		s.next()
	}
}

// skip passes over one token, or a pair of parentheses with what they hold.
func (s *surveyor) skip() {
	if s.tok.op("(") {
		s.within(s.inside)
		return
	}
	s.next()
}

// inside reads what is in the parentheses of an expression: a query, or
// operands of which some are queries.
func (s *surveyor) inside() {
	switch s.kw {
	case kwSelect, kwValues, kwTable, kwWith:
		s.query()
	default:
		s.clauses(false)
	}
}

// clauses reads up to the end of a query, or of an expression, in which FROM
// means something else.
func (s *surveyor) clauses(query bool) {
	for !s.end() {
		switch {
		case s.kw == kwAs:
			s.next()
			if !s.tok.op("(") {
				s.next() // a label may be any word
			}
		case s.kw == kwFrom && query && !s.distinct():
			s.next()
			s.sources()
		case s.kw == kwInto && query:
			s.into()
		case s.kw == kwUnion, s.kw == kwIntersect, s.kw == kwExcept:
			query = true
			s.next()
			s.takeAll(kwAll, kwDistinct)
			s.operand()
		default:
			s.skip()
		}
	}
}

// distinct reports whether the FROM that is next belongs to IS DISTINCT.
func (s *surveyor) distinct() bool {
	return s.before[0] == kwDistinct && (s.before[1] == kwIs || s.before[1] == kwNot)
}

// into reads the table that a SELECT INTO makes.
func (s *surveyor) into() {
	verb := s.out.verb
	s.next()
	s.takeAll(kwLocal, kwTable)
	s.target()
	s.does(lock.Write, verb)
}

// sources reads the elements of a FROM or USING clause.
func (s *surveyor) sources() {
	for s.source(); !s.end() && !s.ends(); {
		switch {
		case s.tok.op(","), s.kw == kwJoin:
			s.next()
			s.source()
		case s.kw == kwAs:
			s.next()
			if !s.tok.op("(") {
				s.next()
			}
		case s.kw == kwCase:
			s.cases()
		default:
			s.skip()
		}
	}
}

// ends reports whether a FROM clause ends here.
func (s *surveyor) ends() bool {
	switch s.kw {
	case kwWhere, kwGroup, kwHaving, kwWindow, kwOrder, kwLimit, kwOffset, kwFetch, kwFor,
		kwUnion, kwIntersect, kwExcept, kwReturning, kwConflict, kwWhen, kwInto:
		return true
	}
	return false
}

// cases passes over a CASE.
func (s *surveyor) cases() {
	for depth := 0; !s.end(); {
		switch s.kw {
		case kwCase:
			depth++
		case kwEnd:
			depth--
		}
		s.skip()
		if depth == 0 {
			return
		}
	}
}

// source reads one element of a FROM clause, without its alias.
func (s *surveyor) source() {
	s.take(kwLateral)
	s.take(kwOnly)
	if s.tok.op("(") {
		s.within(s.joined)
		return
	}
	m, ok := s.name()
	if !ok || s.tok.op("(") || m.last.word("ROWS") && s.take(kwFrom) {
		return // a function, or ROWS FROM several
	}
	s.mention(m)
}

// joined reads what is in parentheses in a FROM clause: a query, or elements
// joined.
func (s *surveyor) joined() {
	switch s.kw {
	case kwSelect, kwValues, kwTable, kwWith:
		s.query()
	default:
		s.sources()
		s.clauses(true)
	}
}

package pgwire

import (
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// insert reads an INSERT.
func (s *surveyor) insert() {
	s.next()
	s.take(kwInto)
	s.target()
	if s.take(kwAs) {
		s.next()
	}
	if s.tok.op("(") {
		s.skip() // columns, or a query
	}
	for s.is("OVERRIDING") || s.is("USER") || s.is("SYSTEM") || s.is("VALUE") {
		s.next()
	}
	known := s.known
	if s.kw == kwWith {
		s.with()
	}
	s.operand()
	s.clauses(true)
	s.known = known
}

// change reads what follows the verb of a DELETE or a MERGE. FROM is a clause
// of neither.
func (s *surveyor) change() {
	s.target()
	for !s.end() && !s.ends() {
		if s.take(kwUsing) {
			s.sources()
			break
		}
		s.skip()
	}
	s.clauses(false)
}

// explain reads EXPLAIN. Only with ANALYZE does the statement run, and then
// its reply is the plan.
func (s *surveyor) explain() {
	verb := s.tok
	s.out.explains = true
	s.next()
	runs := false
	if s.tok.op("(") {
		runs = s.options()
	}
	for s.kw == kwAnalyze || s.kw == kwVerbose {
		runs = runs || s.kw == kwAnalyze
		s.next()
	}
	s.out.verb, s.out.maybe = s.tok, s.kw == kwExecute
	s.top()
	s.out.inner, s.out.maybe = 0, s.out.maybe && runs
	if s.out.indirect = runs && s.out.kind == lock.Write; !s.out.indirect {
		s.out.kind, s.out.verb = "", verb
	}
}

// options reads the options of EXPLAIN and reports whether ANALYZE is on.
func (s *surveyor) options() (analyze bool) {
	s.next()
	for !s.end() {
		if s.take(kwAnalyze) {
			said := strings.Trim(s.tok.text, `'"`)
			analyze = said != "0" && !strings.EqualFold(said, "false") && !strings.EqualFold(said, "off")
		} else {
			s.next()
		}
	}
	s.next()
	return analyze
}

// create reads CREATE TABLE and CREATE MATERIALIZED VIEW, whose query runs.
func (s *surveyor) create() {
	verb := s.tok
	s.next()
	s.takeAll(kwLocal)
	if s.take(kwMaterialized) {
		if !s.take(kwView) {
			return
		}
	} else if !s.take(kwTable) {
		return
	}
	s.takeAll(kwIf, kwNot, kwExists)
	s.target()
	for !s.end() && s.kw != kwAs {
		if s.tok.op("(") {
			s.brackets()
		} else {
			s.next()
		}
	}
	if !s.take(kwAs) {
		return
	}
	if s.kw == kwExecute {
		s.out.maybe = true
	} else {
		s.query()
	}
	s.out.kind = ""
	s.does(lock.Write, verb)
}

// named reads ALTER TABLE and the statements that take a list of tables.
func (s *surveyor) named() {
	verb := s.kw
	if verb == kwTruncate {
		s.does(lock.Write, s.tok)
	}
	s.next()
	if !s.take(kwTable) && (verb == kwAlter || verb == kwDrop) {
		return
	}
	s.takeAll(kwIf, kwExists)
	if s.kw == kwAll && s.before[0] == kwTable {
		return // ALL IN TABLESPACE
	}
	for s.target(); s.tok.op(",") && verb != kwAlter; s.target() {
		s.next()
	}
}

// copies reads COPY.
func (s *surveyor) copies() {
	verb := s.tok
	s.next()
	if s.tok.op("(") {
		s.within(s.query)
		if s.out.indirect = s.out.kind == lock.Write; !s.out.indirect {
			s.out.kind, s.out.verb = "", verb
		}
		return
	}
	if s.is("BINARY") {
		s.next()
	}
	m, ok := s.name()
	if s.tok.op("(") {
		s.brackets()
	}
	if !ok {
		return
	}
	if m.written = s.kw == kwFrom; m.written {
		s.does(lock.Write, verb)
	}
	s.mention(m)
}

// prepare finds the statement that a PREPARE names. It does not run yet.
func (s *surveyor) prepare() {
	s.next()
	if s.is("TRANSACTION") {
		return
	}
	s.next()
	if s.tok.op("(") {
		s.brackets()
	}
	if s.take(kwAs) {
		s.out.inner = s.here()
	}
}

// declare reads the query of a cursor, which FETCH runs.
func (s *surveyor) declare() {
	verb := s.tok
	for !s.end() && s.kw != kwFor {
		s.next()
	}
	if s.take(kwFor) {
		s.query()
		s.out.kind, s.out.verb = "", verb
	}
}

package pgwire

import (
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An outline is what a single pass over a statement tells of it, beside the
// tables that it names. Both hold parts of the text and nothing of their own,
// so that they cost no memory.
type outline struct {
	verb       token
	kind       lock.Kind // Read, Write, or "" for the rest
	maybe      bool      // runs code that cannot be seen: CALL, DO
	indirect   bool      // what the reply counts is not what was written
	skips      bool      // says SKIP LOCKED
	advised    bool      // may call a function about advisory locks
	explains   bool      // is an EXPLAIN
	configures bool      // may call set_config
	temporary  bool      // may make a table for its session alone
	deep       bool      // has parentheses that were not looked into
	from, to   int       // offsets of the statement
	inner      int       // offset of the statement that a PREPARE names, 0 if none
}

// A mention is a table's name in a text.
type mention struct {
	text    string // perhaps qualified, as written
	last    token  // the name behind the last dot
	written bool
}

// maxMentions bounds the tables of one statement, maxNested its parentheses
// within each other, and maxCommon the names of its WITH lists at one time.
const (
	maxMentions = 256
	maxNested   = 64
	maxCommon   = 32
)

// A surveyor goes through a text once and outlines its statements. A FROM in
// EXTRACT or IS DISTINCT FROM is none, the names of a WITH list are no tables
// where they are known, and what stands behind a dot or AS is no keyword.
type surveyor struct {
	lex     lexer
	tok     token
	kw      keyword
	before  [2]keyword // the two before, the latest first
	dotted  bool       // the token before is a dot
	skipped bool       // it is SKIP

	depth  int
	common [maxCommon]token
	known  int // of common
	out    outline
	few    [8]mention // the first tables of the statement
	more   []mention  // those behind
	tables int
}

// table returns the i-th table of the statement.
func (s *surveyor) table(i int) *mention {
	if i < len(s.few) {
		return &s.few[i]
	}
	return &s.more[i-len(s.few)]
}

func (s *surveyor) next() {
	s.dotted = s.tok.op(".")
	s.before[1], s.before[0] = s.before[0], s.kw
	s.tok = s.lex.next()
	s.kw = noKeyword
	if s.tok.kind == tokWord && !s.dotted {
		s.kw = keywordOf(s.tok.text)
	}
	if s.kw == kwLocked && s.skipped {
		s.out.skips = true
	}
	s.skipped = s.kw == kwSkip
	if s.tok.kind <= tokQuoted {
		s.out.minds(s.tok)
	}
	if s.tok.kind <= tokQuoted && mayAdvise(s.tok) {
		s.out.advised = true
	}
}

// start goes to the first token of a text.
func (s *surveyor) start(text string) {
	s.lex = lexer{src: text}
	s.next()
}

// found goes to the next statement, and reports whether there is one.
func (s *surveyor) found() bool {
	for s.tok.op(";") {
		s.next()
	}
	return s.tok.kind != tokEnd
}

// here returns the offset of the token that is next.
func (s *surveyor) here() int { return s.lex.pos - len(s.tok.text) }

func (s *surveyor) take(k keyword) bool {
	if s.kw != k {
		return false
	}
	s.next()
	return true
}

// takeAll takes any number of the keywords.
func (s *surveyor) takeAll(list ...keyword) {
	for i := 0; i < len(list); i++ {
		if s.take(list[i]) {
			i = -1
		}
	}
}

// is reports whether the word is next. It is for those that are too rare to be
// keywords.
func (s *surveyor) is(word string) bool { return !s.dotted && s.tok.word(word) }

// end reports whether the statement, or the parenthesis around it, ends here.
func (s *surveyor) end() bool {
	return s.tok.kind == tokEnd || s.tok.op(")") || s.tok.op(";")
}

// name takes a table's name, with what it is qualified with.
func (s *surveyor) name() (m mention, ok bool) {
	from := s.here()
	for s.tok.kind == tokWord || s.tok.kind == tokQuoted {
		m.last, ok = s.tok, true
		to := s.lex.pos
		s.next()
		if s.tok.word("UESCAPE") && m.last.kind == tokQuoted {
			s.next()
			to = s.lex.pos
			s.next()
		}
		m.text = s.lex.src[from:to]
		if !s.tok.op(".") {
			break
		}
		s.next()
	}
	return m, ok
}

// mention notes a table that is read, unless the name is one of a WITH list.
func (s *surveyor) mention(m mention) {
	if !m.written && m.among(s.common[:s.known]) {
		return
	}
	switch {
	case s.tables < len(s.few):
		s.few[s.tables] = m
	case s.tables < maxMentions:
		s.more = append(s.more, m)
	default:
		s.out.deep = true
		return
	}
	s.tables++
}

// among reports whether the name is one of a WITH list.
func (m mention) among(names []token) bool {
	for _, name := range names {
		if m.plain() && sameName(name, m.last) {
			return true
		}
	}
	return false
}

// plain reports whether the name is not qualified.
func (m mention) plain() bool { return len(m.text) == len(m.last.text) }

// sameName reports whether two tokens are one identifier.
func sameName(a, b token) bool {
	if a.kind == tokWord && b.kind == tokWord {
		return len(a.text) == len(b.text) && strings.EqualFold(a.text, b.text)
	}
	return a.name() == b.name()
}

// target notes the table that a statement writes.
func (s *surveyor) target() {
	s.take(kwOnly)
	parens := s.tok.op("(")
	if parens {
		s.next()
	}
	if m, ok := s.name(); ok {
		m.written = true
		s.mention(m)
	}
	if parens && s.tok.op(")") {
		s.next()
	}
	if s.tok.op("*") {
		s.next()
	}
}

// statement outlines the statement that is next and goes behind it, to the
// semicolon or the end.
func (s *surveyor) statement() *outline {
	s.out = outline{verb: s.tok, from: s.here()}
	s.tables, s.more = 0, nil
	s.known, s.depth = 0, 0
	if s.tok.kind == tokWord || s.tok.op("(") {
		s.top()
	} else {
		s.next()
	}
	s.rest()
	s.out.to = s.here()
	return &s.out
}

// rest goes to the end of the statement. A stray parenthesis does not end it,
// nor does a semicolon in the body of a function.
func (s *surveyor) rest() {
	for s.tok.kind != tokEnd && !s.tok.op(";") {
		switch {
		case s.kw == kwAtomic && s.before[0] == kwBegin:
			s.body()
		case s.tok.op("("):
			s.brackets()
		default:
			s.next()
		}
	}
}

// body passes over the statements of a BEGIN ATOMIC function.
func (s *surveyor) body() {
	s.next()
	for cases := 0; s.tok.kind != tokEnd; s.next() {
		switch s.kw {
		case kwCase:
			cases++
		case kwEnd:
			if cases--; cases < 0 {
				s.next()
				return
			}
		}
	}
}

// brackets passes over a pair of parentheses, and over all within.
func (s *surveyor) brackets() {
	for depth := 0; s.tok.kind != tokEnd; {
		if s.tok.op("(") {
			depth++
		} else if s.tok.op(")") {
			depth--
		}
		s.next()
		if depth == 0 {
			return
		}
	}
}

// top reads the statement of a text, or what follows EXPLAIN, by its verb.
func (s *surveyor) top() {
	switch s.kw {
	case kwSelect, kwValues, kwTable, kwWith, kwInsert, kwUpdate, kwDelete, kwMerge:
		s.query()
	case kwExplain:
		s.explain()
	case kwCreate:
		s.create()
	case kwCopy:
		s.copies()
	case kwAlter, kwDrop, kwTruncate, kwLock:
		s.named()
	case kwPrepare:
		s.prepare()
	case kwDeclare:
		s.declare()
	case kwCall, kwDo:
		s.out.maybe = true
		s.next()
	default:
		if s.tok.op("(") {
			s.query()
			return
		}
		s.next()
	}
}

// does notes what a part of the statement does. The first write names it.
func (s *surveyor) does(kind lock.Kind, verb token) {
	if s.out.kind == lock.Write || kind == s.out.kind {
		return
	}
	if kind == lock.Write {
		s.out.verb = verb
	}
	s.out.kind = kind
}

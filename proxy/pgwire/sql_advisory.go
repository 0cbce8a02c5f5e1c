package pgwire

import (
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// advisory is one of the functions about advisory locks.
type advisory struct {
	verb         string
	span         lock.Span
	release, all bool
	try, shared  bool
	known        bool
}

// shortestAdvisory and longestAdvisory are lengths of the functions' names.
const (
	shortestAdvisory = len("pg_advisory_lock")
	longestAdvisory  = len("pg_try_advisory_xact_lock_shared")
)

// mayAdvise reports whether a token may be the name of one of the functions.
func mayAdvise(t token) bool {
	n := len(t.text)
	return n >= shortestAdvisory && n <= longestAdvisory+len(`""`) && (t.kind == tokWord && t.text[2] == '_' && t.text[0]|0x20 == 'p' ||
		t.kind == tokQuoted && t.text[3] == '_')
}

// advisoryOf returns the function that a token names.
func advisoryOf(t token) advisory {
	if !mayAdvise(t) {
		return advisory{}
	}
	name := t.name()
	f := advisory{verb: strings.ToUpper(name), span: lock.SessionSpan, known: true}
	name, f.shared = strings.CutSuffix(name, "_shared")
	switch name {
	case "pg_advisory_lock":
	case "pg_try_advisory_lock":
		f.try = true
	case "pg_advisory_xact_lock":
		f.span = lock.TxSpan
	case "pg_try_advisory_xact_lock":
		f.span, f.try = lock.TxSpan, true
	case "pg_advisory_unlock":
		f.release = true
	case "pg_advisory_unlock_all":
		f.release, f.all, f.known = true, true, !f.shared
	default:
		return advisory{}
	}
	return f
}

// maxCalls bounds the calls of one statement that are told, maxTokens the tokens
// among which they are looked for, and maxLists the select lists that are told
// apart.
const (
	maxCalls  = 64
	maxLists  = 128
	maxTokens = 8192
)

// advises makes the locks of the calls of advisory functions in a statement.
func (t *template) advises(src string) {
	r := &callReader{src: src, writes: t.kind == lock.Write}
	r.read()
	r.findUnasked()
	for i := 0; i+1 < len(r.toks) && len(t.holds) < maxCalls; i++ {
		if f := advisoryOf(r.toks[i]); f.known && r.toks[i+1].op("(") && r.pair[i+1] > 0 && !r.idle(i) {
			t.holds = append(t.holds, r.call(i, f))
		}
	}
}

// A callReader looks at a statement with such calls.
type callReader struct {
	src    string
	writes bool
	toks   []token
	ends   []int // offsets behind them
	pair   []int // place of the other parenthesis
	lists  []selectList

	unasked [][2]int // queries of a WITH list that nothing asks for

	sources bool // the statement has a FROM clause
	either  bool // there is an OR, NOT or CASE in it: what it asks for need not be done
	cases   bool // there is a CASE
	sets    bool // a UNION or the like: its rows are of several queries
	outer   bool // an outer join: a row may come where one side has none
}

// A selectList is what stands between SELECT, or RETURNING, and the next clause.
type selectList struct {
	depth     int
	from, to  int
	items     [][2]int
	filtered  bool // a clause follows
	returning bool
}

// read cuts the statement into tokens and finds its select lists.
func (r *callReader) read() {
	l := lexer{src: r.src}
	var open []int
	for tok := l.next(); tok.kind != tokEnd && len(r.toks) < maxTokens; tok = l.next() {
		i := len(r.toks)
		r.toks, r.ends, r.pair = append(r.toks, tok), append(r.ends, l.pos), append(r.pair, 0)
		if tok.op("(") {
			open = append(open, i)
		} else if last := len(open) - 1; tok.op(")") && last >= 0 {
			r.pair[open[last]], r.pair[i] = i, open[last]
			open = open[:last]
		}
	}
	depth := 0
	for i, tok := range r.toks {
		switch {
		case tok.op("("):
			depth++
		case tok.op(")"):
			depth--
		case r.is(i, "SELECT"), r.is(i, "RETURNING"):
			if len(r.lists) < maxLists {
				r.lists = append(r.lists, r.list(i, depth))
			}
		case r.is(i, "FROM"):
			r.sources = true
		default:
			r.mind(i)
		}
	}
}

// mind notes a word that makes what stands elsewhere uncertain.
func (r *callReader) mind(i int) {
	r.cases = r.cases || r.is(i, "CASE")
	r.either = r.either || r.cases || r.is(i, "OR", "NOT")
	r.sets = r.sets || r.is(i, "UNION", "INTERSECT", "EXCEPT")
	r.outer = r.outer || r.is(i, "LEFT", "RIGHT", "FULL")
}

// is reports whether the token at a place is there, and is one of the keywords.
func (r *callReader) is(i int, words ...string) bool {
	if i < 0 || i >= len(r.toks) || r.toks[i].kind != tokWord || i > 0 && (r.toks[i-1].op(".") || r.toks[i-1].word("AS")) {
		return false
	}
	for _, w := range words {
		if r.toks[i].word(w) {
			return true
		}
	}
	return false
}

// op reports whether the token at a place is the operator; no token is one.
func (r *callReader) op(i int, s string) bool { return i >= 0 && i < len(r.toks) && r.toks[i].op(s) }

// list reads the select list behind a keyword.
func (r *callReader) list(i, depth int) selectList {
	s := selectList{depth: depth, returning: r.is(i, "RETURNING")}
	if i++; r.is(i, "ALL", "DISTINCT") {
		i++
	}
	s.from = i
	for from := i; ; {
		s.filtered = r.clause(i)
		ends := i >= len(r.toks) || r.op(i, ")") || r.op(i, ";") || s.filtered
		if ends || r.op(i, ",") {
			s.items = append(s.items, [2]int{from, i})
			from = i + 1
		}
		if ends {
			s.to = i
			return s
		}
		if r.op(i, "(") && r.pair[i] > 0 {
			i = r.pair[i]
		}
		i++
	}
}

// clause reports whether a select list, or a WHERE, ends at a token.
func (r *callReader) clause(i int) bool {
	return r.is(i, selectEnd...) || r.is(i, "INTO", "RETURNING") || r.is(i, "FROM") && !r.is(i-1, "DISTINCT")
}

// idle reports whether a token stands in a query of a WITH list that nothing
// asks for: Postgres does not run it.
func (r *callReader) idle(i int) bool {
	for _, q := range r.unasked {
		if q[0] < i && i < q[1] {
			return true
		}
	}
	return false
}

// findUnasked finds those queries: the name before them occurs nowhere else, and
// they change nothing.
func (r *callReader) findUnasked() {
	count := map[string]int{}
	for _, tok := range r.toks {
		if tok.kind == tokWord || tok.kind == tokQuoted {
			count[tok.name()]++
		}
	}
	for i := range r.toks {
		if !r.op(i, "(") || r.pair[i] == 0 {
			continue
		}
		at := i - 1
		for r.is(at, "NOT", "MATERIALIZED") {
			at--
		}
		name := at - 1
		if !r.is(at, "AS") || name < 1 {
			continue
		}
		if r.op(name, ")") && r.pair[name] > 0 {
			name = r.pair[name] - 1 // behind it are names for its columns
		}
		if (r.is(name-1, "WITH", "RECURSIVE") || r.op(name-1, ",")) && count[r.toks[name].name()] < 2 && !r.is(i+1, "INSERT", "UPDATE", "DELETE", "MERGE") {
			r.unasked = append(r.unasked, [2]int{i, r.pair[i]})
		}
	}
}

// call makes the lock of the call at a token.
func (r *callReader) call(i int, f advisory) hold {
	h := hold{kind: lock.Acquire, verb: f.verb, span: f.span, shared: f.shared, all: f.all, cell: r.cell(i), class: "advisory"}
	if f.release {
		h.kind = lock.Release
	}
	if !f.all {
		h.args = r.arguments(i + 1)
	}
	top := r.top()
	always := top != nil && top.from <= i && i < top.to && !r.sources && !top.filtered && !r.either
	truth := f.try || f.release && !f.all
	switch {
	case truth && h.cell != none:
		h.tells = byTruth
	case truth && (f.release || !r.filters(i)):
		h.tells = byNone
	case truth && !r.sources && r.is(r.before(i), "WHERE") && !r.is(r.pair[i+1]+1, "AND"):
		h.tells = byOnly
	case always:
		h.tells = byEnd
	case !truth && h.cell != none:
		h.tells = byRows
	case !truth && (r.cases || r.within(top, i)):
		h.tells = byNone
	default:
		h.tells = byFilter
	}
	return h
}

// before returns the place before the name of a function, with its schema.
func (r *callReader) before(i int) int {
	if r.op(i-1, ".") {
		return i - 3
	}
	return i - 1
}

// arguments reads what is in the parentheses at a token: one or two values, or
// nil where one of them is computed.
func (r *callReader) arguments(i int) []slot {
	p := &parser{lex: lexer{src: r.src[:r.ends[r.pair[i]]], pos: r.ends[i]}}
	p.advance()
	values := p.list()
	if !p.tok.op(")") || len(values) == 0 || len(values) > 2 {
		return nil
	}
	for _, v := range values {
		if v.param == 0 && !v.known {
			return nil
		}
	}
	return arguments(values)
}

// top returns the select list whose rows the client gets, nil if there are
// several, or may be.
func (r *callReader) top() (top *selectList) {
	if len(r.lists) == maxLists {
		return nil
	}
	for i := range r.lists {
		l := &r.lists[i]
		if l.depth != 0 || l.returning != r.writes {
			continue
		}
		if top != nil {
			return nil
		}
		top = l
	}
	return top
}

// cell returns the place in the row of what the call at a token returns, none
// if it is not there.
func (r *callReader) cell(i int) int {
	top := r.top()
	if top == nil {
		return none
	}
	if before := r.before(i); r.is(before, "FROM") {
		return r.refers(top, r.label(r.pair[i+1]+1, r.toks[i]), 0, top)
	}
	list, n := r.item(i)
	switch {
	case list == nil:
		return none
	case list.from == top.from:
		return r.place(top, n)
	}
	return r.refers(top, r.label(list.items[n][1]-1, r.toks[i]), n, list)
}

// item returns the outermost select list of which the call at a token is an item
// all by itself, perhaps cast or in parentheses, and its place there.
func (r *callReader) item(call int) (list *selectList, n int) {
	for j := range r.lists {
		for k, it := range r.lists[j].items {
			if it[0] <= call && call < it[1] && r.alone(it, call) && (list == nil || r.lists[j].depth < list.depth) {
				list, n = &r.lists[j], k
			}
		}
	}
	return list, n
}

// alone reports whether an item is the call at a token and no more: beside it
// there are parentheses, SELECT, casts and an alias.
func (r *callReader) alone(it [2]int, call int) bool {
	for j := it[0]; j < it[1]; j++ {
		tok := r.toks[j]
		switch {
		case j == call:
			j = r.pair[j+1]
		case tok.op("("), tok.op(")"), tok.op("::"):
		case j < call && (tok.op(".") && j == call-1 || j == call-2 && r.op(call-1, ".") || tok.word("SELECT") || tok.word("CAST")):
		case j > call && (tok.kind == tokQuoted || tok.kind == tokWord && (tok.word("AS") || r.toks[j-1].word("AS") || !reserved(tok.text))):
		default:
			return false
		}
	}
	return true
}

// label returns the alias at a place, or else the name of the function.
func (r *callReader) label(i int, function token) string {
	if r.is(i, "AS") {
		i++
	}
	if i < len(r.toks) && (r.toks[i].kind == tokQuoted || r.toks[i].kind == tokWord && !reserved(r.toks[i].text)) && !r.op(i-1, "::") {
		return r.toks[i].name()
	}
	return function.name()
}

// place returns the place in the row of the n-th item, none if one before it
// may be several.
func (r *callReader) place(list *selectList, n int) int {
	for _, it := range list.items[:n] {
		if r.op(it[1]-1, "*") {
			return none
		}
	}
	return n
}

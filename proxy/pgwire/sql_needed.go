package pgwire

// refers returns the place in the outer list of what goes by a name further in,
// where it is the n-th of a list.
func (r *callReader) refers(top *selectList, name string, n int, list *selectList) int {
	source, ok := "", list == top
	if !ok {
		source, ok = r.source(list)
	}
	for k, it := range top.items {
		if !ok || it[1] == it[0] {
			continue
		}
		if r.op(it[1]-1, "*") && len(top.items) == 1 && len(r.lists) <= 2 {
			return r.place(list, n)
		}
		if column, of := r.column(it); column == name && (of == "" && len(r.lists) <= 2 || of != "" && of == source) {
			return r.place(top, k)
		}
	}
	return none
}

// source returns the name of the query that a list begins, and whether that is
// one that can be read from: in FROM, or in a WITH list.
func (r *callReader) source(list *selectList) (name string, ok bool) {
	open := r.around(list.from - 1)
	if open < 0 {
		return "", false
	}
	at := open - 1
	for r.is(at, "NOT", "MATERIALIZED") {
		at--
	}
	switch {
	case r.is(at, "FROM", "JOIN", "LATERAL"), r.op(at, ","):
		return r.label(r.pair[open]+1, token{}), true
	case r.is(at, "AS") && r.op(at-1, ")"):
		at = r.pair[at-1]
	case !r.is(at, "AS"):
		return "", false
	}
	if at < 1 {
		return "", false
	}
	return r.toks[at-1].name(), true
}

// column returns the column that an item is, and what it is qualified by; ""
// if it is more than that.
func (r *callReader) column(it [2]int) (name, of string) {
	p := &parser{lex: lexer{src: r.src[:r.ends[it[1]-1]], pos: r.ends[it[0]] - len(r.toks[it[0]].text)}}
	p.advance()
	name, of = p.column()
	p.casts()
	if p.alias(); p.tok.kind != tokEnd {
		return "", ""
	}
	return name, of
}

// within reports whether a token stands in a query of its own inside the list.
func (r *callReader) within(top *selectList, i int) bool {
	if top == nil || i < top.from || i >= top.to || !r.sources {
		return false
	}
	for at := i; at > top.from; {
		if at = r.around(at); at >= 0 && r.is(at+1, "SELECT", "WITH") {
			return true
		}
	}
	return false
}

// filters reports whether the call at a token is a condition that must hold
// where a row comes, or is changed.
func (r *callReader) filters(i int) bool {
	before := r.before(i)
	return !r.either && !r.sets && (r.is(before, "WHERE", "AND") || r.op(before, "(")) && r.must(before, r.pair[i+1]+1)
}

// must reports whether what ends before a place, and follows another, is a
// condition that must hold: alone or among others with AND, in the WHERE of a
// query without whose rows there are none.
func (r *callReader) must(from, to int) bool {
	for r.over(to) {
		at := r.opening(from)
		switch {
		case at < 0:
			return false
		case r.is(at, "WHERE"):
			return r.needed(at)
		case !r.is(at-1, "WHERE", "AND") && !r.op(at-1, "("):
			return false
		}
		from, to = at-1, r.pair[at]+1
	}
	return false
}

// over reports whether a condition is over before a place.
func (r *callReader) over(i int) bool {
	return i >= len(r.toks) || r.op(i, ")") || r.op(i, ";") || r.is(i, "AND", "ON") || r.clause(i)
}

// opening returns the place of the WHERE, or the parenthesis, that a token
// stands behind; none if that is another clause.
func (r *callReader) opening(i int) int {
	for ; i >= 0; i-- {
		switch {
		case r.op(i, ")"):
			i = r.pair[i]
		case r.op(i, "("), r.is(i, "WHERE"):
			return i
		case r.clause(i), r.is(i, "SELECT"):
			return none
		}
	}
	return none
}

// around returns the place of the parenthesis around a token, none if there is
// none.
func (r *callReader) around(i int) int {
	for i--; i >= 0; i-- {
		if r.op(i, "(") {
			return i
		}
		if r.op(i, ")") {
			i = r.pair[i]
		}
	}
	return none
}

// needed reports whether there are no rows at all where the query has none
// whose WHERE, or FROM, is at a place.
func (r *callReader) needed(i int) bool {
	open := r.around(i)
	if r.gathers(i) {
		return false
	}
	switch before := open - 1; {
	case open < 0:
		return true
	case r.is(before, "EXISTS"):
		return (r.is(before-1, "WHERE", "AND") || r.op(before-1, "(")) && r.must(before-1, r.pair[open]+1)
	case r.is(before, "IN", "ANY"), r.op(before, "="):
		return r.must(before-1, r.pair[open]+1)
	case r.is(before, "FROM"):
		return !r.outer && r.needed(before)
	}
	return false
}

// gathers reports whether the query whose clause is at a place makes a row of
// none, or inserts rows that it did not ask for.
func (r *callReader) gathers(i int) bool {
	for i--; i >= 0 && !r.op(i, "("); i-- {
		switch {
		case r.is(i, "CONFLICT"):
			return true
		case r.op(i, ")"):
			i = r.pair[i]
		case r.is(i, "SELECT"):
			return r.aggregates(i)
		}
	}
	return false
}

// aggregates reports whether the select list behind a token has an aggregate
// function in it.
func (r *callReader) aggregates(i int) bool {
	for _, l := range r.lists {
		if l.from != i+1 && l.from != i+2 {
			continue
		}
		for j := l.from; j < l.to; j++ {
			if r.op(j+1, "(") && r.is(j, aggregates...) {
				return true
			}
		}
		return false
	}
	return true
}

// aggregates are the functions that give a value for no rows.
var aggregates = []string{
	"ANY_VALUE", "ARRAY_AGG", "AVG", "BIT_AND", "BIT_OR", "BIT_XOR", "BOOL_AND", "BOOL_OR", "CORR", "COUNT", "COVAR_POP",
	"COVAR_SAMP", "EVERY", "JSON_AGG", "JSON_ARRAYAGG", "JSON_OBJECTAGG", "JSON_OBJECT_AGG", "JSONB_AGG", "JSONB_OBJECT_AGG",
	"MAX", "MIN", "MODE", "PERCENTILE_CONT", "PERCENTILE_DISC", "RANGE_AGG", "RANGE_INTERSECT_AGG", "STDDEV", "STDDEV_POP",
	"STDDEV_SAMP", "STRING_AGG", "SUM", "VAR_POP", "VAR_SAMP", "VARIANCE", "XMLAGG",
}

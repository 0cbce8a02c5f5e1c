package pgwire

import (
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// selects reads what follows SELECT.
func (p *parser) selects(t *template) {
	p.word("ALL")
	if p.word("DISTINCT") && p.word("ON") {
		p.step()
	}
	t.shape.Columns = p.results("FROM", "INTO", "WHERE", "GROUP", "HAVING", "WINDOW", "UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR")
	if p.tok.word("INTO") {
		t.shape.Opaque = true
		p.until("FROM", "WHERE", "FOR")
	}
	if p.word("FROM") {
		p.from(t)
	}
	if !t.shape.Opaque && p.word("WHERE") {
		p.where(t)
	}
	p.tail(t)
}

// tables reads what follows TABLE, which is short for SELECT * FROM.
func (p *parser) tables(t *template) {
	t.shape.Columns = []string{"*"}
	p.from(t)
	p.tail(t)
}

// tail reads what is left of a SELECT.
func (p *parser) tail(t *template) {
	for !p.end() {
		switch {
		case p.any("GROUP", "HAVING", "WINDOW", "UNION", "INTERSECT", "EXCEPT"):
			t.shape.Opaque = true
			p.advance()
		case p.word("FOR"):
			p.rowLocks(t)
		case p.any("LIMIT", "OFFSET", "FETCH"):
			t.rows.few = true
			p.advance()
		case p.words("SKIP", "LOCKED"):
			t.rows.skip = true
		default:
			p.step()
		}
	}
}

// selectEnd are the words that end a FROM clause.
var selectEnd = []string{"WHERE", "GROUP", "HAVING", "WINDOW", "UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR"}

// from reads a FROM clause. The first table is the statement's; with a second
// one, no condition can be told to be about it.
func (p *parser) from(t *template) {
	p.source(t)
	if t.shape.Table != "" {
		t.kind = lock.Read
	}
	if !p.end() && !p.any(selectEnd...) {
		t.shape.Opaque = true
	}
}

// source reads one element of a FROM clause, with its alias.
func (p *parser) source(t *template) {
	p.word("LATERAL")
	p.word("ONLY")
	if p.tok.op("(") {
		t.shape.Opaque = true
		t.shape.Table = p.nested()
	} else if name := p.table(); p.tok.op("(") {
		t.shape.Opaque = true // a function
		p.brackets()
	} else {
		t.shape.Table = name
	}
	p.op("*")
	p.alias()
}

// nested returns the first table in the parentheses that follow.
func (p *parser) nested() string {
	outer := p.mark()
	for p.tok.op("(") {
		p.advance()
	}
	name := ""
	if p.any("SELECT", "WITH", "INSERT", "UPDATE", "DELETE") {
		name = p.statement().shape.Table
	} else if !p.any("VALUES") {
		name = p.table()
	}
	p.reset(outer)
	p.brackets()
	return name
}

// alias takes an alias, if there is one, and returns it.
func (p *parser) alias() string {
	if !p.word("AS") && p.tok.kind != tokQuoted && (p.tok.kind != tokWord || reserved(p.tok.text)) {
		return ""
	}
	name := ""
	if p.tok.kind == tokWord || p.tok.kind == tokQuoted {
		name = p.tok.name()
	}
	p.advance()
	if p.tok.op("(") {
		p.brackets()
	}
	return name
}

// maxParts is how many parts a table's name has at most: catalog, schema, name.
const maxParts = 3

// table takes a table's name with the schema written before it. Parts behind
// the third are passed over: Postgres refuses them.
func (p *parser) table() string {
	name := p.identifier()
	for n := 2; name != "" && p.tok.op("."); n++ {
		p.advance()
		if part := p.identifier(); n <= maxParts {
			name += "." + part
		}
	}
	return name
}

func (p *parser) identifier() string {
	if p.tok.kind != tokWord && p.tok.kind != tokQuoted {
		return ""
	}
	tok, escape := p.tok, byte('\\')
	p.advance()
	if tok.kind == tokQuoted && p.word("UESCAPE") {
		if p.tok.kind == tokString && len(p.tok.text) == len("'!'") {
			escape = p.tok.text[1]
		}
		p.advance()
	}
	return tok.nameBy(escape)
}

// otherFields stands for any number of result columns that are not the table's own.
const otherFields = "?*"

// results reads a select list up to one of the keywords: a column by its own
// name, whatever its alias, and an expression as "?".
func (p *parser) results(stop ...string) []string {
	var out []string
	for !p.end() && !p.any(stop...) {
		name := p.result(stop)
		if len(out) <= maxSlots {
			out = append(out, name)
		}
		if !p.op(",") {
			break
		}
	}
	return out
}

func (p *parser) result(stop []string) string {
	m := p.mark()
	if name := p.star(); name != "" {
		return name
	}
	if name := p.wrapped(); name != "" {
		p.casts()
		p.alias()
		if p.end() || p.tok.op(",") || p.any(stop...) {
			return name
		}
	}
	p.reset(m)
	for !p.end() && !p.tok.op(",") && !p.any(stop...) {
		p.step()
	}
	if p.prev.op("*") { // (x).*
		return otherFields
	}
	return "?"
}

// wrapped takes a column, or one in CAST or in COALESCE with a plain value,
// and returns its name.
func (p *parser) wrapped() string {
	name, _ := p.column()
	if name != "" {
		return name
	}
	cast := p.word("CAST")
	if !cast && !p.word("COALESCE") || !p.op("(") {
		return ""
	}
	name, _ = p.column()
	p.casts()
	if cast {
		if !p.word("AS") {
			return ""
		}
		p.until()
	} else if !p.op(",") {
		return ""
	} else if _, ok := p.operand(); !ok {
		return ""
	}
	if !p.op(")") {
		return ""
	}
	return name
}

// star takes * or t.*.
func (p *parser) star() string {
	if p.op("*") {
		return "*"
	}
	m := p.mark()
	for name := p.identifier(); name != "" && p.op("."); name = p.identifier() {
		if (!p.olds || name != oldRow) && p.op("*") {
			return "*"
		}
	}
	p.reset(m)
	return ""
}

// column takes a column, perhaps qualified, and returns its name and what it
// was qualified with.
func (p *parser) column() (name, qualifier string) {
	if p.tok.kind == tokWord && reserved(p.tok.text) {
		return "", ""
	}
	m := p.mark()
	for name = p.identifier(); name != "" && p.tok.op("."); {
		p.advance()
		qualifier, name = name, p.identifier()
	}
	if p.olds && qualifier == oldRow || name == "" || p.tok.op("(") || p.tok.op("[") || p.tok.kind == tokString || qualifier == excluded && p.inserted != nil {
		p.reset(m)
		return "", ""
	}
	return name, qualifier
}

// reserved reports whether a word cannot be a column or an alias without AS.
func reserved(word string) bool {
	switch strings.ToUpper(word) {
	case "ALL", "AND", "ANY", "ARRAY", "AS", "ASC", "BETWEEN", "CASE", "CAST", "COLLATE", "CONFLICT", "CROSS",
		"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "DEFAULT", "DESC", "DISTINCT",
		"DO", "ELSE", "END", "EXCEPT", "EXISTS", "FALSE", "FETCH", "FOR", "FROM", "FULL", "GROUP", "HAVING",
		"ILIKE", "IN", "INNER", "INTERSECT", "INTO", "IS", "ISNULL", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT",
		"LOCALTIME", "LOCALTIMESTAMP", "NATURAL", "NOT", "NOTNULL", "NULL", "OFFSET", "ON", "ONLY", "OR", "ORDER",
		"OVERLAPS", "OVERRIDING", "RETURNING", "RIGHT", "ROW", "SELECT", "SESSION_USER", "SET", "SIMILAR", "SOME",
		"TABLESAMPLE", "THEN", "TRUE", "UNION", "UNIQUE", "USER", "USING", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH":
		return true
	}
	return false
}

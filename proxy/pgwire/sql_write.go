package pgwire

import (
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// excluded is the name under which ON CONFLICT knows the row that was refused.
const excluded = "excluded"

// inserts reads what follows INSERT.
func (p *parser) inserts(t *template) {
	p.word("INTO")
	t.kind = lock.Write
	p.written(t)
	p.as = ""
	if p.word("AS") {
		p.as = p.identifier()
	}
	var columns []string
	if p.tok.op("(") && !p.subselect() {
		columns = p.names()
	}
	if p.word("OVERRIDING") {
		p.advance()
		p.word("VALUE")
	}
	switch {
	case p.words("DEFAULT", "VALUES"):
	case p.word("VALUES"):
		p.rows(t, columns)
	default:
		p.query(t, columns)
	}
	t.inserted = int32(len(t.set))
	p.conflict(t)
	p.returning(t)
}

// subselect reports whether the parenthesis that follows holds a query.
func (p *parser) subselect() bool {
	m := p.mark()
	defer p.reset(m)
	for p.op("(") {
	}
	return p.any("SELECT", "WITH", "VALUES", "TABLE")
}

// names reads (a, b, c).
func (p *parser) names() []string {
	var out []string
	p.advance()
	for !p.end() {
		if name := p.identifier(); name != "" && len(out) <= maxSlots {
			out = append(out, name)
		}
		for !p.end() && !p.tok.op(",") {
			p.step() // a subscript or a field
		}
		p.op(",")
	}
	p.op(")")
	return out
}

// rows reads the rows of VALUES: the first one is kept.
func (p *parser) rows(t *template, columns []string) {
	if !p.tok.op("(") {
		t.shape.Opaque = true
		return
	}
	p.advance()
	values := p.list()
	p.op(")")
	if len(values) != len(columns) || p.tok.op(",") {
		t.shape.Opaque = true
	}
	for i, c := range columns {
		s := slot{column: c}
		if i < len(values) {
			s.value = values[i]
		}
		t.set = append(t.set, s)
	}
	for p.op(",") {
		p.step()
	}
}

// list reads expressions up to the closing parenthesis.
func (p *parser) list() []value {
	var out []value
	for !p.end() {
		m := p.mark()
		v, ok := p.operand()
		if !ok || !p.end() && !p.tok.op(",") {
			p.reset(m)
			v = p.worked()
		}
		if len(out) <= maxSlots {
			out = append(out, v)
		}
		p.op(",")
	}
	return out
}

// worked reads an expression of a list that is no plain value: of time, or
// another.
func (p *parser) worked() value {
	m := p.mark()
	if r, ok := p.reckon(); ok && (p.end() || p.tok.op(",")) {
		return value{now: r}
	}
	p.reset(m)
	p.expression()
	return value{}
}

// expression passes over one expression of a list.
func (p *parser) expression() {
	for !p.end() && !p.tok.op(",") {
		p.step()
	}
}

// query passes over the query of an INSERT.
func (p *parser) query(t *template, columns []string) {
	t.shape.Opaque = true
	for _, c := range columns {
		t.set = append(t.set, slot{column: c})
	}
	for p.until("ON", "RETURNING") {
		if p.tok.word("RETURNING") || p.conflicting() {
			return
		}
		p.advance()
	}
}

func (p *parser) conflicting() bool {
	m := p.mark()
	defer p.reset(m)
	return p.words("ON", "CONFLICT")
}

// conflict reads ON CONFLICT. What it sets stands behind what was to be
// inserted, unless it is just that.
func (p *parser) conflict(t *template) {
	if !p.words("ON", "CONFLICT") {
		return
	}
	if p.tok.op("(") {
		t.target = p.names()
	}
	p.until("DO")
	p.advance()
	if !p.words("UPDATE", "SET") {
		p.word("NOTHING")
		return
	}
	t.shape.Upsert = true
	inserted := t.set
	p.assignments(t, inserted)
	if p.tok.word("WHERE") {
		t.guarded = int32(p.lex.pos)
		p.advance()
		p.guard(t)
	}
}

// guard reads the WHERE of ON CONFLICT, with EXCLUDED put in its place.
func (p *parser) guard(t *template) {
	if p.inserted = t.set; p.inserted == nil {
		p.inserted = []slot{}
	}
	p.where(t)
	p.inserted = nil
}

func (p *parser) returning(t *template) {
	if !p.word("RETURNING") {
		return
	}
	t.shape.Returning = true
	if p.word("WITH") { // other names for the row as it was, and as it is
		t.shape.Columns = []string{otherFields}
		return
	}
	p.olds = p.target != oldRow && p.as != oldRow
	t.shape.Columns = p.results()
	p.olds = false
}

// oldRow is what RETURNING calls the row as it was, unless a table is called that.
const oldRow = "old"

// updates reads what follows UPDATE.
func (p *parser) updates(t *template) {
	t.kind = lock.Write
	p.targets(t)
	if !p.word("SET") {
		t.shape.Opaque = true
		return
	}
	p.assignments(t, nil)
	if p.tok.word("FROM") {
		for i, s := range t.set {
			if s.step != 0 {
				t.set[i] = slot{column: s.column, value: value{says: '+'}}
			}
		}
	}
	p.filter(t, "FROM")
}

// deletes reads what follows DELETE.
func (p *parser) deletes(t *template) {
	t.kind = lock.Write
	p.word("FROM")
	p.targets(t)
	p.filter(t, "USING")
}

// truncates reads what follows TRUNCATE: the first of its tables, and whether
// those that refer to them go along. All rows go, and the reply does not say how
// many they were.
func (p *parser) truncates(t *template) {
	t.kind = lock.Write
	p.word("TABLE")
	p.relation(t)
	t.shape.Cascade = p.until("CASCADE")
}

func (p *parser) targets(t *template) {
	p.relation(t)
	p.as = p.alias()
}

// relation takes a table that is written, with or without what inherits from it.
func (p *parser) relation(t *template) {
	p.word("ONLY")
	parens := p.op("(")
	p.written(t)
	if parens {
		p.op(")")
	}
	p.op("*")
}

// written takes the name of the table that is written.
func (p *parser) written(t *template) {
	t.shape.Table = p.table()
	p.target = unqualified(t.shape.Table)
}

// unqualified leaves the schema out.
func unqualified(table string) string { return table[strings.LastIndexByte(table, '.')+1:] }

// filter reads what follows the target or the assignments. other is the word
// that brings other tables in.
func (p *parser) filter(t *template, other string) {
	if p.tok.word(other) {
		t.shape.Opaque = true
		p.until("WHERE", "RETURNING")
		if p.tok.word("WHERE") {
			t.guarded = int32(p.lex.pos)
			p.until("RETURNING")
		}
	}
	if p.tok.word("WHERE") {
		t.guarded = int32(p.lex.pos)
		p.advance()
		p.where(t)
	}
	if !p.tok.word("RETURNING") {
		p.until("RETURNING")
	}
	p.returning(t)
}

// merges reads what follows MERGE.
func (p *parser) merges(t *template) {
	p.word("INTO")
	t.kind, t.shape.Opaque = lock.Write, true
	p.targets(t)
	if p.until("RETURNING") {
		p.returning(t)
	}
}

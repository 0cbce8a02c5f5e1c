package pgwire

import (
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// maxList bounds the statements that are read of one text. Those behind are no
// ops.
const maxList = 4096

// readSQL returns the statements of a text, without the empty ones. If the
// text was cut, the last one is opaque.
func readSQL(text string, cut bool) []template {
	p := &parser{lex: lexer{src: text}}
	p.advance()
	var out []template
	for p.tok.kind != tokEnd && len(out) < maxList {
		if p.tok.op(";") {
			p.advance()
			continue
		}
		t := p.statement()
		p.rest()
		t.clip()
		out = append(out, t)
	}
	if cut && len(out) > 0 {
		out[len(out)-1].shape.Opaque = true
	}
	for i := range out {
		out[i].stand()
	}
	return out
}

// stand makes the portal that stands for all of a template that is no op.
func (t *template) stand() {
	t.table = lock.TableName(t.shape.Table)
	t.bare = &portal{stmt: &statement{tmpl: t}, sql: &t.shape}
	if t.inner != nil {
		t.inner.stand()
	}
}

// A parser walks the clauses of a statement, one token ahead.
type parser struct {
	lex  lexer
	tok  token
	prev token

	depth    int    // of statements and expressions inside others
	target   string // the table that is written, without its schema
	as       string // its alias
	inserted []slot // what EXCLUDED stands for, while that has a meaning
}

func (p *parser) advance() {
	p.prev = p.tok
	p.tok = p.lex.next()
}

// mark and reset let a guess be taken back.
func (p *parser) mark() parser   { return *p }
func (p *parser) reset(m parser) { *p = m }

// word takes the keyword, if it is next.
func (p *parser) word(s string) bool {
	if !p.tok.word(s) {
		return false
	}
	p.advance()
	return true
}

// words takes several keywords, or none of them.
func (p *parser) words(list ...string) bool {
	m := p.mark()
	for _, s := range list {
		if !p.word(s) {
			p.reset(m)
			return false
		}
	}
	return true
}

func (p *parser) op(s string) bool {
	if !p.tok.op(s) {
		return false
	}
	p.advance()
	return true
}

// any reports whether one of the keywords is next.
func (p *parser) any(list ...string) bool {
	if p.tok.kind != tokWord {
		return false
	}
	for _, s := range list {
		if strings.EqualFold(p.tok.text, s) {
			return true
		}
	}
	return false
}

// end reports whether the statement, or the parenthesis around it, ends here.
func (p *parser) end() bool {
	return p.tok.kind == tokEnd || p.tok.op(")") || p.tok.op(";")
}

// step passes over one token, or over everything in a pair of brackets, or
// over a whole CASE.
func (p *parser) step() {
	switch {
	case p.tok.op("("), p.tok.op("["):
		p.brackets()
	case p.tok.word("CASE"):
		p.cases()
	default:
		p.advance()
	}
}

func (p *parser) brackets() {
	for depth := 0; p.tok.kind != tokEnd; {
		switch {
		case p.tok.op("("), p.tok.op("["):
			depth++
		case p.tok.op(")"), p.tok.op("]"):
			depth--
		}
		p.advance()
		if depth == 0 {
			return
		}
	}
}

func (p *parser) cases() {
	for depth := 0; p.tok.kind != tokEnd && !p.tok.op(";"); {
		switch {
		case p.tok.word("CASE"):
			depth++
		case p.tok.word("END"):
			depth--
		}
		if p.tok.op("(") {
			p.brackets()
		} else {
			p.advance()
		}
		if depth == 0 {
			return
		}
	}
}

// until passes over an expression or more, up to one of the keywords or the
// end, and reports whether it was a keyword.
func (p *parser) until(list ...string) bool {
	for !p.end() {
		if p.any(list...) {
			return true
		}
		p.step()
	}
	return false
}

// rest goes to the end of the statement. A stray parenthesis does not end it.
func (p *parser) rest() {
	for p.tok.kind != tokEnd && !p.tok.op(";") {
		if p.tok.word("ATOMIC") && p.prev.word("BEGIN") {
			p.body()
			continue
		}
		p.step()
	}
}

// body passes over the statements of a BEGIN ATOMIC function.
func (p *parser) body() {
	for p.tok.kind != tokEnd && !p.word("END") {
		p.step()
	}
}

// statement reads one statement as far as it matters.
func (p *parser) statement() template {
	if p.depth >= maxDepth {
		return template{}
	}
	p.depth++
	defer func() { p.depth-- }()
	verb := strings.ToUpper(p.tok.text)
	if p.tok.kind != tokWord {
		return p.strange()
	}
	p.advance()
	t := template{verb: strings.Clone(verb)}
	switch verb {
	case "SELECT":
		p.selects(&t)
	case "INSERT":
		p.inserts(&t)
	case "UPDATE":
		p.updates(&t)
	case "DELETE":
		p.deletes(&t)
	case "MERGE":
		p.merges(&t)
	case "WITH":
		return p.with()
	case "COPY":
		p.copies(&t)
	case "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT":
		p.transaction(&t)
	case "PREPARE", "EXECUTE", "DEALLOCATE", "DISCARD":
		p.prepared(&t)
	default:
		p.others(&t)
	}
	return t
}

// strange reads a statement that begins with no word: a SELECT in parentheses.
func (p *parser) strange() template {
	if !p.tok.op("(") {
		p.advance()
		return template{}
	}
	outer := p.mark()
	p.advance()
	t := p.statement()
	t.shape.Opaque = true
	p.reset(outer)
	p.brackets()
	return t
}

// with reads WITH: the statement behind the list, or the first one in the list
// that changes data if that one is a SELECT. Of several that change data only
// this one is told.
func (p *parser) with() template {
	var inner *template
	var list []common
	p.word("RECURSIVE")
	for !p.end() {
		name := p.identifier()
		p.until("AS")
		p.advance()
		p.word("NOT")
		p.word("MATERIALIZED")
		if !p.tok.op("(") {
			return template{verb: "WITH"}
		}
		t := p.inside()
		if t.kind == lock.Write && inner == nil {
			inner = &t
		}
		t.refer(list)
		if len(list) < maxSlots {
			list = append(list, common{name, t})
		}
		for !p.end() && !p.tok.op(",") && !p.any("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "VALUES", "TABLE") && !p.tok.op("(") {
			p.step() // SEARCH and CYCLE
		}
		if !p.op(",") {
			break
		}
	}
	if p.end() {
		return template{verb: "WITH"}
	}
	t := p.statement()
	if t.kind != lock.Write && inner != nil {
		inner.shape.Opaque = true
		return *inner
	}
	t.shape.Opaque = true
	t.refer(list)
	return t
}

// A common is a query in a WITH list.
type common struct {
	name string
	template
}

// refer makes a read of a query in a WITH list a read of that query's table.
// Its conditions are then about that table, and the others are not.
func (t *template) refer(list []common) {
	if t.kind != lock.Read {
		return
	}
	for i := len(list) - 1; i >= 0; i-- {
		c := &list[i]
		if c.name != t.shape.Table {
			continue
		}
		if t.shape.Table = c.shape.Table; t.shape.Table == "" {
			t.kind = ""
		}
		t.where, t.shape.Opaque = c.where, true
		t.shape.ForUpdate = t.shape.ForUpdate || c.shape.ForUpdate
		for j, name := range t.shape.Columns {
			if name != "*" && !slices.Contains(c.shape.Columns, name) && !slices.Contains(c.shape.Columns, "*") {
				t.shape.Columns[j] = "?"
			}
		}
		return
	}
}

// inside reads the statement in the parentheses that follow, and goes behind
// them.
func (p *parser) inside() template {
	outer := p.mark()
	p.advance()
	t := p.statement()
	p.reset(outer)
	p.brackets()
	return t
}

// clip bounds what is kept.
func (t *template) clip() {
	for _, list := range []*[]slot{&t.set, &t.where} {
		if len(*list) > maxSlots {
			*list = (*list)[:maxSlots:maxSlots]
			t.shape.Opaque = true
		}
	}
	if len(t.shape.Columns) > maxSlots {
		t.shape.Columns = t.shape.Columns[:maxSlots:maxSlots]
	}
	name := t.shape.Table
	name = name[strings.LastIndexByte(name, '.')+1:]
	schema := strings.TrimSuffix(strings.TrimSuffix(t.shape.Table, name), ".")
	if strings.HasPrefix(name, "pg_") || schema == "pg_catalog" || schema == "information_schema" {
		t.kind, t.system = "", true
	}
}

package pgwire

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

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
		if t.shape.ForUpdate = t.shape.ForUpdate || c.shape.ForUpdate; t.rows.verb == "" {
			t.rows = c.rows
			t.rows.few = true
		}
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

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
// text was cut, the last one is known by what was seen for certain. Nothing of
// the text is kept.
func readSQL(text string, cut bool) []template {
	if cut {
		text = text[:settled(text)]
	}
	var s surveyor
	s.start(text)
	var out []template
	budget := budgetLeast + budgetTimes*len(text)
	for s.found() && len(out) < maxList {
		s.statement()
		t := s.read()
		if cut && s.tok.kind == tokEnd {
			t.shed()
			t.shape.Cascade = t.shape.Cascade || t.verb == "TRUNCATE"
			t.unread = true
		}
		if budget -= t.weight(); budget < 0 {
			t.shed()
		}
		out = append(out, t)
	}
	if len(out) == maxList && s.found() {
		out[maxList-1].unread = true
	}
	for i := range out {
		out[i].stand()
	}
	return out
}

// What is kept of a text's statements beside their kinds and tables has at
// most so many bytes, and for each byte of the text so many.
const (
	budgetLeast = 64 << 10
	budgetTimes = 4
)

// shed leaves of a template what it does, and to which tables.
func (t *template) shed() {
	t.rows, t.guards = rowLock{}, nil
	t.set, t.where, t.holds, t.shape.Columns, t.shape.Aside, t.shape.Opaque = nil, nil, nil, nil, nil, true
}

// settled returns up to where a text that was cut can be relied on: its last
// token may go on, and so may the name that it is a part of.
func settled(text string) int {
	l := lexer{src: text}
	from, dotted := 0, false // dotted: what comes next belongs to the token before
	for {
		tok := l.next()
		switch {
		case tok.kind == tokEnd, tok.op("&") && l.pos == len(text) && l.pos-from >= 2 && text[l.pos-2]|0x20 == 'u':
			return from // U& may begin a name or a string
		case tok.kind == tokOp && strings.Contains("(),;", tok.text):
			from, dotted = l.pos, false
		case tok.op("."):
			dotted = true
		default:
			if !dotted {
				from = l.pos - len(tok.text)
			}
			dotted = tok.word("ROWS") // which means another thing before FROM
		}
	}
}

// read makes the template of the statement that was outlined: the outline says
// what it does and to which tables, and a parser what it sets, asks for and
// returns.
func (s *surveyor) read() template {
	o := &s.out
	p := &parser{lex: lexer{src: s.lex.src[o.from:o.to]}}
	p.advance()
	t := p.statement()
	if o.inner > 0 && t.effect == prepare {
		inner := readInner(s.lex.src[o.inner:o.to])
		t.inner = &inner
	}
	t.heed(o)
	t.setTables(s)
	t.clip()
	t.settleAside()
	t.takesLocks(o, p.lex.src)
	t.finds(o, p.lex.src)
	return t
}

// readInner reads the statement that a PREPARE names.
func readInner(text string) template {
	var s surveyor
	s.start(text)
	s.statement()
	s.out.inner = 0
	return s.read()
}

// heed gives the outline the last word on the kind.
func (t *template) heed(o *outline) {
	t.maybe, t.indirect = o.maybe, o.indirect
	t.unread = o.deep || o.verb.kind != tokWord && !o.verb.op("(")
	t.shape.Opaque = t.shape.Opaque || o.deep
	verb := ""
	if o.verb.kind == tokWord {
		verb = verbOf(o.verb.text)
	}
	switch {
	case o.kind == lock.Write && (t.kind != lock.Write || t.verb != verb):
		t.kind, t.verb, t.set, t.where = o.kind, verb, nil, nil
		t.shape = lock.Statement{Opaque: true}
	case o.kind == lock.Read && t.kind != lock.Read:
		t.kind, t.verb, t.where, t.shape.Opaque = o.kind, verb, nil, true
	case o.kind == "" && (t.kind == lock.Read || t.kind == lock.Write):
		t.kind = ""
	case t.verb == "WITH":
		t.verb = verb
	}
}

// setTables notes the tables of the statement. The first one that it may be about
// is its own, if the parser has found none: the one that it writes, or else
// one that is read. What the parser took for a table and is none takes its
// conditions along.
func (t *template) setTables(s *surveyor) {
	found := false
	for i := range s.tables {
		found = found || s.table(i).is(t.shape.Table)
	}
	if !found {
		t.shape.Opaque = t.shape.Opaque || t.shape.Table != ""
		t.shape.Table, t.where = "", nil
	}
	for i := range s.tables {
		t.add(s.table(i))
	}
}

func (t *template) add(m *mention) {
	if t.shape.Table == "" && (m.written || t.kind != lock.Write) {
		t.shape.Table = m.name()
	}
	if m.is(t.shape.Table) && (t.kind == "" || m.written == (t.kind == lock.Write)) {
		return
	}
	a := another{m.name(), m.written}
	if slices.Contains(t.also, a) {
		return
	}
	t.also = append(t.also, a)
	switch {
	case !m.written || t.kind != lock.Write:
	case len(t.shape.Also) < maxTables:
		t.shape.Also = append(t.shape.Also, a.name)
	default:
		t.shape.Cascade = true
	}
}

// stand makes the portal that stands for all of a template that is no op.
func (t *template) stand() {
	t.table, t.params = lock.TableName(t.shape.Table), int32(t.highest())
	both := &struct {
		portal
		statement
	}{}
	both.portal = portal{detail: detail{stmt: &both.statement}, sql: &t.shape}
	both.statement.tmpl = t
	t.bare = &both.portal
	if t.inner != nil {
		t.inner.stand()
	}
}

// statement reads one statement as far as it matters.
func (p *parser) statement() template {
	if p.depth >= maxDepth {
		return template{}
	}
	p.depth++
	defer func() { p.depth-- }()
	if p.tok.kind != tokWord {
		return p.strange()
	}
	table := p.tok.word("TABLE")
	verb := verbOf(p.tok.text)
	p.advance()
	t := template{verb: verb}
	if table {
		p.tables(&t)
		return t
	}
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
	case "TRUNCATE":
		p.truncates(&t)
	case "WITH":
		return p.with()
	case "COPY":
		p.copies(&t)
	case "LOCK":
		p.locks(&t)
	case "SET":
		p.sets(&t)
	case "RESET":
		p.resets(&t)
	case "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT":
		p.transaction(&t)
	case "SAVEPOINT", "RELEASE":
		p.savepoints(&t)
	case "PREPARE", "EXECUTE", "DEALLOCATE", "DISCARD":
		p.prepared(&t)
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
	name = unqualified(name)
	schema := strings.TrimSuffix(strings.TrimSuffix(t.shape.Table, name), ".")
	if strings.HasPrefix(name, "pg_") || schema == "pg_catalog" || schema == "information_schema" {
		t.kind, t.system = "", true
	}
}

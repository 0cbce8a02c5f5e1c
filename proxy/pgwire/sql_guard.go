package pgwire

// A guard is one thing that a WHERE asks of a column: a comparison, or one of
// null, set, true and false.
type guard struct {
	column string
	op     string
	value
}

// maxGuards bounds the guards of one statement.
const maxGuards = 64

// readGuards reads everything that the WHERE behind a place of a text asks for,
// whether AND or OR joins it. What is in subqueries is passed over.
func (t *template) readGuards(src string) {
	p := &parser{lex: lexer{src: src, pos: int(t.guarded)}, inserted: t.set[:t.inserted:t.inserted]}
	if t.inserted == 0 {
		p.inserted = nil
	}
	p.advance()
	for depth, begins := 0, true; p.tok.kind != tokEnd && !p.tok.op(";") && len(t.guards) < maxGuards; {
		switch {
		case p.tok.op(")"):
			if depth--; depth < 0 {
				return
			}
			p.advance()
			begins = false
		case p.tok.op("("):
			m := p.mark()
			p.advance()
			switch inner := p.any("SELECT", "WITH", "VALUES", "TABLE"); {
			case inner || !begins:
				t.deeps = t.deeps || inner
				p.reset(m)
				p.step()
			default:
				depth++
			}
		case p.any("RETURNING"):
			return
		case p.any("AND", "OR", "NOT"):
			p.advance()
			begins = true
		case begins:
			begins = false
			m := p.mark()
			if g, ok := p.guardHere(); ok {
				t.guards = append(t.guards, g)
			} else {
				p.reset(m)
			}
		default:
			p.step()
		}
	}
}

// guardHere reads one condition.
func (p *parser) guardHere() (guard, bool) {
	m, not := p.mark(), p.prev.word("NOT")
	if name := p.wrapped(); name != "" {
		p.casts()
		if g, ok := p.asked(name, not); ok && p.joined() {
			return g, true
		}
	}
	p.reset(m)
	v, ok := p.timelyOperand()
	op := mirrored(p.comparator())
	name, _ := p.column()
	p.casts()
	return guard{name, op, v}, ok && op != "" && name != "" && p.joined()
}

// asked reads what is asked of a column.
func (p *parser) asked(name string, not bool) (guard, bool) {
	g := guard{column: name}
	if p.word("IS") {
		not = p.word("NOT")
		switch {
		case p.word("NULL"):
			g.op = either(not, "set", "null")
		case p.word("TRUE"):
			g.op = either(not, "false", "true")
		case p.word("FALSE"):
			g.op = either(not, "true", "false")
		}
		return g, g.op != ""
	}
	if g.op = p.comparator(); g.op == "" {
		g.op = either(not, "false", "true")
		return g, true
	}
	v, ok := p.timelyOperand()
	g.value = v
	return g, ok
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// timelyOperand takes a plain value, or an expression of time.
func (p *parser) timelyOperand() (value, bool) {
	m := p.mark()
	if v, ok := p.operand(); ok && (p.joined() || p.tok.kind == tokOp && p.comparesNext()) {
		return v, true
	}
	p.reset(m)
	r, ok := p.reckon()
	return value{now: r}, ok
}

// comparesNext reports whether a comparison is next.
func (p *parser) comparesNext() bool {
	m := p.mark()
	defer p.reset(m)
	return p.comparator() != ""
}

package pgwire

import "strings"

// A parser walks the clauses of a statement, one token ahead.
type parser struct {
	lex  lexer
	tok  token
	prev token

	depth    int      // of statements and expressions inside others
	target   string   // the table that is written, without its schema
	as       string   // its alias
	inserted []slot   // what EXCLUDED stands for, while that has a meaning
	asides   []string // the columns of other tables that the conditions read ask for
	olds     bool     // what old qualifies is not of the row as it is
}

func (p *parser) advance() {
	p.prev = p.tok
	p.tok = p.lex.next()
}

// mark and reset let a guess be taken back.
func (p *parser) mark() parser { return *p }

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

// step passes over one token, over everything in a pair of brackets, over a
// whole CASE, or over DISTINCT FROM.
func (p *parser) step() {
	switch {
	case p.tok.op("("), p.tok.op("["):
		p.brackets()
	case p.tok.word("CASE"):
		p.cases()
	case p.tok.word("DISTINCT") && (p.prev.word("IS") || p.prev.word("NOT")):
		p.advance()
		p.word("FROM")
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

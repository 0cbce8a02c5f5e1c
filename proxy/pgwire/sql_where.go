package pgwire

import (
	"strconv"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// whereEnd are the words that end a WHERE.
var whereEnd = []string{"GROUP", "HAVING", "WINDOW", "UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "RETURNING", "ON"}

// where reads the conditions behind WHERE.
func (p *parser) where(t *template) {
	conds, whole := p.conjunction(t.where, 0)
	t.where = conds
	if !whole || len(p.asides) > 0 && t.kind != lock.Write {
		t.shape.Opaque = true
	}
	t.shape.Aside, p.asides = append(t.shape.Aside, p.asides...), nil
}

// maxDepth bounds the parentheses that are looked into. Texts are hostile, and
// each level may be read twice.
const maxDepth = 16

// conjunction reads conditions joined by AND, appends those that it
// understands, and reports whether that is all of them. With an OR none of
// them must hold, so none is kept.
func (p *parser) conjunction(conds []slot, depth int) ([]slot, bool) {
	from, whole := len(conds), true
	for !p.end() && !p.any(whereEnd...) {
		var ok bool
		conds, ok = p.condition(conds, depth)
		whole = whole && ok
		if p.word("AND") {
			continue
		}
		if p.tok.word("OR") {
			conds, whole = conds[:from], false
			p.until(whereEnd...)
		}
		break
	}
	return conds, whole
}

// condition reads one operand of AND.
func (p *parser) condition(conds []slot, depth int) ([]slot, bool) {
	if p.aside() {
		return conds, true
	}
	m, from := p.mark(), len(conds)
	if p.tok.op("(") && depth < maxDepth && !p.queries() {
		p.advance()
		conds, whole := p.conjunction(conds, depth+1)
		if p.op(")") && p.joined() {
			return conds, whole
		}
	} else if c, ok := p.comparison(); ok && p.joined() {
		return append(conds, c), true
	}
	p.reset(m)
	p.unknown()
	return conds[:from], false
}

// queries reports whether the parenthesis that is next is around a query.
func (p *parser) queries() bool {
	defer p.reset(p.mark())
	return p.op("(") && p.any("SELECT", "WITH", "VALUES", "TABLE")
}

// joined reports whether a condition ends here.
func (p *parser) joined() bool { return p.end() || p.any("AND", "OR") || p.any(whereEnd...) }

// unknown passes over a condition that was not understood. The AND of a
// BETWEEN belongs to it.
func (p *parser) unknown() {
	between := false
	for !p.end() && !p.tok.word("OR") && !p.any(whereEnd...) {
		if p.tok.word("AND") {
			if !between {
				return
			}
			between = false
		}
		if p.tok.word("BETWEEN") {
			between = true
		}
		p.step()
	}
}

// comparison reads column op value, or value op column.
func (p *parser) comparison() (slot, bool) {
	m := p.mark()
	if name, _ := p.column(); name != "" {
		p.casts()
		op := p.comparator()
		v, ok := p.operand()
		return slot{column: name, op: op, value: v}, op != "" && ok
	}
	p.reset(m)
	v, ok := p.operand()
	op := mirrored(p.comparator())
	name, _ := p.column()
	p.casts()
	return slot{column: name, op: op, value: v}, ok && op != "" && name != ""
}

func (p *parser) comparator() string {
	if p.tok.kind != tokOp {
		return ""
	}
	for _, op := range []string{"=", "<", "<=", ">", ">=", "<>", "!="} {
		if p.op(op) {
			if op == "!=" {
				op = "<>"
			}
			return op
		}
	}
	return ""
}

func mirrored(op string) string {
	switch op {
	case "<":
		return ">"
	case "<=":
		return ">="
	case ">":
		return "<"
	case ">=":
		return "<="
	}
	return op
}

// operand takes a parameter or a literal, perhaps in parentheses or cast.
// EXCLUDED.column is the value given for the column.
func (p *parser) operand() (value, bool) {
	v, ok := p.bareOperand()
	if ok {
		p.casts()
	}
	return v, ok
}

func (p *parser) bareOperand() (value, bool) {
	tok := p.tok
	switch {
	case tok.op("("):
		return p.enclosed()
	case p.word("CAST"):
		return p.cast()
	case tok.kind == tokParam:
		p.advance()
		n := paramNumber(tok.text[1:])
		return value{param: n}, n > 0
	case tok.kind == tokString:
		p.advance()
		if p.word("UESCAPE") {
			p.advance()
		}
		text, ok := tok.literal()
		return literal(text, ok), true
	case tok.kind == tokNumber, tok.op("-"), tok.op("+"):
		return p.signed()
	}
	return p.constant()
}

func (p *parser) enclosed() (value, bool) {
	if p.depth >= maxDepth {
		return value{}, false
	}
	p.depth++
	p.advance()
	v, ok := p.operand()
	p.depth--
	return v, p.op(")") && ok
}

func (p *parser) signed() (value, bool) {
	sign := ""
	if p.op("-") {
		sign = "-"
	} else {
		p.op("+")
	}
	if p.tok.kind != tokNumber {
		return value{}, false
	}
	text := sign + plainNumber(p.tok.text)
	p.advance()
	return literal(text, true), true
}

// plainNumber returns a number in digits: without the underscores that may
// group them, and not in another base.
func plainNumber(text string) string {
	if len(text) > 2 && text[0] == '0' && isLetter(text[1]) {
		if n, err := strconv.ParseInt(text, 0, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
	}
	return strings.ReplaceAll(text, "_", "")
}

func (p *parser) constant() (value, bool) {
	switch {
	case p.word("TRUE"):
		return literal("t", true), true
	case p.word("FALSE"):
		return literal("f", true), true
	case p.word("NULL"):
		return value{null: true}, true
	case p.word("DEFAULT"):
		return value{}, true
	case p.inserted != nil && p.word(excluded):
		return p.insertedValue()
	}
	return value{}, false
}

// insertedValue takes the column behind EXCLUDED and returns what was to be
// inserted there.
func (p *parser) insertedValue() (value, bool) {
	if !p.op(".") {
		return value{}, false
	}
	name := p.identifier()
	for _, s := range p.inserted {
		if s.column == name {
			return s.value, s.known || s.param > 0
		}
	}
	return value{}, false
}

// cast reads what follows CAST.
func (p *parser) cast() (value, bool) {
	if !p.tok.op("(") || p.depth >= maxDepth {
		return value{}, false
	}
	p.depth++
	p.advance()
	v, ok := p.operand()
	p.depth--
	if !ok || !p.word("AS") {
		return value{}, false
	}
	p.until()
	return v, p.op(")")
}

// casts passes over ::type, and reports whether one is a type of whole numbers.
func (p *parser) casts() (whole bool) {
	for p.op("::") {
		whole = wholeType(p.table()) || whole
		for p.any("PRECISION", "VARYING", "WITH", "WITHOUT", "TIME", "ZONE") {
			p.advance()
		}
		for p.tok.op("(") || p.tok.op("[") {
			p.brackets()
		}
		for p.any("WITH", "WITHOUT", "TIME", "ZONE") {
			p.advance()
		}
	}
	return whole
}

func literal(text string, known bool) value {
	if !known || len(text) > maxValue {
		return value{}
	}
	return value{known: true, says: sayingOf(text), text: strings.Clone(text)}
}

// sayingOf returns what a literal says: t, f, or e for nothing; 0 if it is another.
func sayingOf(text string) byte {
	switch text {
	case "":
		return 'e'
	case "t", "true", "TRUE":
		return 't'
	case "f", "false", "FALSE":
		return 'f'
	}
	return 0
}

// paramNumber reads the digits of $n. 0 is none.
func paramNumber(digits string) int {
	n := 0
	for i := 0; i < len(digits); i++ {
		n = n*10 + int(digits[i]-'0')
		if n > maxParams {
			return 0
		}
	}
	return n
}

package pgwire

// maxAsides is how many columns of other tables a statement may ask for.
const maxAsides = 16

// aside reads a comparison of a parameter or a literal with what a subquery finds in
// another table, and notes the columns that the subquery names. Those that are not
// qualified are that table's if it has them; whether it has is not told here.
func (p *parser) aside() bool {
	m := p.mark()
	if p.subquery() && p.comparator() != "" {
		if _, ok := p.operand(); ok && p.joined() {
			return true
		}
	}
	p.reset(m)
	if _, ok := p.operand(); ok && p.comparator() != "" && p.subquery() && p.joined() {
		return true
	}
	p.reset(m)
	return false
}

// subquery reads (SELECT column FROM table WHERE comparisons), of a table that is
// not the one that is written.
func (p *parser) subquery() bool {
	if p.inserted != nil || !p.op("(") || !p.word("SELECT") {
		return false
	}
	q := foreign{parser: p}
	if !q.result() || !p.word("FROM") || !q.from() {
		return false
	}
	if p.word("WHERE") && !q.conditions() || !p.op(")") {
		return false
	}
	return q.note()
}

// A foreign query is one of another table, being read.
type foreign struct {
	*parser
	table, as string
	columns   [][2]string // the name and what qualifies it
}

// result reads the one column, or the most or the least of it.
func (q *foreign) result() bool {
	if !q.any("MAX", "MIN") {
		return q.take()
	}
	m := q.mark()
	q.advance()
	if q.op("(") {
		return q.take() && q.op(")")
	}
	q.reset(m)
	return q.take()
}

func (q *foreign) take() bool {
	name, qualifier := q.column()
	q.columns = append(q.columns, [2]string{name, qualifier})
	return name != ""
}

func (q *foreign) from() bool {
	q.word("ONLY")
	q.table = q.parser.table()
	q.as = unqualified(q.table)
	if q.table == "" || q.as == q.target || q.tok.op("(") {
		return false
	}
	if q.word("AS") || q.tok.kind == tokQuoted || q.tok.kind == tokWord && !reserved(q.tok.text) {
		q.as = q.identifier()
	}
	return q.as != ""
}

func (q *foreign) conditions() bool {
	for {
		if !q.take() || q.comparator() == "" {
			return false
		}
		if _, ok := q.operand(); !ok {
			return false
		}
		if !q.word("AND") && !q.word("OR") {
			return true
		}
	}
}

// note hands the columns to the parser, unless one is of another table.
func (q *foreign) note() bool {
	for _, c := range q.columns {
		if c[1] != "" && c[1] != q.as || len(q.asides) == maxAsides {
			return false
		}
		q.asides = append(q.asides, q.table+"."+c[0])
	}
	return true
}

// settleAside says that the statement was not understood, and that it was but for
// its asides if that is so.
func (t *template) settleAside() {
	if t.shape.Opaque {
		t.shape.Aside = nil
	}
	t.shape.Opaque = t.shape.Opaque || len(t.shape.Aside) > 0
}

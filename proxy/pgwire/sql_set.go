package pgwire

// assignments reads what follows SET. inserted is the row that EXCLUDED stands
// for, nil outside ON CONFLICT.
func (p *parser) assignments(t *template, inserted []slot) {
	p.inserted = inserted
	for !p.end() {
		p.assignment(t, len(inserted))
		if !p.op(",") {
			break
		}
	}
	p.inserted = nil
}

func (p *parser) assignment(t *template, inserted int) {
	if p.tok.op("(") {
		p.rowAssignment(t)
		return
	}
	column, part := p.assigned()
	p.op("=")
	s := p.assign(column)
	if part {
		s = slot{column: column}
	}
	for _, old := range t.set[:inserted] {
		if old == s {
			return
		}
	}
	t.set = append(t.set, s)
}

// assigned takes the column on the left side, and reports whether only a part of it
// is set, a field or an element: what the column then is, is not told.
func (p *parser) assigned() (column string, part bool) {
	for column = p.identifier(); ; part = true {
		switch {
		case p.op("."):
			p.identifier()
		case p.tok.op("["):
			p.brackets()
		default:
			return column, part
		}
	}
}

// rowAssignment reads (a, b) = (1, 2), with or without ROW.
func (p *parser) rowAssignment(t *template) {
	columns := p.names()
	p.op("=")
	p.word("ROW")
	var values []value
	if p.tok.op("(") && !p.subselect() {
		p.advance()
		values = p.list()
		p.op(")")
	}
	for i, c := range columns {
		s := slot{column: c}
		if len(values) == len(columns) {
			s.value = values[i]
		}
		t.set = append(t.set, s)
	}
	p.toNext()
}

// assign reads the right side: a value, a step from the column itself, or
// something else.
func (p *parser) assign(column string) slot {
	m := p.mark()
	if v, ok := p.operand(); ok && p.assignEnd() {
		return slot{column: column, value: v}
	}
	p.reset(m)
	if v, step, ok := p.stepped(column); ok && p.assignEnd() {
		return slot{column: column, value: v, step: step}
	}
	p.reset(m)
	if r, ok := p.reckon(); ok && p.assignEnd() {
		return slot{column: column, value: value{now: r}}
	}
	p.reset(m)
	if p.elseNow() && p.assignEnd() {
		return slot{column: column, value: value{now: &reckoning{}}}
	}
	p.reset(m)
	p.toNext()
	return slot{column: column}
}

// stepped reads column + value, column - value or value + column.
func (p *parser) stepped(column string) (value, int64, bool) {
	if p.depth < maxDepth && p.op("(") {
		p.depth++
		v, step, ok := p.stepped(column)
		p.depth--
		return v, step, p.op(")") && ok
	}
	if name, of := p.column(); name != "" {
		step := p.sign()
		v, ok := p.operand()
		return v, step, ok && name == column && p.own(of) && step != 0
	}
	v, ok := p.operand()
	step := p.sign()
	name, of := p.column()
	return v, step, ok && name == column && p.own(of) && step == 1
}

// own reports whether a qualifier names the table that is written.
func (p *parser) own(qualifier string) bool {
	return qualifier == "" || qualifier == p.target || qualifier == p.as
}

func (p *parser) sign() int64 {
	switch {
	case p.op("+"):
		return 1
	case p.op("-"):
		return -1
	}
	return 0
}

// assignEnd reports whether an assignment ends here.
func (p *parser) assignEnd() bool {
	return p.end() || p.tok.op(",") || p.any("WHERE", "FROM", "RETURNING")
}

func (p *parser) toNext() {
	for !p.assignEnd() {
		p.step()
	}
}

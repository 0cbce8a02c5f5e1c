package pgwire

import (
	"strings"
	"time"
)

// A reckoning is an expression of time that the server works out: now, perhaps
// with an interval added or taken away.
type reckoning struct {
	fixed time.Duration // of the interval, what is written out
	param int           // and so many units of a parameter, 0 if there is none
	unit  time.Duration
	sign  time.Duration // of the parameter
	whole bool          // it is rounded to whole seconds
}

// plain reports whether it is now, and no more.
func (r *reckoning) plain() bool { return r.fixed == 0 && r.param == 0 }

// length returns the interval, if it is known.
func (r *reckoning) length(from binding) (time.Duration, bool) {
	if r.param == 0 {
		return r.fixed, true
	}
	if from == nil {
		return 0, false
	}
	d, ok := from.when(r.param).long(r.unit)
	return r.fixed + r.sign*d, ok
}

// A term is a part of a sum: now, or an interval.
type timeTerm struct {
	reckoning
	now bool
}

// reckon reads an expression of time.
func (p *parser) reckon() (*reckoning, bool) {
	t, ok := p.timeSum()
	if !ok || !t.now {
		return nil, false
	}
	return &t.reckoning, true
}

// elseNow reads a CASE that is now unless one of its conditions holds: what the
// end of a lease is set to by who gives it back, but not before it was to last for.
func (p *parser) elseNow() bool {
	if !p.word("CASE") {
		return false
	}
	for !p.end() && !p.tok.word("ELSE") {
		p.step()
	}
	if !p.word("ELSE") {
		return false
	}
	r, ok := p.reckon()
	return ok && r.plain() && p.word("END")
}

func (p *parser) timeSum() (timeTerm, bool) {
	if p.depth >= maxDepth {
		return timeTerm{}, false
	}
	p.depth++
	defer func() { p.depth-- }()
	sum, ok := p.timeTerm()
	for ok {
		sign := time.Duration(p.sign())
		if sign == 0 {
			return sum, true
		}
		var t timeTerm
		t, ok = p.timeTerm()
		ok = ok && sum.add(t, sign)
	}
	return sum, false
}

func (t *timeTerm) add(u timeTerm, sign time.Duration) bool {
	if t.now && u.now || u.now && sign < 0 || t.param != 0 && u.param != 0 {
		return false
	}
	t.now = t.now || u.now
	t.fixed += sign * u.fixed
	t.whole = t.whole || u.whole
	if u.param != 0 {
		t.param, t.unit, t.sign = u.param, u.unit, sign*u.sign
	}
	return true
}

// rounded notes, if so, that a time is made a whole number of seconds.
func (t *timeTerm) rounded(so bool) {
	t.whole = t.whole || so && t.now
}

// wholeType reports whether a type is of whole numbers.
func wholeType(name string) bool {
	return oneOf(strings.TrimPrefix(name, "pg_catalog."), "int integer bigint int4 int8")
}

// timeTerm reads now, an interval, or a sum in parentheses.
func (p *parser) timeTerm() (timeTerm, bool) {
	t, ok := p.timeFactor()
	for ok && p.op("*") {
		u, more := p.timeFactor()
		ok = more && t.times(u)
	}
	return t, ok
}

// times multiplies an interval by a number, which is an interval of seconds.
func (t *timeTerm) times(u timeTerm) bool {
	switch {
	case t.now || u.now || t.param != 0 && u.param != 0:
		return false
	case t.param != 0:
		t.unit = time.Duration(t.unit.Seconds() * float64(u.fixed))
	case u.param != 0:
		t.param, t.unit, t.sign, t.fixed = u.param, time.Duration(u.unit.Seconds()*float64(t.fixed)), 1, 0
	default:
		t.fixed = time.Duration(t.fixed.Seconds() * float64(u.fixed))
	}
	return true
}

func (p *parser) timeFactor() (timeTerm, bool) {
	t, ok := p.bareTime()
	for ok {
		t.rounded(p.casts())
		if !p.words("AT", "TIME", "ZONE") {
			return t, true
		}
		_, ok = p.operand()
	}
	return t, false
}

func (p *parser) bareTime() (timeTerm, bool) {
	switch {
	case p.tok.op("("):
		return p.timeInside()
	case p.word("INTERVAL"):
		return p.timeLiteral()
	case p.any("CURRENT_TIMESTAMP", "LOCALTIMESTAMP"):
		p.advance()
		if p.tok.op("(") {
			p.brackets()
		}
		return timeTerm{now: true}, true
	case p.word("CAST"):
		return p.timeCast()
	case p.tok.kind == tokWord || p.tok.kind == tokQuoted:
		return p.timeCall()
	}
	v, ok := p.bareOperand()
	switch {
	case !ok:
		return timeTerm{}, false
	case v.param > 0:
		return timeTerm{reckoning: reckoning{param: v.param, unit: time.Second, sign: 1}}, true
	case !v.known:
		return timeTerm{}, false
	}
	d, ok := textMoment(v.text, 0).long(time.Second)
	return timeTerm{reckoning: reckoning{fixed: d}}, ok
}

// timeLiteral reads what follows INTERVAL.
func (p *parser) timeLiteral() (timeTerm, bool) {
	if p.tok.kind != tokString {
		return timeTerm{}, false
	}
	text, ok := p.tok.literal()
	p.advance()
	unit := time.Second
	if p.any("SECOND", "MINUTE", "HOUR", "DAY") {
		unit, _ = unitOf(p.tok.text)
		p.advance()
	}
	d, is := textMoment(text, 0).long(unit)
	return timeTerm{reckoning: reckoning{fixed: d}}, ok && is
}

// timeInside reads a sum in parentheses, or a number with its unit behind it:
// ($1 || ' seconds').
func (p *parser) timeInside() (timeTerm, bool) {
	p.advance()
	m := p.mark()
	if v, ok := p.operand(); ok && v.plain() && p.op("||") && p.tok.kind == tokString {
		text, _ := p.tok.literal()
		unit, known := unitOf(strings.TrimSpace(text))
		p.advance()
		r := reckoning{param: v.param, unit: unit, sign: 1}
		if v.known {
			d, is := textMoment(v.text, 0).long(unit)
			r, known = reckoning{fixed: d}, known && is
		}
		return timeTerm{reckoning: r}, known && p.op(")")
	}
	p.reset(m)
	t, ok := p.timeSum()
	return t, ok && p.op(")")
}

// timeCast reads what follows CAST.
func (p *parser) timeCast() (timeTerm, bool) {
	if !p.op("(") {
		return timeTerm{}, false
	}
	t, ok := p.timeSum()
	if !ok || !p.word("AS") {
		return timeTerm{}, false
	}
	t.rounded(wholeType(p.table()))
	p.until()
	return t, p.op(")")
}

// timeCall reads a call of a function about time.
func (p *parser) timeCall() (timeTerm, bool) {
	name := p.table()
	if !p.tok.op("(") {
		return timeTerm{}, false
	}
	switch strings.TrimPrefix(name, "pg_catalog.") {
	case "now", "clock_timestamp", "statement_timestamp", "transaction_timestamp":
		p.brackets()
		return timeTerm{now: true}, true
	case "make_interval":
		return p.makeInterval()
	case "timezone", "date_part", "coalesce":
		p.advance()
		if _, ok := p.operand(); !ok || !p.op(",") {
			return timeTerm{}, false
		}
	case "extract":
		p.advance()
		if !p.word("EPOCH") || !p.word("FROM") {
			return timeTerm{}, false
		}
	case "floor", "ceil", "round", "trunc":
		p.advance()
		t, ok := p.timeSum()
		t.rounded(true)
		return t, ok && p.op(")")
	default:
		return timeTerm{}, false
	}
	t, ok := p.timeSum()
	return t, ok && p.op(")")
}

// makeInterval reads make_interval(secs => $1).
func (p *parser) makeInterval() (timeTerm, bool) {
	p.advance()
	unit, known := unitOf(p.identifier())
	if !known || !p.op("=>") && !p.op(":=") {
		return timeTerm{}, false
	}
	v, ok := p.operand()
	if !ok || !p.op(")") {
		return timeTerm{}, false
	}
	if v.param > 0 {
		return timeTerm{reckoning: reckoning{param: v.param, unit: unit, sign: 1}}, true
	}
	d, ok := textMoment(v.text, 0).long(unit)
	return timeTerm{reckoning: reckoning{fixed: d}}, ok && v.known
}

package resp

import (
	"slices"
	"strconv"
	"strings"
)

// expression reads one, with no regard to precedence but that .. binds before
// a comparison.
func (r *luaReader) expression() ref {
	if r.deep() {
		return ref{}
	}
	defer func() { r.depth-- }()
	if r.depth == 1 {
		r.chain = r.i
	}
	v := r.joined()
	for r.peek().kind == symbol || r.peek().kind == word {
		switch {
		case r.take("=="):
			v = r.compare("==", v)
		case r.take("~="):
			v = r.compare("~=", v)
		case r.take("and"), r.take("or"):
			r.mixed[r.chain] = true
			r.alternative()
			v = ref{}
		case r.arithmetic():
			r.joined()
			v = ref{}
		default:
			return v
		}
	}
	return v
}

// deep goes one level down, and gives the text up if it has gone too far.
func (r *luaReader) deep() bool {
	r.depth++
	if r.depth > maxNested {
		r.giveUp()
		r.depth--
	}
	return r.gaveUp
}

// alternative reads the next operand of and/or and what it is compared with.
func (r *luaReader) alternative() {
	w := r.joined()
	switch {
	case r.take("=="):
		r.compare("==", w)
	case r.take("~="):
		r.compare("~=", w)
	}
}

func (r *luaReader) compare(op string, a ref) ref {
	r.note(op, a, r.joined())
	return ref{}
}

func (r *luaReader) arithmetic() bool {
	for _, op := range []string{"+", "-", "*", "/", "%", "^", "<=", ">=", "<", ">"} {
		if r.take(op) {
			return true
		}
	}
	return false
}

func (r *luaReader) joined() ref {
	v := r.operand()
	if !r.at("..") {
		return v
	}
	parts := []ref{v}
	if v.kind == joinRef {
		parts = slices.Clone(v.parts)
	}
	for r.take("..") {
		parts = append(parts, r.operand())
	}
	return compound(joinRef, "", parts)
}

func (r *luaReader) operand() ref {
	if r.deep() {
		return ref{}
	}
	defer func() { r.depth-- }()
	v := r.plain()
	for {
		switch {
		case r.at("("):
			v = r.invoke(v)
		case r.at("["):
			r.i++
			r.expression()
			r.take("]")
			v = ref{}
		case r.take("."), r.take(":"):
			r.name()
			v = ref{}
		default:
			return v
		}
	}
}

func (r *luaReader) plain() ref {
	t := r.peek()
	switch t.kind {
	case literal:
		r.i++
		return ref{kind: textRef, text: t.text}
	case numeral:
		r.i++
		if n, err := strconv.ParseInt(t.text, 10, 64); err == nil {
			return ref{kind: numberRef, n: n}
		}
		return ref{}
	case word:
		return r.named(t.text)
	}
	switch {
	case r.take("-"):
		v := r.operand()
		v.n = -v.n
		if v.kind != numberRef {
			v = ref{}
		}
		return v
	case r.take("#"):
		if r.take("KEYS") {
			return ref{kind: eachIndex}
		}
		r.operand()
	case r.take("("):
		v := r.expression()
		r.take(")")
		return v
	case r.take("{"):
		return r.table()
	}
	return ref{}
}

// named reads what begins with a word.
func (r *luaReader) named(name string) ref {
	switch name {
	case "then", "do", "end", "else", "elseif", "if", "return", "local", "until", "while", "for", "repeat", "break", "in", "and", "or":
		return ref{}
	}
	r.i++
	switch name {
	case "nil", "false":
		return ref{kind: nothingRef}
	case "true":
		return ref{kind: truthRef}
	case "not":
		v := r.operand()
		r.note("not", v, ref{})
		return ref{}
	case "function":
		r.function()
		return ref{}
	case "KEYS":
		return r.indexed(keyRef)
	case "ARGV":
		return r.indexed(argRef)
	case "redis", "server":
		return r.standardCall()
	case "tonumber", "tostring":
		if r.take("(") {
			v := r.list()
			r.take(")")
			return v[0]
		}
		return ref{}
	}
	return r.vars[name]
}

func (r *luaReader) indexed(kind refKind) ref {
	if !r.take("[") {
		return ref{}
	}
	v := r.expression()
	r.take("]")
	switch {
	case v.kind == numberRef && v.n > 0:
		return ref{kind: kind, n: v.n}
	case v.kind == eachIndex && kind == keyRef:
		return ref{kind: kind}
	}
	return ref{}
}

func (r *luaReader) standardCall() ref {
	if !r.take(".") {
		return ref{}
	}
	switch name, _ := r.name(); name {
	case "call", "pcall":
		return ref{kind: callerRef}
	}
	return ref{}
}

func (r *luaReader) table() ref {
	var parts []ref
	for r.i < len(r.toks) && !r.take("}") {
		at := r.i
		parts = append(parts, r.expression())
		if !r.take(",") && !r.take(";") && r.i == at {
			r.i++
		}
	}
	return compound(tableRef, "", parts)
}

// invoke reads the arguments of a call; of redis.call it makes a command.
func (r *luaReader) invoke(f ref) ref {
	r.i++
	args := r.list()
	r.take(")")
	if f.kind != callerRef {
		return ref{}
	}
	name := ""
	if args[0].kind == textRef {
		name = strings.ToUpper(args[0].text)
	}
	v := compound(callRef, name, args[1:])
	if len(r.calls) == maxListed {
		r.giveUp()
		return ref{}
	}
	r.calls = append(r.calls, luaCall{ref: v, at: r.i, block: r.block(), cond: r.inCond, returned: r.inReturn})
	return v
}

package resp

import (
	"strconv"
	"strings"
)

// A luaReader walks over a script once, in the order of its text. It follows
// names and blocks as far as lock scripts use them and does not evaluate: it
// collects the commands that are called, what is compared with what, and what
// is returned.
type luaReader struct {
	toks   []token
	i      int
	depth  int
	gaveUp bool
	vars   map[string]ref

	calls   []luaCall
	tests   []test
	returns []luaReturn

	chain    int   // number of the expression at hand, for tests that belong together
	blocks   []int // the blocks around the token at hand, by number
	made     int   // blocks so far
	inCond   bool  // between if and then
	inReturn bool
}

type luaCall struct {
	ref
	block    int  // the block in which it certainly runs; moves out as blocks end
	moved    bool // out of the block that it was written in
	cond     bool
	returned bool // inside a return
	answer   ref  // what its block returns after it
	answered bool
}

// A test is one comparison, or a not.
type test struct {
	op    string // == ~= not
	a, b  ref
	chain int
}

type luaReturn struct{ values []ref }

func readLua(text []byte) (*luaReader, bool) {
	toks, ok := tokenize(text)
	r := &luaReader{toks: toks, vars: map[string]ref{}, blocks: []int{0}}
	for ok && r.i < len(r.toks) {
		at := r.i
		r.statement()
		if r.i == at {
			r.i++ // a symbol that begins nothing
		}
	}
	return r, ok && !r.gaveUp
}

func (r *luaReader) peek() token {
	if r.i < len(r.toks) {
		return r.toks[r.i]
	}
	return token{}
}

// at reports whether the next token is that word or symbol.
func (r *luaReader) at(text string) bool {
	t := r.peek()
	return t.text == text && (t.kind == word || t.kind == symbol)
}

// take consumes it if it is.
func (r *luaReader) take(text string) bool {
	if r.at(text) {
		r.i++
		return true
	}
	return false
}

func (r *luaReader) name() (string, bool) {
	if t := r.peek(); t.kind == word {
		r.i++
		return t.text, true
	}
	return "", false
}

func (r *luaReader) statement() {
	switch {
	case r.take("local"):
		r.local()
	case r.take("return"):
		r.inReturn = true
		r.returned(r.list())
		r.inReturn = false
	case r.take("if"), r.at("elseif"):
		if r.take("elseif") {
			r.leave()
		}
		r.inCond = true
		r.expression()
		r.inCond = false
	case r.take("then"), r.take("do"), r.take("repeat"):
		r.enter()
	case r.take("else"):
		r.leave()
		r.enter()
	case r.take("end"), r.take("until"):
		r.leave()
	case r.take("for"):
		r.loop()
	case r.take("function"):
		r.function()
	case r.take("while"), r.take("break"), r.take("in"), r.take(";"):
	default:
		r.assignment()
	}
}

func (r *luaReader) enter() {
	r.made++
	r.blocks = append(r.blocks, r.made)
}

// leave ends a block: what ran in it has then run in the one around it.
func (r *luaReader) leave() {
	if len(r.blocks) < 2 {
		return
	}
	ended := r.blocks[len(r.blocks)-1]
	r.blocks = r.blocks[:len(r.blocks)-1]
	for i := range r.calls {
		if r.calls[i].block == ended {
			r.calls[i].block = r.block()
			r.calls[i].moved = true
		}
	}
}

func (r *luaReader) block() int { return r.blocks[len(r.blocks)-1] }

// returned notes a return, and that it answers for what ran before it.
func (r *luaReader) returned(values []ref) {
	r.returns = append(r.returns, luaReturn{values})
	for i := range r.calls {
		c := &r.calls[i]
		if c.block == r.block() && !c.cond && !c.returned && !c.answered {
			c.answered = true
			if len(values) > 0 {
				c.answer = values[0]
			}
		}
	}
}

func (r *luaReader) local() {
	if r.take("function") {
		r.function()
		return
	}
	names := r.names()
	if r.take("=") {
		r.bind(names, r.list(), true)
	}
}

func (r *luaReader) names() []string {
	var names []string
	for {
		n, ok := r.name()
		if !ok {
			return names
		}
		names = append(names, n)
		if !r.take(",") {
			return names
		}
	}
}

// bind gives names their values. A name that is given two different values is
// unclear, since which of them it has depends on the way taken.
func (r *luaReader) bind(names []string, values []ref, fresh bool) {
	for i, n := range names {
		var v ref
		if i < len(values) {
			v = values[i]
		}
		if old, known := r.vars[n]; known && !fresh && !old.equal(v) {
			v = ref{}
		}
		r.vars[n] = v
	}
}

// assignment reads `name = expression`, or an expression for its calls.
func (r *luaReader) assignment() {
	from := r.i
	if n, ok := r.name(); ok && r.take("=") {
		r.bind([]string{n}, r.list(), false)
		return
	}
	r.i = from
	r.expression()
}

// loop reads the head of a for; over KEYS it names each key.
func (r *luaReader) loop() {
	names := r.names()
	if r.take("=") {
		bounds := r.list()
		if len(names) == 1 && len(bounds) > 1 && bounds[1].kind == eachIndex {
			r.vars[names[0]] = ref{kind: eachIndex}
		}
		return
	}
	from := r.i
	over := r.take("in") && (r.take("ipairs") || r.take("pairs")) && r.take("(") && r.take("KEYS") && r.take(")")
	if !over {
		r.i = from
		return
	}
	if len(names) == 2 {
		r.vars[names[0]] = ref{kind: eachIndex}
		r.vars[names[1]] = ref{kind: keyRef}
	}
}

// function skips a head; its body is a block that runs in no certain place.
func (r *luaReader) function() {
	for r.i < len(r.toks) && !r.take("(") {
		r.i++
	}
	for _, n := range r.names() {
		r.vars[n] = ref{}
	}
	r.take("...")
	r.take(")")
	r.enter()
}

func (r *luaReader) list() []ref {
	var out []ref
	for {
		at := r.i
		out = append(out, r.expression())
		if r.i == at || !r.take(",") {
			return out
		}
	}
}

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
		r.i, r.gaveUp = len(r.toks), true
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
	r.tests = append(r.tests, test{op, a, r.joined(), r.chain})
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
	for r.take("..") {
		w := r.operand()
		if v.kind == joinRef {
			v.parts = append(v.parts[:len(v.parts):len(v.parts)], w)
			continue
		}
		v = ref{kind: joinRef, parts: []ref{v, w}}
	}
	return v
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
		r.tests = append(r.tests, test{op: "not", a: v, chain: r.chain})
		return ref{}
	case "function":
		r.function()
		return ref{}
	case "KEYS":
		return r.indexed(keyRef)
	case "ARGV":
		return r.indexed(argRef)
	case "redis", "server":
		return r.library()
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

func (r *luaReader) library() ref {
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
	v := ref{kind: tableRef}
	for r.i < len(r.toks) && !r.take("}") {
		at := r.i
		v.parts = append(v.parts, r.expression())
		if !r.take(",") && !r.take(";") && r.i == at {
			r.i++
		}
	}
	return v
}

// invoke reads the arguments of a call; of redis.call it makes a command.
func (r *luaReader) invoke(f ref) ref {
	r.i++
	args := r.list()
	r.take(")")
	if f.kind != callerRef {
		return ref{}
	}
	v := ref{kind: callRef, parts: args[1:]}
	if args[0].kind == textRef {
		v.text = strings.ToUpper(args[0].text)
	}
	r.calls = append(r.calls, luaCall{ref: v, block: r.block(), cond: r.inCond, returned: r.inReturn})
	return v
}

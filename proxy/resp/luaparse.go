package resp

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

	mixed    map[int]bool // expressions of more than one test
	chain    int          // number of the expression at hand, for tests that belong together
	blocks   []int        // the blocks around the token at hand, by number
	made     int          // blocks so far
	spans    []luaSpan    // of the blocks, by number; 0 is the whole text
	branch   int          // the branch that was left for the next one of the same if
	inCond   bool         // between if and then
	inReturn bool
}

// A luaSpan is where a block is among the tokens.
type luaSpan struct {
	from, to int
	returns  bool // nothing behind it is reached from it
	parent   int
	isElse   bool
	next     int // the next branch of the same if; 0 for none
}

type luaCall struct {
	ref
	at       int
	block    int  // the block in which it certainly runs; moves out as blocks end
	moved    bool // out of the block that it was written in
	cond     bool
	returned bool // inside a return
	answer   ref  // what its block returns after it
	answered bool
}

// A test is one comparison, a not, or a value that is a condition by itself.
type test struct {
	op    string // == ~= not is
	a, b  ref
	chain int
	then  int // the block that depends on it
}

type luaReturn struct {
	values []ref
	at     int
	block  int
}

func readTokens(toks []token) (*luaReader, bool) {
	r := &luaReader{toks: toks, vars: map[string]ref{}, mixed: map[int]bool{}, blocks: []int{0}, spans: []luaSpan{{to: len(toks)}}}
	for r.i < len(r.toks) {
		at := r.i
		r.statement()
		if r.i == at {
			r.i++ // a symbol that begins nothing
		}
	}
	return r, !r.gaveUp
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
			r.branch = r.leave()
		}
		r.inCond = true
		if v := r.expression(); v.kind == callRef {
			r.note("is", v, ref{})
		}
		r.inCond = false
	case r.take("then"), r.take("do"), r.take("repeat"):
		r.enter()
	case r.take("else"):
		r.branch = r.leave()
		r.enter()
		r.spans[r.made].isElse = true
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
	parent := r.block()
	r.blocks = append(r.blocks, r.made)
	r.spans = append(r.spans, luaSpan{parent: parent, from: r.i, to: len(r.toks)})
	if r.branch > 0 {
		r.spans[r.branch].next, r.branch = r.made, 0
	}
}

// leave ends a block: what ran in it has then run in the one around it.
// It returns the block's number.
func (r *luaReader) leave() int {
	if len(r.blocks) < 2 {
		return 0
	}
	ended := r.blocks[len(r.blocks)-1]
	r.blocks = r.blocks[:len(r.blocks)-1]
	for i := range r.calls {
		if r.calls[i].block == ended {
			r.calls[i].block = r.block()
			r.calls[i].moved = true
		}
	}
	r.spans[ended].to = r.i
	return ended
}

// note adds a test. If it is a condition, the next block depends on it.
func (r *luaReader) note(op string, a, b ref) {
	if n := len(r.tests); n > 0 && r.tests[n-1].chain == r.chain {
		r.mixed[r.chain] = true
	}
	if len(r.tests) == maxListed {
		r.giveUp()
		return
	}
	t := test{op: op, a: a, b: b, chain: r.chain}
	if r.inCond {
		t.then = r.made + 1
	}
	r.tests = append(r.tests, t)
}

// side tells on which side of a test a token is: 1 where the block runs that
// depends on it, -1 where it is reached only without that block, else 0.
func (r *luaReader) side(t test, at int) int {
	if t.then == 0 || t.then >= len(r.spans) {
		return 0
	}
	s := r.spans[t.then]
	if s.from <= at && at < s.to {
		return 1
	}
	if at >= s.to && s.returns {
		return -1
	}
	for n, left := s.next, 32; n > 0 && left > 0; n, left = r.spans[n].next, left-1 {
		if r.spans[n].from <= at && at < r.spans[n].to {
			return -1
		}
	}
	return 0
}

func (r *luaReader) block() int { return r.blocks[len(r.blocks)-1] }

// giveUp leaves the rest of the text: there is too much in it.
func (r *luaReader) giveUp() { r.i, r.gaveUp = len(r.toks), true }

// returned notes a return, and that it answers for what ran before it.
func (r *luaReader) returned(values []ref) {
	if len(r.returns) == maxListed {
		r.giveUp()
		return
	}
	r.returns = append(r.returns, luaReturn{values, r.i, r.block()})
	r.spans[r.block()].returns = true
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

package resp

import (
	"slices"
	"strings"
)

// classify tells what a script does, from its text. What it does not
// understand has no effect that matters.
func classify(text []byte) *program {
	if toks, ok := tokenize(text); ok {
		return classifyTokens(toks)
	}
	return &program{}
}

func classifyTokens(toks []token) *program {
	r, ok := readTokens(toks)
	if !ok {
		return &program{}
	}
	for _, find := range []func(*luaReader) *program{findAcquire, findRelease, findRenew} {
		if p := find(r); p != nil {
			return p
		}
	}
	return &program{}
}

// findAcquire looks for a key that is created if it is absent.
func findAcquire(r *luaReader) *program {
	for _, c := range r.calls {
		s, ok := setter(c.ref)
		if !ok || !s.nx && (!r.absent(s.key, c.at) || r.givesUpAnother(s.key)) {
			continue
		}
		p := &program{effect: acquires, key: s.key, token: s.token, ends: s.ends}
		if s.ends.kind == unclear {
			p.ends = r.expiry(s.key)
		}
		r.findFence(p)
		r.findOwn(p, c.ref)
		p.spoken = r.spoken(c, s.nx)
		p.vague = r.isVague(p)
		return p
	}
	return nil
}

// findRelease looks for a key that is removed if its value is the caller's.
func findRelease(r *luaReader) *program {
	for _, c := range r.calls {
		if !c.isCall("DEL", "UNLINK") {
			continue
		}
		for _, key := range c.parts {
			if token, ok := r.compared(key); ok {
				p := &program{effect: releases, key: key, token: token}
				p.note(c)
				return p
			}
		}
	}
	return nil
}

// findRenew looks for a key whose expiry is moved if its value is the caller's.
func findRenew(r *luaReader) *program {
	for _, c := range r.calls {
		key := c.part(0)
		token, ok := r.compared(key)
		if !ok {
			continue
		}
		p := &program{effect: renews, key: key, token: token}
		if s, isSet := setter(c.ref); isSet && s.ends.kind != unclear {
			p.ends = s.ends
		} else if p.ends, ok = expirer(c.ref); !ok {
			continue
		}
		p.note(c)
		return p
	}
	return nil
}

// note takes over what the script answers after the effect, if it is a number
// that would otherwise be read as a failure.
func (p *program) note(c luaCall) {
	if !c.answered || c.answer.kind != numberRef {
		return
	}
	p.vague = c.moved // the same is answered when the effect did not come about
	p.success, p.hasSuccess = c.answer.n, c.answer.n <= 0
}

// A setting is a command that gives a key a value.
type setting struct {
	key, token ref
	ends       due
	nx         bool
}

// A due is when a key is to expire: a lifetime, or a time of the server's clock.
type due struct {
	ref
	seconds, absolute bool
}

func setter(c ref) (setting, bool) {
	s := setting{key: c.part(0), token: c.part(1)}
	switch {
	case c.isCall("SETNX"):
		s.nx = true
	case c.isCall("SETEX", "PSETEX"):
		s.ends, s.token = due{ref: c.part(1), seconds: c.text == "SETEX"}, c.part(2)
	case c.isCall("SET"):
		_, s.nx = c.says("NX")
		for _, option := range []string{"PX", "EX", "PXAT", "EXAT"} {
			if i, ok := c.says(option); ok {
				s.ends = due{c.part(i + 1), option[0] == 'E', len(option) == 4}
			}
		}
	default:
		return s, false
	}
	return s, s.key.isText() && s.token.isText()
}

// expirer reads a command that moves a key's expiry.
func expirer(c ref) (due, bool) {
	if !c.isCall("PEXPIRE", "EXPIRE", "PEXPIREAT", "EXPIREAT") {
		return due{}, false
	}
	return due{c.part(1), c.text[0] == 'E', strings.HasSuffix(c.text, "AT")}, true
}

// expiry finds the expiry that is set on the key by a command of its own.
func (r *luaReader) expiry(key ref) due {
	for _, c := range r.calls {
		if ends, ok := expirer(c.ref); ok && c.part(0).equal(key) {
			return ends
		}
	}
	return due{}
}

// compared returns what the value of the key is compared with.
func (r *luaReader) compared(key ref) (ref, bool) {
	if !key.isText() {
		return ref{}, false
	}
	for _, t := range r.tests {
		if t.op == "not" {
			continue
		}
		for _, pair := range [][2]ref{{t.a, t.b}, {t.b, t.a}} {
			if pair[0].isCall("GET") && pair[0].part(0).equal(key) && pair[1].isText() && pair[1].kind != textRef {
				return pair[1], true
			}
		}
	}
	return ref{}, false
}

// absent reports whether the token at that place is reached only if the key is
// not there, other than on the way to giving up because the value is not the
// caller's.
func (r *luaReader) absent(key ref, at int) bool {
	for _, t := range r.tests {
		if t.b.kind == callRef {
			t.a, t.b = t.b, t.a
		}
		if side := t.missing(); t.a.part(0).equal(key) && side != 0 && r.side(t, at) == side && !r.givesUp(key, t.chain) {
			return true
		}
	}
	return false
}

// missing returns the side of the test on which the key that it asks for is
// not there; 0 if it does not tell.
func (t test) missing() int {
	switch {
	case t.a.isCall("EXISTS") && len(t.a.parts) == 1 && t.b.kind == numberRef:
		switch there := t.b.n == 1; {
		case t.b.n != 0 && t.b.n != 1:
		case t.op == "==" && !there, t.op == "~=" && there:
			return 1
		case t.op == "==", t.op == "~=":
			return -1
		}
	case !t.a.isCall("GET"):
	case t.op == "not", t.op == "==" && t.b.kind == nothingRef:
		return 1
	case t.op == "is", t.op == "~=" && t.b.kind == nothingRef:
		return -1
	}
	return 0
}

// givesUpAnother reports whether the script removes another key: what it sets then
// is word of that.
func (r *luaReader) givesUpAnother(key ref) bool {
	return slices.ContainsFunc(r.calls, func(c luaCall) bool { return c.isCall("DEL", "UNLINK") && len(c.parts) > 0 && !c.part(0).equal(key) })
}

func (r *luaReader) givesUp(key ref, chain int) bool {
	return slices.ContainsFunc(r.tests, func(t test) bool {
		return t.chain == chain && t.op == "~=" && t.a.isCall("GET") && t.a.part(0).equal(key) && t.b.isText()
	})
}

// findFence looks for a counter whose new value is returned.
func (r *luaReader) findFence(p *program) {
	for _, ret := range r.returns {
		for _, v := range ret.values {
			if v.isCall("INCR", "INCRBY") && v.part(0).isText() {
				p.fence = v.part(0)
				return
			}
			if v.kind == tableRef && p.fenceAmong(v.parts) {
				return
			}
		}
	}
}

func (p *program) fenceAmong(parts []ref) bool {
	for i, v := range parts {
		if !v.isCall("INCR", "INCRBY") || !v.part(0).isText() {
			continue
		}
		p.fence = v.part(0)
		p.fenceFirst = i == 0
		if i > 0 && parts[0].kind == numberRef {
			p.lead, p.hasLead = parts[0].n, true
		}
		return true
	}
	return false
}

// findOwn looks for an array that is returned with what the command answered.
func (r *luaReader) findOwn(p *program, c ref) {
	for _, ret := range r.returns {
		for _, v := range ret.values {
			if v.kind != tableRef {
				continue
			}
			if at := slices.IndexFunc(v.parts, c.equal); at >= 0 {
				p.own, p.hasOwn = at, true
				return
			}
		}
	}
}

// isVague reports whether the script can return what it read, so that a number
// or a text does not tell a grant from a refusal.
func (r *luaReader) isVague(p *program) bool {
	for _, ret := range r.returns {
		for _, v := range ret.values {
			if isReading(v) || !p.hasLead && slices.ContainsFunc(v.parts, isReading) && v.kind == tableRef {
				return true
			}
		}
	}
	return false
}

func isReading(v ref) bool {
	return v.isCall("PTTL", "TTL", "PEXPIRETIME", "EXPIRETIME", "GET")
}

package resp

import (
	"bytes"
	"math"
)

// control fills in what the request changes in the connection, or in the
// counting of its replies.
func (t *Tracker) control(e *entry) {
	r := &t.req
	switch r.plan.cmd.verb {
	case selectVerb:
		t.selecting(e)
	case helloVerb:
		t.hello(e)
	case clientVerb:
		t.client(e)
	case scriptVerb:
		if bytes.EqualFold(r.arg(1), []byte("LOAD")) && r.arg(2) != nil {
			t.opt.Scripts.learn(r.arg(2))
		}
	case resetVerb:
		e.act = resets
		t.asked = 0
		t.asking++
	case multiVerb:
		e.act = begins
	case execVerb:
		e.act = executes
	case discardVerb:
		e.act = discards
	case subscribeVerb:
		t.subscription(e)
	case publishVerb:
		if t.subs.waiting > 0 {
			e.act = counts
		}
	case authVerb:
		e.act = authenticates
	case monitorVerb:
		e.act = monitors
	case replconfVerb:
		// In pairs, or else it is a syntax error, which has a reply.
		if r.argc%2 == 1 && (is(r.arg(1), "ACK") || is(r.arg(1), "GETACK")) {
			e.act = silent
		}
	case syncVerb:
		e.act = blinds
	case placeVerb:
		t.leaving()
	}
}

func is(arg []byte, word string) bool {
	return len(arg) == len(word) && bytes.EqualFold(arg, []byte(word))
}

func (t *Tracker) selecting(e *entry) {
	n, ok := parseInt(t.req.arg(1))
	if !ok || t.req.argc != 2 || n < 0 || n > maxCount {
		return
	}
	e.act, t.asked = selects, int(n)
	t.asking++
	if n > math.MaxUint16 {
		e.own().left = int32(n)
		return
	}
	e.num = uint16(n)
}

func (e *entry) database() int {
	if e.act == selects && e.more != nil && e.more.left > 0 {
		return int(e.more.left)
	}
	return int(e.num)
}

// hello reads HELLO [version [AUTH user password] [SETNAME name]]; the user
// and the password were never kept.
func (t *Tracker) hello(e *entry) {
	r := &t.req
	e.act = hellos
	if n, ok := parseInt(r.arg(1)); ok && (n == 2 || n == 3) {
		e.num = uint16(n)
	}
	for i := 2; i < len(r.args); i++ {
		switch opt := r.arg(i); {
		case is(opt, "AUTH"):
			e.class = credentials
			i += 2
		case is(opt, "SETNAME") && i+1 < len(r.args):
			i++
			e.naming(r.arg(i))
		}
	}
}

func (e *entry) naming(name []byte) {
	s := string(name)
	e.own().name = &s
}

func (t *Tracker) client(e *entry) {
	r := &t.req
	switch {
	case r.argc != 3:
	case is(r.arg(1), "SETNAME"):
		e.act = names
		e.naming(r.arg(2))
	case is(r.arg(1), "REPLY") && is(r.arg(2), "ON"):
		e.act = replyOn
	case is(r.arg(1), "REPLY") && is(r.arg(2), "OFF"):
		e.act = replyOff
	case is(r.arg(1), "REPLY") && is(r.arg(2), "SKIP"):
		e.act = replySkip
	}
}

package resp

import (
	"bytes"
	"math"
	"strconv"
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
		if is(r.arg(1), "LOAD") && r.arg(2) != nil && !t.opt.EffectsOnly {
			t.opt.Scripts.learn(r.arg(2))
		}
	case functionVerb:
		if text := r.arg(len(r.args) - 1); is(r.arg(1), "LOAD") && text != nil && !t.opt.EffectsOnly {
			t.opt.Scripts.learnLibrary(text)
		}
	case resetVerb:
		e.act = resets
		t.asked = 0
		t.asking++
		t.unwatch()
	case getVerb:
		t.heed(e)
	case watchVerb:
		t.watch()
	case unwatchVerb:
		if !t.multi { // EXEC looks at the keys before it carries out what is queued
			t.unwatch()
		}
	case multiVerb:
		e.act = begins
		t.multi = true
	case execVerb:
		e.act = executes
		t.unwatch()
	case discardVerb:
		e.act = discards
		t.unwatch()
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
		t.replicating(e)
	case syncVerb:
		e.act = blinds
	case placeVerb:
		t.leaving()
	}
}

// maxAddress is how long an address may be for every server to take it.
const maxAddress = 45

// replicating reads REPLCONF [option value ...]. The server takes the options in
// turn: at an ACK or a GETACK it stops without a word, at one that it refuses with
// an error, and with OK behind the last. What some servers take and others refuse
// leaves it open whether there is a reply, if an ACK follows.
func (t *Tracker) replicating(e *entry) {
	r := &t.req
	if r.argc%2 == 0 {
		return // a syntax error
	}
	open := false
	for i := 1; i < len(r.args); i += 2 {
		name, value := r.arg(i), r.arg(i+1)
		switch {
		case is(name, "ACK"), is(name, "GETACK"):
			if e.act = silent; open {
				e.act = blinds
			}
			return
		case is(name, "CAPA"):
		case name == nil, value == nil:
			open = true
		case is(name, "LISTENING-PORT"):
			if !isPort(value) {
				return
			}
		case is(name, "IP-ADDRESS"):
			open = open || len(value) > maxAddress
		case !isReplicas(name):
			return
		default:
			open = true
		}
	}
	if int64(len(r.args)) < r.argc {
		e.act = blinds
	}
}

// isPort reports whether every server reads the value as a number.
func isPort(value []byte) bool {
	n, ok := parseInt(value)
	var exact [20]byte
	return ok && bytes.Equal(strconv.AppendInt(exact[:0], n, 10), value)
}

// isReplicas reports whether the option is one that some servers know.
func isReplicas(name []byte) bool {
	for _, known := range []string{"RDB-ONLY", "RDB-FILTER-ONLY", "RDB-CHANNEL", "MAIN-CH-CLIENT-ID", "SET-RDB-CLIENT-ID", "VERSION", "UUID"} {
		if is(name, known) {
			return true
		}
	}
	return false
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

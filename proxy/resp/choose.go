package resp

import "bytes"

// choose decides what the command whose name has been read may become.
func (t *Tracker) choose() {
	name := upper(t.req.arg(0))
	p := lookup(name).prepare(t.req.argc)
	if t.opt.Wants != nil && len(name) > 0 && len(name) <= maxName {
		if p.cmd.name == "" {
			p.cmd.name = t.intern(name)
		}
		if p.wanted = t.opt.Wants(p.cmd.name); p.wanted {
			p.may = true
			p.keep = max(p.keep, placeOf(p.cmd.name).reach())
		}
	}
	if t.opt.Witnessed && p.cmd.verb.calls() && t.req.argc >= 3 {
		p.may, p.watch, p.keep = true, true, int(min(t.req.argc, maxArgs))-1
		p.sums = p.cmd.verb == evalVerb
	}
	t.req.plan, t.req.chosen, t.script, t.option = p, true, nil, 0
}

// reconsider looks at the newest argument of a watched request.
func (t *Tracker) reconsider() {
	r, i := &t.req, len(t.req.args)-1
	switch r.plan.cmd.verb {
	case helloVerb:
		t.reconsiderHello(i)
	case scriptVerb:
		r.stop(i == 1 && !bytes.EqualFold(r.arg(1), []byte("LOAD")))
	case clientVerb:
		r.stop(i == 1 && !bytes.EqualFold(r.arg(1), []byte("SETNAME")) && !bytes.EqualFold(r.arg(1), []byte("REPLY")))
	case leaveVerb:
		r.stop(i == 1 && !t.opt.Scripts.keys.has(t.asked, r.arg(1)))
	case getSetVerb:
		r.stop(i == 2 && deadline(r.arg(2)) == 0)
	case functionVerb:
		r.stop(i == 1 && !bytes.EqualFold(r.arg(1), []byte("LOAD")))
	case evalVerb, evalSHAVerb, fcallVerb:
		t.reconsiderScript(i)
	}
	r.plan.watch = r.plan.watch && (r.plan.guess || r.plan.cmd.verb == helloVerb || r.plan.cmd.verb == getSetVerb && i < 2)
}

// reconsiderHello looks at argument i, and has the two behind AUTH left out.
func (t *Tracker) reconsiderHello(i int) {
	switch opt := t.req.arg(i); {
	case i < max(t.option, 2):
	case bytes.EqualFold(opt, []byte("AUTH")):
		t.req.mute = 2
		t.option = i + 3
	case bytes.EqualFold(opt, []byte("SETNAME")):
		t.option = i + 2
	}
}

// reconsiderScript looks at argument i: the script, or one by which a script
// that is not known is guessed.
func (t *Tracker) reconsiderScript(i int) {
	r := &t.req
	if i > digestAt {
		r.stop(r.plan.guess && !r.suits(i))
		return
	}
	t.script = t.program()
	if t.opt.Witnessed {
		return
	}
	r.plan.guess = t.script == nil && t.guesses()
	r.stop(!r.plan.guess && (t.script == nil || t.script.effect == noEffect))
}

// stop makes the request a plain one, if so; one that a rule wants stays.
func (r *requests) stop(so bool) {
	if !so {
		return
	}
	r.plan.watch, r.plan.guess = false, false
	if r.plan.wanted {
		return
	}
	r.plan.may, r.plan.keep = false, min(r.plan.keep, 1)
}

// upper turns a command's name into capitals, in place.
func upper(name []byte) []byte {
	for i, c := range name {
		if c >= 'a' && c <= 'z' {
			name[i] = c - 'a' + 'A'
		}
	}
	return name
}

package witness

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

const (
	mostProbed = 1024                  // calls at a time
	mostUnder  = 1024                  // keys on which commands are under way
	patience   = 50 * time.Millisecond // for which other calls on its keys wait for a call
)

// A prober looks at the keys of a script's call before it and after it, while
// nothing else that is proxied gets to them, as far as that can be.
type prober struct {
	looker  *looker
	all     bool // calls of which the text is known, too
	say     *notes
	patient time.Duration

	mu     sync.Mutex
	shadow *resp.Shadow
	habits habits
	calls  map[wire.Call]*probing
	line   []*probing              // those that wait for others, in order
	under  map[resp.Ref][]*lock.Op // direct commands under way
}

func newProber(l *looker, all bool, o *Options, say *notes) *prober {
	return &prober{
		looker: l, all: all, say: say, patient: patience, shadow: resp.NewShadow(o.Hash, o.Scripts),
		calls: map[wire.Call]*probing{}, under: map[resp.Ref][]*lock.Op{},
	}
}

// A probing is a call whose keys are looked at. Its prober's mutex guards it.
type probing struct {
	call   *resp.Call
	owner  *touching
	refs   []resp.Ref
	since  time.Time // it was let ahead; zero: it waits for others
	before *question
	after  *question
	look   *proxy.Look
	others []*lock.Op // that may have got to its keys since
	spoilt bool       // what the looks say is not the call's doing alone
	unseen bool       // it went ahead without a look
}

// A touching is a session as a prober sees it. It implements [proxy.Watcher].
type touching struct{ p *prober }

func (t *touching) takes(c wire.Call) bool {
	call, ok := c.(*resp.Call)
	if !ok || call.Known && !t.p.all {
		return false
	}
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return len(t.p.calls) < mostProbed
}

func (t *touching) has(c wire.Call) bool {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return t.p.calls[c] != nil
}

// Before implements proxy.Watcher. A call that is not worth a look, or of which there can be none, is
// minded for the sake of the others.
func (t *touching) Before(c wire.Call) *proxy.Look {
	call, p := c.(*resp.Call), t.p
	up := p.looker.isUp()
	p.mu.Lock()
	defer p.mu.Unlock()
	v := &probing{call: call, owner: t, refs: keysOf(call), look: proxy.NewLook()}
	if len(v.refs) == 0 {
		return nil
	}
	p.own(call)
	p.calls[c] = v
	if !p.habits.worth(call.Script) || !up {
		p.pass(v)
		return nil
	}
	p.line = append(p.line, v)
	p.admit()
	if v.unseen {
		return nil
	}
	return v.look
}

// own takes the ops that the call was taken for out of what may disturb others:
// it waits for them itself.
func (p *prober) own(c *resp.Call) {
	its := func(op *lock.Op) bool { return op.Session == c.Session && op.Verb == c.Verb }
	for ref, list := range p.under {
		if slices.ContainsFunc(list, its) {
			p.under[ref] = slices.DeleteFunc(list, its)
		}
	}
	for _, v := range p.calls {
		v.others = slices.DeleteFunc(v.others, its)
	}
}

// keysOf returns the keys that a call may act upon: those that it names, and
// arguments that look like one.
func keysOf(c *resp.Call) []resp.Ref {
	var out []resp.Ref
	add := func(key []byte) {
		ref := resp.Ref{DB: c.DB, Key: string(key)}
		if key != nil && len(out) < mostKeys && !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	for _, key := range c.Keys {
		add(key)
	}
	for _, arg := range c.Args {
		if len(arg) <= 256 && bytes.ContainsAny(arg, ":/{") {
			add(arg)
		}
	}
	return out
}

// admit lets those ahead whose keys are free.
func (p *prober) admit() {
	for _, v := range slices.Clone(p.line) {
		if slices.ContainsFunc(v.refs, func(r resp.Ref) bool { return p.taken(r, v) }) {
			continue
		}
		p.line = without(p.line, v)
		v.spoilt = p.amid(v)
		v.since = time.Now()
		for _, r := range v.refs {
			for _, op := range p.under[r] {
				v.meets(op)
			}
		}
		v.before = &question{refs: v.refs}
		v.before.then = func() { p.looked(v) }
		if !p.looker.ask(v.before) {
			p.pass(v)
			v.look.Give(nil)
		}
	}
}

// meets notes another command on the call's keys, which may be one of its own
// session that was sent along with it. The call itself, as its text suggests it, is none.
func (v *probing) meets(op *lock.Op) {
	if op.Session != v.call.Session || op.Verb != v.call.Verb {
		v.others = append(v.others, op)
	}
}

// taken reports whether a key is that of a call ahead. One that takes too long
// gives its keys away.
func (p *prober) taken(r resp.Ref, v *probing) bool {
	for _, o := range p.calls {
		if o == v || !slices.Contains(o.refs, r) {
			continue
		}
		switch {
		case o.unseen, o.spoilt:
		case o.since.IsZero():
			if slices.Index(p.line, o) < slices.Index(p.line, v) {
				return true
			}
		case time.Since(o.since) > p.patient:
			o.spoilt = true
		default:
			return true
		}
	}
	return false
}

// amid reports whether a call goes ahead while another on its keys is not answered: what is
// found there may be the doing of either.
func (p *prober) amid(v *probing) bool {
	for _, o := range p.calls {
		ahead := o.unseen || !o.since.IsZero() && o.after == nil
		if o != v && ahead && slices.ContainsFunc(o.refs, func(r resp.Ref) bool { return slices.Contains(v.refs, r) }) {
			return true
		}
	}
	return false
}

// looked ends the look before a call.
func (p *prober) looked(v *probing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.habits.saw(v.call.Script, v.before.sights, false)
	if v.unseen {
		return
	}
	if !v.before.ok {
		p.overlook(v)
	}
	v.look.Give(nil)
}

// After implements proxy.Watcher.
func (t *touching) After(c wire.Call) *proxy.Look {
	p := t.p
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.calls[c]
	if v == nil {
		return nil
	}
	if v.unseen || !v.call.Ran() || v.call.Queued() || v.since.IsZero() {
		p.end(v)
		return nil
	}
	look := proxy.NewLook()
	v.look = look
	v.after = &question{refs: v.refs}
	v.after.then = func() { look.Give(p.compare(v)) }
	if !p.looker.ask(v.after) {
		p.end(v)
		return nil
	}
	return look
}

// compare ends the look after a call, and returns what tells it of its effect.
func (p *prober) compare(v *probing) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[v.call] != v {
		return nil
	}
	defer p.end(v)
	p.habits.saw(v.call.Script, v.after.sights, false)
	after, clear := v.undo()
	if !v.after.ok || !clear {
		p.say.count(Unseen)
		return nil
	}
	effect := p.shadow.Compare(v.call, v.before.sights, after, v.before.at, v.after.at)
	p.habits.saw(v.call.Script, after, len(effect.Ops) > 0)
	return func() {
		p.say.count(Told)
		v.call.Tell(effect)
	}
}

// undo takes out of the second look what others have done since the first: one
// that has taken the lock since has found it free. It reports false where it
// cannot be told.
func (v *probing) undo() ([]resp.Sight, bool) {
	out := slices.Clone(v.after.sights)
	for _, op := range v.others {
		if op.Kind != lock.Acquire || v.spoilt {
			return nil, false
		}
		i := slices.IndexFunc(out, func(s resp.Sight) bool { return s.DB == op.DB && s.Key == op.Key })
		if i < 0 || i >= len(v.before.sights) || !op.Token.Known() {
			return nil, false
		}
		if out[i].Value.Same(op.Token) && !v.before.sights[i].Value.Same(op.Token) {
			out[i].State = resp.State{Type: resp.Absent}
		}
	}
	return out, !v.spoilt
}

// end is done with a call.
func (p *prober) end(v *probing) {
	delete(p.calls, v.call)
	p.line = without(p.line, v)
	p.admit()
}

func without(list []*probing, v *probing) []*probing {
	return slices.DeleteFunc(list, func(o *probing) bool { return o == v })
}

// Missed implements proxy.Watcher.
func (t *touching) Missed(c wire.Call) {
	t.p.say.count(Late)
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	if v := t.p.calls[c]; v != nil && v.after == nil {
		t.p.overlook(v)
	}
}

// overlook has a call go ahead without a look, and lets those ahead that waited for it.
func (p *prober) overlook(v *probing) {
	p.pass(v)
	p.admit()
}

// pass has a call go ahead without a look: what others have done to its keys
// until it is answered may be its doing.
func (p *prober) pass(v *probing) {
	v.unseen = true
	p.line = without(p.line, v)
	for _, o := range p.calls {
		if o != v && !o.since.IsZero() && slices.ContainsFunc(o.refs, func(r resp.Ref) bool { return slices.Contains(v.refs, r) }) {
			o.spoilt = true
		}
	}
}

// Passed implements proxy.Watcher.
func (t *touching) Passed(op *lock.Op) {
	if op.Proto != lock.Redis || op.Kind == lock.Other {
		return
	}
	p, ref := t.p, resp.Ref{DB: op.DB, Key: op.Key}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.under) < mostUnder {
		p.under[ref] = append(p.under[ref], op)
	}
	for _, v := range p.calls {
		if !v.since.IsZero() && slices.Contains(v.refs, ref) {
			v.meets(op)
		}
	}
}

// Replied implements proxy.Watcher.
func (t *touching) Replied(op *lock.Op) {
	p, ref := t.p, resp.Ref{DB: op.DB, Key: op.Key}
	p.mu.Lock()
	defer p.mu.Unlock()
	if op.Proto == lock.Redis && op.Kind == lock.Acquire && op.Outcome == lock.Granted {
		p.shadow.Took(ref, op.Token)
	}
	list := slices.DeleteFunc(p.under[ref], func(o *lock.Op) bool { return o == op })
	if len(list) == 0 {
		delete(p.under, ref)
		return
	}
	p.under[ref] = list
}

// Closed implements proxy.Watcher.
func (t *touching) Closed() {
	p := t.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.calls {
		if v.owner == t {
			p.end(v)
		}
	}
}

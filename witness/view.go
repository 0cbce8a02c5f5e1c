package witness

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

const (
	mostViews = 256              // calls of a session that wait to be shown
	closing   = 10 * time.Second // for which a closed session's lines may still come
)

// An eye is a session as a monitor sees it. It implements [proxy.Watcher].
type eye struct {
	m      *monitor
	addr   string
	direct bool // the server sees it under the address that it has here
	shown  bool // a call of it was
	views  []*view
	closed time.Time
}

// A view is a call that was forwarded. Its monitor's mutex guards it.
type view struct {
	call   *resp.Call
	at     int64 // when it began, by the server's clock; 0: it was not shown yet
	inner  []resp.Command
	torn   bool // not all of inner is there
	unsure []resp.Ref
	effect resp.Effect
	done   bool
	seen   bool // effect is what it did
	look   *proxy.Look
	say    *notes
}

// known says that the effect is known as well as it will be.
func (v *view) known() {
	v.seen = true
	v.lost()
}

// lost says that no more will be known of the call.
func (v *view) lost() {
	v.done = true
	v.give()
}

func (v *view) give() {
	switch l := v.look; {
	case l == nil || !v.done:
	case v.seen:
		effect := v.effect
		l.Give(func() {
			v.say.count(Told)
			v.call.Tell(effect)
		})
	default:
		v.say.count(Unseen)
		l.Give(nil)
	}
}

// watch begins to watch a session.
func (m *monitor) watch(w proxy.Watched) *eye {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := &eye{m: m, addr: w.Local.String(), direct: true}
	for addr, old := range m.eyes {
		if !old.closed.IsZero() && time.Since(old.closed) > closing {
			delete(m.eyes, addr)
		}
	}
	m.eyes[e.addr] = e
	return e
}

func (e *eye) takes(c wire.Call) bool {
	_, ok := c.(*resp.Call)
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	return ok && e.m.up
}

func (e *eye) has(c wire.Call) bool {
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	return e.of(c) != nil
}

// Before implements proxy.Watcher.
func (e *eye) Before(c wire.Call) *proxy.Look {
	call := c.(*resp.Call)
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	if len(e.views) == mostViews {
		e.pass(1)
	}
	e.views = append(e.views, &view{call: call, say: e.m.say})
	return e.m.look(call)
}

// After implements proxy.Watcher.
func (e *eye) After(c wire.Call) *proxy.Look {
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	v := e.of(c)
	switch {
	case v == nil:
		return nil
	case !v.call.Ran():
		e.drop(v)
		return nil
	}
	v.look = proxy.NewLook().Lasting()
	if v.done {
		e.drop(v)
		v.give()
		return v.look
	}
	// All that the call has run is shown before a mark that is set now.
	e.m.looker.ask(&question{shown: func() {
		e.drop(v)
		if v.at == 0 {
			v.lost()
		}
	}})
	return v.look
}

// Missed implements proxy.Watcher. The call's line is still waited for.
func (e *eye) Missed(wire.Call) { e.m.say.count(Late) }

// Passed implements proxy.Watcher.
func (e *eye) Passed(op *lock.Op) {
	if op.Kind != lock.Acquire {
		return
	}
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	e.m.past.key(resp.Ref{DB: op.DB, Key: op.Key})
}

// Replied implements proxy.Watcher.
func (e *eye) Replied(*lock.Op) {}

// Closed implements proxy.Watcher.
func (e *eye) Closed() {
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	e.closed, e.views = time.Now(), nil
}

func (e *eye) of(c wire.Call) *view {
	i := slices.IndexFunc(e.views, func(v *view) bool { return v.call == c })
	if i < 0 {
		return nil
	}
	return e.views[i]
}

func (e *eye) drop(v *view) {
	e.views = slices.DeleteFunc(e.views, func(o *view) bool { return o == v })
}

// pass gives up the first n calls.
func (e *eye) pass(n int) {
	for _, v := range e.views[:n] {
		if v.at == 0 {
			v.lost()
		}
	}
	e.views = slices.Delete(e.views, 0, n)
}

// match returns the call that a line shows. Those that were sent before it and
// not shown have not been run: the server has refused them.
func (e *eye) match(c *resp.Command) *view {
	for i, v := range e.views {
		if v.at != 0 || !same(v.call, c) {
			continue
		}
		for _, before := range e.views[:i] {
			if before.at == 0 && !before.done {
				before.lost()
			}
		}
		return v
	}
	return nil
}

func (e *eye) waitsFor(c *resp.Command) bool {
	return e.closed.IsZero() && slices.ContainsFunc(e.views, func(v *view) bool { return v.at == 0 && same(v.call, c) })
}

// same reports whether a line may be that of the call.
func same(call *resp.Call, c *resp.Command) bool {
	if len(c.Args) < 3 || !strings.EqualFold(call.Verb, string(c.Args[0])) {
		return false
	}
	n, err := strconv.Atoi(string(c.Args[2]))
	rest := c.Args[3:]
	if err != nil || n < 0 || n > len(rest) || len(call.Keys) > n || len(call.Args) > len(rest)-n {
		return false
	}
	return alike(call.Keys, rest[:n], call.Partial) && alike(call.Args, rest[n:], call.Partial)
}

// alike compares what was kept of arguments with them.
func alike(kept, all [][]byte, partial bool) bool {
	if len(kept) != len(all) && !partial {
		return false
	}
	for i, arg := range kept {
		if arg != nil && !bytes.Equal(arg, all[i]) {
			return false
		}
	}
	return true
}

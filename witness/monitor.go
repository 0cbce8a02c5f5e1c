package witness

import (
	"bufio"
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

const (
	longestLine = 1 << 20                // of MONITOR; what is longer is not read
	mostInner   = 4096                   // commands of one script
	answering   = 100 * time.Millisecond // for a look whose place was shown to be there
	lagging     = time.Second            // behind the server, at which it is let go of
)

// A monitor follows what a Redis runs, as its MONITOR shows it, and tells what
// scripts did. The server shows a script's line first and then what it runs, with
// nothing else in between; that all of it was shown is known by what comes next,
// if need be a mark of the looker.
type monitor struct {
	redis  Redis
	looker *looker
	now    func() lock.Instant
	bypass func(history.Bypass)
	say    *notes

	mu      sync.Mutex
	up      bool
	shadow  *resp.Shadow
	eyes    map[string]*eye // by the address that the server sees
	current *view           // whose commands are being shown
	open    []*view         // whose keys are to be looked at
	ready   chan struct{}   // closed when it was up, or failed, for the first time
	first   sync.Once
	latest  int64  // the server's clock, Unix microseconds
	caller  string // the address of whoever runs the script that is shown, if that is nobody's
	past    past
	behind  behind
	buf     []byte
}

func newMonitor(r Redis, l *looker, o *Options, say *notes) *monitor {
	return &monitor{
		redis: r, looker: l, now: o.Now, bypass: o.Record.Bypass, say: say,
		shadow: resp.NewShadow(o.Hash, o.Scripts), eyes: map[string]*eye{}, ready: make(chan struct{}),
	}
}

// run follows the server until ctx ends.
func (m *monitor) run(ctx context.Context) {
	m.redis.keep(ctx, func(k *link) error { return m.follow(ctx, k) }, func(err error) {
		m.say.lost("monitor", m.redis.Name, err)
		m.first.Do(func() { close(m.ready) })
	})
}

func (m *monitor) follow(ctx context.Context, k *link) error {
	stop := context.AfterFunc(ctx, k.close)
	defer stop()
	if err := k.must([]byte("MONITOR")); err != nil {
		return err
	}
	_ = k.conn.SetDeadline(time.Time{})
	m.begin(m.vacant(ctx))
	defer m.end()
	for {
		line, err := m.read(k.in)
		if err != nil {
			return err
		}
		if len(line) > 0 && line[0] == '+' {
			err = m.line(line[1:])
		}
		if err != nil {
			return err
		}
	}
}

// read returns the next line, until the next call; nothing of one that is too
// long but its beginning.
func (m *monitor) read(in *bufio.Reader) ([]byte, error) {
	m.buf = m.buf[:0]
	for {
		part, err := in.ReadSlice('\n')
		if len(m.buf) == 0 && err == nil {
			return bytes.TrimRight(part, "\r\n"), nil
		}
		if len(m.buf) < longestLine {
			m.buf = append(m.buf, part...)
		}
		if err == nil {
			return bytes.TrimRight(m.buf, "\r\n"), nil
		}
		if err != bufio.ErrBufferFull {
			return nil, err
		}
	}
}

// vacant reports whether the server has no keys, by now that its MONITOR is
// followed: then each that there will be is known from its beginning.
func (m *monitor) vacant(ctx context.Context) bool {
	k, err := m.redis.connect(ctx)
	if err != nil {
		return false
	}
	defer k.close()
	got, err := k.ask(words("INFO", "keyspace"))
	return err == nil && got[0].kind == '$' && bytes.HasPrefix(got[0].text, []byte("# Keyspace")) && !bytes.Contains(got[0].text, []byte("\ndb"))
}

func (m *monitor) begin(vacant bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.up = true; vacant {
		m.shadow.Whole()
	}
	m.behind = behind{}
	m.first.Do(func() { close(m.ready) })
}

// end gives up what was waited for: the server is out of sight.
func (m *monitor) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.up, m.current, m.caller, m.open = false, nil, "", nil
	m.looker.unshown()
	m.shadow.Forget()
	for _, e := range m.eyes {
		for _, v := range e.views {
			v.lost()
		}
		e.views = nil
	}
}

// line takes in a line of MONITOR.
func (m *monitor) line(text []byte) error {
	head := glance(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	if head.inner {
		m.inner(text, head)
		return nil
	}
	m.conclude()
	if head.reads {
		return nil
	}
	c, ok := resp.ParseCommand(text)
	if !ok {
		m.shadow.Forget() // it may have changed anything
		return nil
	}
	m.latest = c.At
	m.disturb(&c)
	switch {
	case head.mark && len(c.Args) > 1:
		m.marked(m.looker.markOf(c.Args[1]))
	case head.calls:
		m.call(&c)
	default:
		m.shadow.Run(&c)
		m.past.ran(m, &c, c.Addr)
	}
	return m.behind.lag(time.Now(), c.At)
}

// inner takes in a command that a script has run.
func (m *monitor) inner(text []byte, head heading) {
	v := m.current
	if v == nil && head.reads {
		return
	}
	c, ok := resp.ParseCommand(text)
	m.disturb(&c)
	switch {
	case !ok:
		m.shadow.Forget()
	case v == nil:
		m.shadow.Run(&c)
		m.past.ran(m, &c, m.caller)
	case len(v.inner) < mostInner:
		v.inner = append(v.inner, c)
		return
	}
	if v != nil {
		v.torn = true
	}
}

// call takes in the line of a script's or function's call.
func (m *monitor) call(c *resp.Command) {
	e := m.eyes[c.Addr]
	if e == nil {
		e = m.alias(c)
	}
	m.caller = c.Addr
	if e == nil {
		return
	}
	e.shown = true
	m.past.direct = m.past.direct || e.direct
	if m.current = e.match(c); m.current != nil {
		m.current.at = c.At
	}
}

// alias finds whose call it is that comes from an address which nobody is known
// to have: something between the proxy and the server may give connections other
// addresses. It is of the only session that was never shown and waits for such
// a call.
func (m *monitor) alias(c *resp.Command) *eye {
	if m.past.direct {
		return nil
	}
	var found *eye
	for _, e := range m.eyes {
		if e.shown || !e.waitsFor(c) {
			continue
		}
		if found != nil {
			return nil
		}
		found = e
	}
	if found != nil {
		delete(m.eyes, found.addr)
		found.addr, found.direct = c.Addr, false
		m.eyes[found.addr] = found
	}
	return found
}

// conclude says what the script did whose commands have all been shown.
func (m *monitor) conclude() {
	v := m.current
	m.current, m.caller = nil, ""
	if v == nil {
		return
	}
	effect := m.shadow.Script(v.call, v.at, v.inner)
	v.inner = nil
	if v.torn {
		v.lost()
		return
	}
	v.effect = effect
	m.past.mind(effect)
	if len(effect.Unsure) > 0 && m.settle(v) {
		return
	}
	v.known()
}

// settle has the looker look at the keys of which it is not known what became of
// them, and reports whether it will.
func (m *monitor) settle(v *view) bool {
	v.unsure = v.effect.Unsure[:min(len(v.effect.Unsure), mostKeys)]
	q := &question{refs: v.unsure}
	q.shown = func() {
		for _, s := range q.sights {
			if slices.Contains(v.unsure, s.Ref) {
				m.shadow.Settle(&v.effect, v.call, s, q.at)
			}
		}
		m.open = slices.DeleteFunc(m.open, func(o *view) bool { return o == v })
		v.known()
	}
	if !m.looker.ask(q) {
		return false
	}
	m.open = append(m.open, v)
	return true
}

// disturb notes that somebody else has got to keys that are to be looked at.
func (m *monitor) disturb(c *resp.Command) {
	for _, v := range m.open {
		v.unsure = slices.DeleteFunc(slices.Clone(v.unsure), func(r resp.Ref) bool {
			return slices.ContainsFunc(c.Args, func(arg []byte) bool { return string(arg) == r.Key })
		})
	}
}

// marked takes in a mark of the looker: what it has asked was answered here.
func (m *monitor) marked(n uint64) {
	q := m.looker.ofMark(n)
	if q == nil {
		return
	}
	if len(q.refs) > 0 {
		m.mu.Unlock()
		answered := q.await(answering)
		m.mu.Lock()
		if !answered {
			q = &question{shown: q.shown} // it may still be being written to
		}
	}
	q.shown()
}

// look has the looker look at keys of which nothing is known, before a call; nil
// if there is none or it cannot.
func (m *monitor) look(c *resp.Call) *proxy.Look {
	q := &question{}
	for _, key := range c.Keys {
		ref := resp.Ref{DB: c.DB, Key: string(key)}
		if key != nil && m.shadow.Look(ref, m.latest/1000).Type == resp.Unseen && len(q.refs) < mostKeys {
			q.refs = append(q.refs, ref)
		}
	}
	if len(q.refs) == 0 {
		return nil
	}
	l := proxy.NewLook()
	q.shown = func() {
		for _, s := range q.sights {
			m.shadow.See(s.Ref, s.State)
		}
		l.Give(nil)
	}
	if !m.looker.ask(q) {
		return nil
	}
	return l
}

package witness

import (
	"errors"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

const (
	mostMinded = 8192 // keys that are minded
	mostPast   = 1024 // lines about those who are past the proxies
)

// A past notes who uses locks' keys past the proxies.
type past struct {
	direct bool // the server sees the sessions under the addresses that they have here
	minded map[resp.Ref]bool
	told   map[history.Bypass]bool
	ours   map[string]bool // addresses of links that act
}

// key has a key be minded.
func (p *past) key(k resp.Ref) {
	if p.minded == nil {
		p.minded, p.told = map[resp.Ref]bool{}, map[history.Bypass]bool{}
	}
	if len(p.minded) < mostMinded {
		p.minded[k] = true
	}
}

// own has what the client at an address does be nobody's past the proxies.
func (p *past) own(addr string) {
	if p.ours == nil || len(p.ours) == mostPast {
		p.ours = map[string]bool{}
	}
	p.ours[addr] = true
}

// mind has the keys be minded that a call has used as locks.
func (p *past) mind(e resp.Effect) {
	for _, op := range e.Ops {
		switch op.Kind {
		case lock.Acquire, lock.Renew, lock.Release:
			p.key(resp.Ref{DB: op.DB, Key: op.Key})
		}
	}
}

// ran takes in a command of the client at an address that may be no session's.
func (p *past) ran(m *monitor, c *resp.Command, addr string) {
	if !p.direct || addr == "" || m.eyes[addr] != nil || p.ours[addr] || len(c.Args) == 0 {
		return
	}
	for _, arg := range c.Args[1:min(len(c.Args), 64)] {
		if !p.minded[resp.Ref{DB: c.DB, Key: string(arg)}] {
			continue
		}
		b := history.Bypass{Upstream: m.redis.Name, DB: c.DB, Key: string(arg), Verb: strings.ToUpper(string(c.Args[0])), Address: addr}
		if len(p.told) == mostPast || p.told[b] {
			return
		}
		p.told[b] = true
		b.At = m.now()
		m.say.count(Outside)
		m.bypass(b)
	}
}

// behind tells how far what is read is behind what is shown.
type behind struct {
	known bool
	least time.Duration // between the server's clock and ours, with the way
}

var errLag = errors.New("MONITOR shows more than can be read: it is a second behind")

// lag takes in a line that was read now and shown at that time, Unix microseconds
// of the server's clock. It is an error to be too late.
func (b *behind) lag(now time.Time, at int64) error {
	d := now.Sub(time.UnixMicro(at))
	if !b.known || d < b.least {
		b.known, b.least = true, d
	}
	if d-b.least > lagging {
		return errLag
	}
	return nil
}

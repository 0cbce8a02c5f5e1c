package legs

import (
	"context"
	"io"
	"net"
	"sync"

	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
)

// Cancels knows which upstream issued the key of a session. The zero value is
// ready; it is safe for concurrent use.
type Cancels struct {
	mu     sync.Mutex
	issued map[string]*issue
}

type issue struct{ by *Postgres }

// Issued notes the key of a session, until forget is called.
func (c *Cancels) Issued(by *Postgres, pid int32, key []byte) (forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.issued == nil {
		c.issued = map[string]*issue{}
	}
	name, mine := pgwire.BackendKey(pid, key), &issue{by}
	c.issued[name] = mine
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.issued[name] == mine {
			delete(c.issued, name)
		}
	}
}

// by returns who issued the key that a CancelRequest names, nil if nobody has.
func (c *Cancels) by(packet []byte) *Postgres {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.issued[pgwire.CancelKey(packet)]; i != nil {
		return i.by
	}
	return nil
}

// cancel passes a CancelRequest on and returns when the upstream has dealt with
// it, which is when it closes the connection. An unknown key goes to the
// listener's own upstream.
func (p *Postgres) cancel(ctx context.Context, packet []byte) {
	to := p.Cancels.by(packet)
	if to == nil {
		to = p
	}
	upstream, err := to.Dial(ctx)
	if err != nil {
		p.Log.Warn("cancel request lost: upstream cannot be reached", "upstream", to.Address, "err", err)
		return
	}
	defer upstream.Close()
	stop := closing(ctx, upstream)
	defer stop()
	if _, err := upstream.Write(packet); err == nil {
		_, _ = io.Copy(io.Discard, net.Conn(upstream)) // however it ends, that is the answer
	}
}

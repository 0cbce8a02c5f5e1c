package witness

import (
	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// A witnessing is a watcher that may take on a call or not.
type witnessing interface {
	proxy.Watcher
	takes(c wire.Call) bool // it will be asked about the call
	has(c wire.Call) bool   // it was
}

// either asks the first of several that takes a call.
type either []witnessing

// Before implements proxy.Watcher.
func (l either) Before(c wire.Call) *proxy.Look {
	for _, w := range l {
		if w.takes(c) {
			return w.Before(c)
		}
	}
	return nil
}

// After implements proxy.Watcher.
func (l either) After(c wire.Call) *proxy.Look {
	for _, w := range l {
		if w.has(c) {
			return w.After(c)
		}
	}
	return nil
}

// Missed implements proxy.Watcher.
func (l either) Missed(c wire.Call) {
	for _, w := range l {
		if w.has(c) {
			w.Missed(c)
		}
	}
}

// Passed implements proxy.Watcher.
func (l either) Passed(op *lock.Op) {
	for _, w := range l {
		w.Passed(op)
	}
}

// Replied implements proxy.Watcher.
func (l either) Replied(op *lock.Op) {
	for _, w := range l {
		w.Replied(op)
	}
}

// Closed implements proxy.Watcher.
func (l either) Closed() {
	for _, w := range l {
		w.Closed()
	}
}

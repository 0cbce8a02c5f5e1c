package proxy

import "sync"

// A Gate is where one direction of a session, or both, waits for a decision to
// end. It opens once and stays open.
type Gate struct {
	once sync.Once
	done chan struct{}
	cut  *injection // not nil: nothing waits here, both connections are reset
}

func newGate() *Gate { return &Gate{done: make(chan struct{})} }

// Done returns a channel that is closed when the gate opens.
func (g *Gate) Done() <-chan struct{} { return g.done }

// Open lets go whoever waits. It may be called more than once.
func (g *Gate) Open() { g.once.Do(func() { close(g.done) }) }

// Opened reports whether the gate is open.
func (g *Gate) Opened() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

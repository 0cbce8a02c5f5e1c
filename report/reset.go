package report

import "github.com/lockfaultd/lockfaultd/history"

// resets counts the connections that rules have reset under a lock, or while it was asked for. What
// becomes of the lock, or of a write, whose answer nobody heard is a hazard of its own: no lease has to
// end for it.
func (r Run) resets() (n int) {
	for _, i := range r.Injections {
		if resets(i) && i.Outcome == landed && (i.Section || i.Asked) {
			n++
		}
	}
	return n
}

// resets reports whether an injection is one that ends a connection.
func resets(i history.Injection) bool { return i.Effect == "drop-reply" || i.Effect == "reset" }

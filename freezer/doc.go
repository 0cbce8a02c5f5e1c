// Package freezer finds the process behind a connection, stops it, and always
// lets it go.
//
// A freeze goes through these steps, in this order and in freeze.go:
//
//	policy → open handles → journal → arm the guard → freeze → confirm
//	                                                              ↓
//	     disarm ← remove from the journal ← verify ← thaw ← the caller's time
//
// [Freezer.Freeze] returns only after the kernel has said that every thread is
// stopped, so a caller may send the next byte knowing that nobody will read it.
// What was stopped is thawed on every way out: by [Frozen.Thaw], by the maximum
// given to Freeze, by [Freezer.Close], by the guard when the daemon dies or
// misses the deadline, by the daemon when the guard dies, and by [Replay] of
// the journal when both have died. A process that could not be thawed is named
// in the error, because a human has to send it SIGCONT.
//
// The guard is the same binary, started again, in its own process group and in
// the daemon's cgroup. It holds the same handles (pidfds, open freezer files), so
// that it needs to look up nothing when it acts.
//
// A pid is never trusted alone: every process is kept as a pidfd with its start
// time, and a signal goes out only while the pidfd says that it is still there.
// What must never stop (the daemon, its ancestors, its guard, pid 1, kernel
// threads, an upstream's server, relays and what keeps the machine reachable)
// is refused with a [Refusal] and its reason.
//
// The package does not know rules or protocols, does not decide how long
// anything is frozen, and does not find clients of other hosts.
package freezer

// Package lock is the vocabulary of the project, and the ledger: who holds
// what, until when, and whose write was that.
//
// An [Op] is one step that matters on the wire. Parsers make it from a request
// and complete it from the reply; the [Ledger] is told of both, in the order
// in which they happened, and derives terms from them: one term for each
// holding of one lock, with the interval in which its lease ends and the
// reads and writes that belong to it. The daemon and the judge run the same
// ledger over the same ops, so a history that is judged again gives the same
// answer. What only later ops tell, such as that a key is a lock, a judge finds
// out beforehand with a [Survey].
//
// A term ends with its release, or with the session or the transaction that it
// spans. Several may hold one lock beside each other: readers, and the members of a
// semaphore; how many a lock admits is its [Sort]. One holder may have it twice, and
// several servers may grant it together: each of those is one term. An acquire of
// which no answer came is a [Ghost].
//
// Whose an op is the ledger says with an [Attribution]. An op is certainly of a term
// if op.Term.Sure() && op.Term.Of(id); if it is not Sure it may be of any of those
// that are named, or of none. It follows the token where a process hands that over to
// another.
//
// Time is an argument everywhere: an [Instant] of the daemon's one monotonic
// clock. Nothing here reads a clock, draws a random number, starts a goroutine
// or does I/O. A Ledger is not safe for concurrent use; its owner has a mutex.
//
// The package does not know protocols (proxy/resp and proxy/pgwire do), faults
// (fault does) or verdicts (probe/check does).
package lock

// Package witness tells, over side connections, what the wire cannot.
//
// A [House] has, for each Redis:
//
//   - a monitor, which follows MONITOR: it shows what a script runs, right behind
//     the script's own line;
//   - a looker, which looks keys up, all of a question at one instant and with a
//     mark (an ECHO) that shows in MONITOR where that was;
//   - a prober, which has the looker look at a call's keys before it and after it,
//     and keeps other calls from them meanwhile;
//   - a clock, since leases end by the server's, and a lock does not outlive a
//     failover for sure.
//
// And for each Postgres a registrar, which asks pg_locks what a backend holds and
// who waits for a row of whom, and the counts of what was written, by pg_stat_user_tables.
//
// A House has a hand, too, for what a rule says by its name that it assumes: it
// removes a key, or ends a backend, on a connection that it opens for that.
//
// It is a [proxy.Witness]: its watchers are asked about the calls that trackers
// mark (resp.Call, pgwire.Call), and put into them what was seen. What that comes
// to is worked out by proxy/resp (Shadow) and proxy/pgwire; nothing here knows
// what a lock is.
//
// Watchers are called under a session's lock: they only queue and take notes,
// behind one mutex for each server that is never held across I/O. What is seen
// arrives on goroutines of the house, which Close waits for. Side connections go
// straight to the server, secured as the proxied ones are, and never through the
// proxy. A witness that is down, slow or refused is said once and counted; nothing
// that is proxied waits for it longer than [proxy.Patience].
package witness

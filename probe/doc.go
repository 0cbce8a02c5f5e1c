// Package probe asks live servers whether the data survived, and brings a
// service that can be asked about.
//
// An invariant is a query that a user named: a counter, which must move by
// exactly what was acknowledged, or a fence, which must only rise.
// [ParseInvariant] reads it, [ReadInvariant] gets its value from Postgres at
// the start and at the end of a run, and [WaitIdle] tells when the end is
// there: once no proxied backend is at work any more.
//
// [Load] is the built-in service: N processes, each of which takes a lock, in
// Redis or of Postgres, does a piece of work on one row and releases the lock.
// What the work is ([Writes]) and how it is broken on purpose ([Breaks]) can be
// chosen. The parent only waits and sums, and shows what was lost; it does not
// judge.
//
// Every query is one statement on a connection of its own, bounded by the
// caller's context. Nothing here knows what was injected, or judges a history:
// package check does that, from ops alone.
package probe

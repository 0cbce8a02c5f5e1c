// Package testbed holds what tests and the demo run against.
//
// [StartRedis] and [StartPostgres] start private real servers on free ports of
// 127.0.0.1, with their files in a folder of the caller's, and return when the
// server answers. [Redis] and [Postgres] do the same for a test and clean up
// after it; [StartPostgres18] and [Postgres18] are for what Debian's Postgres
// does not do yet. A server is in a process group of its own, so that a signal meant
// for us does not reach it, and ends when we do, even without a [Server.Stop].
//
// A [Network] is TCP in memory, for tests in virtual time, where a real socket
// would hold the clock.
//
// Stop waits until the process has gone; the folder is the caller's to remove.
// Nothing is durable: the servers write as little as they can. What is not
// installed is not installed here either: a [*MissingError] names the package.
package testbed

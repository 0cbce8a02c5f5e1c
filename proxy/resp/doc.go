// Package resp reads one Redis connection, RESP2 and RESP3, and says which of
// its bytes are ops.
//
// A [Tracker] is fed the bytes of both directions as they arrive, in chunks of
// any size. The way of one command:
//
//	bytes -> requests (framing, kept arguments) -> build (command -> lock.Op) -> queue
//	bytes -> replies (framing, one answer)      -> queue (whose reply?)       -> outcome
//
// Framing is by two state machines that look at each byte once, skip the bodies
// of what does not matter without copying them, keep no stack but a fixed one,
// and never allocate from a length that a peer announced. Requests and replies
// pair first in, first out; pushes and attributes take no place. Inside
// MULTI an op waits for its element of the array that answers EXEC.
//
// What a command is, is told by its effect: SET with NX, SETNX, SET with an
// expiry, DEL, PEXPIRE, INCR and kin directly, and EVAL and EVALSHA by what
// their Lua text does to a key. The text is classified once and remembered in
// [Scripts], which the connections of an upstream share.
//
// A server may hold a library's scripts from before, and its clients then name
// them by digests whose texts never come. EVALSHA of such a digest with one key
// and a token, and perhaps milliseconds and one argument more, is an op whose
// kind is guessed from those arguments (Op.Guessed): without a number a release, with one a
// renewal. Scripts that do something else take the same arguments, so a guess
// is worth something only where the ledger knows its token as the lock's.
// It ends when the text is seen.
//
// Promises. Marks and their order do not depend on how the bytes were cut. The
// time is linear in the bytes. A command that is no op costs no allocation. At
// most [wire.MaxHeld] bytes are withheld in a direction. No chunk is kept after
// the call that brought it, and nothing of AUTH, HELLO AUTH, ACL or CONFIG is
// kept at all. Nothing that a peer sends makes it panic.
//
// Not here: sockets, time, faults, decisions. An absolute expiry (EXAT, PXAT,
// EXPIREAT, PEXPIREAT) needs a wall clock, so the TTL of such an op is 0; so is
// the TTL that a script computes from more than one argument. Subscriptions,
// MONITOR, replication and CLIENT REPLY OFF are not followed, nor is what comes
// behind an AUTH that was sent while replies were due (some servers then leave
// its own reply out): the connection goes blind and says so with one mark.
// FCALL is no op, and of the scripts whose texts were never seen only those are
// whose arguments look like a release's or a renewal's: neither an acquire,
// nor a script with several keys, nor one whose token is a number or shorter
// than 8 bytes. A guessed op that is answered NOSCRIPT was only an attempt.
// Where a reply cannot tell the outcome, it is Unknown.
package resp

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
// FCALL is no op. A script that a rule does not name and whose text was never
// seen is none either, so the attempt that is answered NOSCRIPT mostly is not.
// Where a reply cannot tell the outcome, it is Unknown.
package resp

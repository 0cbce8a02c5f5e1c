// Package resp reads one Redis connection, RESP2 and RESP3, and says which of
// its bytes are ops.
//
// A [Tracker] is fed the bytes of both directions as they arrive, in chunks of
// any size. The way of one command:
//
//	bytes -> requests (framing, kept arguments) -> build (command -> lock.Op) -> queue
//	bytes -> replies (framing, one answer)      -> queue (whose reply?)       -> outcome
//
// What lies whole in a chunk and matters to nobody is hopped over, length by
// length. All else, what was declined there included, is framed by two state
// machines that skip the bodies of what does not matter without copying them,
// nest to a fixed depth and never allocate from a length that a peer announced.
//
// Requests and replies pair first in, first out, and mostly one to one: that
// is assumed of every command that the package does not know. What differs is
// followed as the server does it, by the replies:
//
//   - Pushes and attributes take no place, wherever they stand, nor do the
//     arrays that are publications in RESP2, or the lines of MONITOR.
//   - A subscription is answered by one confirmation for each channel, one that
//     names none by as many as there are subscriptions, but at least one.
//   - Between MULTI and EXEC a request waits for its element of EXEC's reply; these
//     elements are read as replies of their own, so that a request may
//     have several of them, or none.
//   - CLIENT REPLY OFF and SKIP, REPLCONF with an ACK or a GETACK, behind other options
//     too, and an empty request have no reply. What a request changes in the
//     connection is then taken for done.
//   - HELLO, RESET and SELECT change the connection at their place.
//   - Redis 7.2 to 8 may leave out the error of an AUTH that was sent while replies
//     were due. Behind such an AUTH both readings are kept until a reply, or an
//     empty queue, rules one of them out; till then outcomes are Unknown.
//   - Behind QUIT, and behind an error of the protocol, nothing is carried
//     out, so nothing there is an op.
//
// Where this does not suffice the connection goes blind: one mark says where and
// why, and both directions pass on unread. That is so for SYNC and PSYNC, behind which
// another protocol begins; for what is no RESP, or nests too deep; for streamed
// strings and aggregates, which no server sends; for an inline request with a NUL; for a reply that answers
// nothing or cannot be what was asked for; for an AUTH within MULTI; for a REPLCONF with
// an ACK behind options that not all servers take; where a request
// that has no reply may have failed after all; and where an array of RESP2, in a
// transaction that subscribes, may be a publication or a list that looks like one.
//
// What a command is, is told by its effect: SET with NX, SETNX, SET with an
// expiry, DEL, PEXPIRE, INCR and kin directly. A member that HSETNX, SADD or ZADD
// NX adds is a Store, a candidate only; HDEL, SREM and ZREM are ops where the key is
// known by one. A value that is a Unix time is a deadline (Op.Until), of SETNX and
// of GETSET; what GETSET's answer means depends on when it was asked, which an
// Op.TTL that was filled in at the request tells. Of a key that is watched, or known
// as a lock's, the answer to GET is heeded: in a MULTI, behind WATCH, the acts on it
// compare; elsewhere they are Racy.
//
// What a script or a function does, the wire does not tell. There are three ways to
// know it, best first:
//
//   - A witness. With Options.Witnessed each EVAL, EVALSHA and FCALL is a [Call],
//     marked at its request and ahead of its reply, and its ops are made when the
//     witness has told what it did ([Call.Tell], [Call.Resolve]). What is told behind
//     that completes them for the record ([Call.Later]). What a witness
//     makes of the commands that a script ran, or of the states of keys before and
//     after, is a [Shadow]'s to say, which knows no library: it is told by what was
//     there, what was read first and what was changed.
//   - The text. It is classified once and remembered in [Scripts], which the
//     connections of an upstream share. The op is there at the request, so that
//     rules may act before it; a witness corrects it.
//   - The arguments. A server may hold a library's scripts from before, and its
//     clients then name them by digests whose texts never come. EVALSHA of such a
//     digest with one key and a token, and perhaps milliseconds and one argument
//     more, is an op whose kind is guessed from those (Op.Guessed): without a number
//     a release, with one a renewal. Scripts that do something else take the same
//     arguments, so a guess is worth something only where the ledger knows its
//     token as the lock's. It ends when the text is seen, or a witness has told; one
//     that was refused is still a guess until a call of the script has success.
//
// Op.Evidence says which it was. Where a witness is, a script whose calls all did the
// same so far is taken for that at the request.
//
// Promises. Marks and their order do not depend on how the bytes were cut, nor
// on what was skipped instead of fed ([wire.Skipper]). The time is linear in the
// bytes. A command that is no op and changes nothing in the connection costs no
// allocation once its name was seen, whether or not a rule names it; 256 names
// are remembered, and 4096 keys of locks, by sums. At most [wire.MaxHeld] bytes are withheld in a direction, and
// of a request nothing that the server may refuse before the rest has come. No
// chunk is kept after the call that brought it, and no password: of AUTH, HELLO
// AUTH, ACL, CONFIG and MIGRATE nothing is kept but the command's name, and the
// client's name of HELLO. An inline request is kept until its line is whole, and
// then wiped. What is kept otherwise is never more than four times the bytes
// that came and 64 KiB, beside what waits for a reply and matters: requests and their
// ops, at most 132096 of them and 512 bytes each, so 65 MiB. Behind more the
// connection goes blind. The words of calls are copied for a witness, up to 1 MiB of
// those that wait. An idle connection needs one
// to three KiB, by what went over it. Nothing that a peer sends makes it panic.
//
// Not here: sockets, time, faults, decisions. An absolute expiry (EXAT, PXAT,
// EXPIREAT, PEXPIREAT) needs a wall clock, so the TTL of such an op is 0 and Until
// is set. The TTL that a script computes from more than one argument is 0 unless a
// witness tells it. An op whose request the server was told not to answer has
// outcome Unknown. Without a witness, of the scripts whose texts were never seen
// only those are ops whose arguments look like a release's or a renewal's: neither
// an acquire, nor a script with several keys, nor one whose token is a number or
// shorter than 8 bytes. An op of a script that is answered NOSCRIPT was only an
// attempt. Where a reply cannot tell the outcome, it is Unknown.
package resp

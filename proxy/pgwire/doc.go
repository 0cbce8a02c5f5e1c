// Package pgwire reads the Postgres wire protocol, version 3, and says where
// in it the ops are. It is the Postgres parser of a session and does no I/O.
//
// A [Tracker] is fed the two directions of one connection, in whatever pieces
// they arrive. A scanner cuts each direction into messages by type byte and
// length. What the client asks for goes into a queue; what upstream answers is
// matched with the head of that queue, since Postgres answers in order. SQL
// texts are read by a hand-written tokenizer and a clause walker into a
// template, which a shared [Cache] keeps by text; the parameters of a Bind are
// filled into it and make a [lock.Statement]. An op is made when its Query or
// Execute has been read, and completed when its CommandComplete or error has.
//
// What it promises:
//
//   - Marks depend on the bytes and on how the two directions interleave by
//     message, never on how they were cut into chunks.
//   - The Start of an Execute's mark is the start of the Parse or Bind that
//     leads up to it without a gap, even where those were clear already
//     because a chunk ended between them: the session clamps it.
//   - An op is whole when its Reply mark comes, but for one thing: a Write in an
//     implicit transaction may turn from Done to RolledBack until its Settle
//     mark; to Unknown, if a CALL or a DO ran behind it, which may have committed.
//   - Nothing is withheld that somebody may be waiting for: a whole message of
//     the client is clear, unless it leads up to an op whose next message has
//     begun in the same chunk; a reply is withheld only while its op is not
//     answered, and not once upstream waits for the client (COPY). A notice,
//     a notification and a parameter's status let go of all that came before
//     them, and the op's reply begins anew behind: what is held of it is then
//     its end with the outcome, while rows from before the notice have gone.
//   - A ROLLBACK TO says from which op on it undid the transaction, if its
//     savepoint was seen.
//   - Values are hashed when they are read, literals in a SQL text among them, and
//     no statement keeps them. A [Cache] keeps whole texts, with what is written in
//     them. Passwords are never copied, and a text in which there may be one is
//     not cached: one about roles or servers, or with a string and a word that
//     secrets are called by, of a short list. No chunk is kept after the call
//     that brought it.
//   - Memory is bounded: nothing is allocated by what a header claims, at most
//     one message of [wire.MaxHeld] is copied in each direction, and names and
//     statements are counted. What is read of a text has at most 4 times its
//     bytes and 64 KiB, and 512 bytes a statement; it is read in time that grows
//     as its length does.
//   - Requests that wait for their answers, up to 4194304 of them, have at most
//     4 times their bytes and 64 KiB. An op among them weighs more, as does what
//     gives a name to a statement, takes one away, or describes a statement that
//     can be an op: each about 1 KiB, 2 KiB in a Query, and 1 KiB more for 8
//     values that are read of it. Of that there is 1 GiB at most. A connection
//     that goes beyond is passed on unread, as below, and so is one with more
//     than 65536 ops in one pipeline that upstream has answered without its end.
//     What names stand for has 32 MiB at most, statements and portals each: those
//     that were not used for longest are forgotten, and make no op.
//   - Of a text that was cut, the last statement's kind and tables are told as
//     far as they were seen whole, and none of its values.
//   - Traffic without ops costs no allocation, a SELECT that [Options.Reads]
//     does not ask for among it. What is not looked at need not be fed: see
//     [Tracker.Rest].
//
// Where the order of things is in doubt, the status byte of ReadyForQuery
// decides about transactions, and a text that is not known makes no op: nor does
// a Bind of a name that two Parses of earlier segments give, while upstream has
// not said which of them it took. When upstream answers what was not asked, the
// connection is passed on unread, and one Blind mark says why. Ops that were
// outstanding then stay without a reply.
//
// What a statement does to a lock is an op of its own, ahead of the statement's:
// the calls of advisory functions, FOR UPDATE and kin within an explicit
// transaction, LOCK TABLE, and DISCARD ALL where the session may hold something.
// All have the marks of the one statement. Whether an advisory lock was granted
// is read from the cell that the function's value is in, if there is one, else
// from there being rows, else it is Unknown. A key that is computed is
// [Unresolved]; a row that the conditions do not name ends in the same sign.
// A write to a row that is a lease has such an op too, by its shape: what it
// sets, and under which conditions. A table at which one that takes a lease was
// seen is remembered, in the Cache, for what renews and releases.
// Inside functions, CALL, DO, cursors and FunctionCall no lock is seen, and
// none of EXPLAIN ANALYZE.
//
// Beside that a statement is one op at most. One that changes data anywhere is a Write: in
// a WITH list, behind EXPLAIN ANALYZE, as SELECT INTO, CREATE TABLE AS or
// TRUNCATE. Its verb and its table are those of the outer statement if that one
// writes, else those of the first that does. The other tables that it writes
// stand beside that one, up to 64 of them, and the COMMIT names the tables of all
// its transaction's statements. What TRUNCATE ... CASCADE reaches is not seen, but
// that it may be any table. Where the reply does not count what was written
// (EXPLAIN ANALYZE, a SELECT that found nothing around a write), the outcome is
// Unknown. A SELECT from a query in the list is a Read of that query's table.
// DECLARE CURSOR with its FETCH and EXECUTE of what is not known are no ops,
// unless a rule names their verb; nor are the statements of one text behind the
// 4096th. What CALL and DO write is not seen.
//
// What was carried out and could not be read to its end is counted:
// [Cache.Unread].
//
// Texts are cut as with standard_conforming_strings on. A comment at either end
// of a text is no part of it to the Cache, and may name a trace (sqlcommenter,
// marginalia). Whether a transaction reads a snapshot is followed from the
// startup message, BEGIN and SET on, as the client asks; what set_config, ALTER
// ROLE and ALTER DATABASE set is not seen.
//
// By which search path a session finds tables is followed likewise, and from what the
// server reports of it: ops that name a table without its schema carry a mark of it
// ([lock.Op.Path]), which is one of the session's own where the path is not known, or
// where it made a temporary table of that name. What CALL, DO and functions do to it is
// seen where the server reports it only (18 and later).
//
// A cell of a result has the name of the column it came from, whatever its
// alias; an expression has none, but for a cast of a column, or a COALESCE of
// one with a plain value.
//
// A [Greeter] says what comes before the startup message, with which a tracker
// begins. The package does not speak TLS or GSS encryption, does not read
// what replication streams, does not look into function bodies, DO or CALL, and
// changes nothing, but that SCRAM-SHA-256-PLUS may be taken off the list of
// mechanisms. A Tracker is not safe for concurrent use; a Cache is.
package pgwire

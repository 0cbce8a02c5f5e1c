// Package proxy stands between clients and their upstreams, and acts.
//
// The way of one command reads from top to bottom:
//
//	accept (Server) → session → tracker: frame → op → Engine: moment → decision → gate / freezer → forward (same bytes)
//	                                                                      |
//	       history ← ledger ← reply forwarded ← gate ← decision ← reply paired with its op
//
// A [Session] is sans-I/O: it is fed chunks and answers with how many bytes
// may go on and with the [Gate] that parks a direction. A driver (pump.go) owns
// the two sockets of a session and runs one goroutine for each direction, and
// passes on how each ends (ends.go). The
// [Engine] holds the ledger, the plan and the order of all sessions under one
// mutex that is never held across I/O: each moment is decided and applied there
// in one step, and what has to be done about it (freeze, thaw) is put out as an
// [Order], which the [Runner] carries out on workers and reports back.
//
// Order: a moment is decided in the order in which the engine sees it; a reply
// is applied to the ledger before its first byte goes to the client; the bytes
// of one direction of a connection never overtake each other. Time: every
// decision is a function of the instants passed in; the driver and the runner
// read the clock. Ownership: a chunk belongs to the driver and is not kept; an
// op belongs to its session until it has been recorded.
//
// A rule may have the connections of a session reset instead (cut.go): its last step says what still goes
// on, and nothing is looked at behind that. Or it may have a [Hand] do something to a server (deed.go); the
// reply waits until that is done, and what was removed is an op of its own in the order.
//
// Whoever starts a goroutine here waits for it: Serve returns when its sessions
// have ended, and Runner.Run when its workers have.
//
// What a witness tells of a call whose reply has gone on (late.go) changes what is
// recorded of it, at the place that the call had. Of the ledger it changes no more
// than that a section has ended.
//
// The package understands no protocol (proxy/resp and proxy/pgwire do), makes
// no rule (fault does), stops no process itself (freezer does) and judges
// nothing (probe/check does).
package proxy

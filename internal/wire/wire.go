// Package wire says where in a stream the bytes of an op are.
//
// A tracker (proxy/resp, proxy/pgwire) scans both directions of one connection
// and answers with marks; a session (proxy) cuts the stream at them. Offsets
// count bytes of one direction from the connection's start, so that a mark
// means the same however the bytes arrived. Trackers keep no reference to a
// chunk after the call that brought it. The package holds types only.
package wire

import "github.com/lockfaultd/lockfaultd/lock"

// Kind tells what a mark is about.
type Kind uint8

// The kinds of mark.
const (
	Request  Kind = iota + 1 // client to upstream: Op's request is whole
	Reply                    // upstream to client: Op's reply is whole and its outcome filled in
	Settle                   // upstream to client: the implicit transaction of Op, replied to before, has ended
	Answer                   // either way: [Start, End) is not forwarded, and the client gets Bytes at this place of its stream
	Blind                    // from End on the stream is passed on without being read; Reason says why
	Called                   // client to upstream: Call's request is whole; behind the Requests of the ops that it was taken for
	Answered                 // upstream to client: Call's reply is whole; ahead of the Replies of those ops
)

// A Call is a request that does what the stream does not tell, or not for sure:
// a script, or a statement that computes what it locks. A witness beside the
// wire may tell it, in the words of the tracker's package, before the reply
// goes on.
type Call interface {
	// Resolve makes the call's ops, of what was told or else of what the
	// request suggests, and completes those that were marked as a Request
	// already, which are not among the ops returned. It is called once: when the
	// reply is whole, or the session has ended without one.
	Resolve(replied bool) []*lock.Op
	// Later is what more may come to be known, once the call is resolved with a
	// reply; nil: nothing. unheard says that a witness is still to tell of it.
	Later(unheard bool) Later
}

// A Later is a call whose reply goes on before all is known of it. It does not
// change the ops that it has come to so far, which others may read by then.
type Later interface {
	// Ops returns those of them of which more may come to be known.
	Ops() []*lock.Op
	// Known reports whether more is known by now.
	Known() bool
	// Amend completes copies of these ops, in their order, by what is known, and
	// returns what the call has come to beside them. It is called once, and last.
	Amend(copies []*lock.Op) []*lock.Op
}

// A Mark is one thing found in a stream, at [Start, End).
//
// For a Request, Start is where a hold must cut so that upstream cannot carry
// the op out: mostly so that nothing of it goes there, but what a server refuses
// before it has seen the rest may be ahead of Start. For a Reply, it is so that
// the client does not learn how the op ended. Of the reply itself, what came
// before a message that answers nothing (a Postgres notice) may have been clear
// already.
type Mark struct {
	Kind   Kind
	Op     *lock.Op
	Start  int64
	End    int64
	Begun  bool   // Request: of something that had begun before it: a transaction, a pipeline without its Sync, a MULTI that renews or releases
	Call   Call   // Called and Answered
	Bytes  []byte // Answer
	Reason string // Blind: what was seen and what was expected
}

// A Tracker follows one connection. Its two methods scan the next bytes of a
// direction, append the marks that they complete, in stream order, and return
// the offset before which every byte may be forwarded: what lies behind it
// belongs to a frame, or a reply, that is not whole yet and may be held. A
// tracker never withholds more than [MaxHeld]: what is larger streams, and its
// mark then comes with Start == End, since nothing of it can be held any more.
// Calls are serialised by the caller, whatever the direction.
type Tracker interface {
	Client(chunk []byte, marks []Mark) ([]Mark, int64)
	Upstream(chunk []byte, marks []Mark) ([]Mark, int64)
}

// MaxHeld is the most that a tracker withholds in one direction, in bytes.
const MaxHeld = 1 << 20

// A Skipper is a tracker that knows ahead what it will not look at: the rest of
// a large body, or all of a stream that it has given up. The driver then lets
// the kernel move those bytes.
type Skipper interface {
	// Rest returns how many of the next bytes, from the client or else from
	// upstream, will be neither read nor withheld whatever they are; 0 if the
	// next byte has to be fed.
	Rest(fromClient bool) int64
	// Skip notes that n of them, at most Rest, have been forwarded unseen.
	Skip(fromClient bool, n int64)
}

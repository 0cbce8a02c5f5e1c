package service

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Position is a place in the history of a run: its line N, from 0, which is the header. The zero Position is before all
// runs.
type Position struct {
	Run string `json:"run,omitempty"`
	N   uint64 `json:"n"`
}

// String writes a position as the event stream does: RUN-N.
func (p Position) String() string { return p.Run + "-" + strconv.FormatUint(p.N, 10) }

// parsePosition reads RUN-N.
func parsePosition(s string) (Position, bool) {
	at := strings.LastIndexByte(s, '-')
	if at < 0 {
		return Position{}, false
	}
	n, err := strconv.ParseUint(s[at+1:], 10, 64)
	return Position{s[:at], n}, err == nil
}

// A Message is what a source has to tell: a line of a history, that it sees no more, or that it sees again.
type Message struct {
	At   time.Time // when it was heard, by our clock
	Pos  Position  // of a line
	Line []byte    // without its end; nil where it is no line. The receiver's
	Down string    // why nothing is seen from now on
	Up   bool      // something is seen again
	Idle bool      // and nothing has come behind the last line
	Over bool      // it has ended in order, so that no line of the run is on its way
}

// wire is a line as the event stream has it, with its end.
func (m Message) wire() []byte {
	return fmt.Appendf(nil, "{\"id\":%q,\"event\":%s}\n", m.Pos.String(), m.Line)
}

// A Source is where the history of a daemon comes from. Several may be followed one day, so a message's run says whose it
// is, and the run's header where its clock stands.
type Source interface {
	// Name says what it is, without passwords.
	Name() string
	// Follow tells of all lines behind a position, in order, and of what it does not see, until the context ends. It mends
	// what breaks. tell waits while there is no room.
	Follow(ctx context.Context, from Position, tell func(Message))
}

package resp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

var testHash = lock.NewHasher([]byte("test"))

func newTracker(wants ...string) *Tracker {
	return NewTracker(testOptions(wants...))
}

func testOptions(wants ...string) Options {
	o := Options{Session: 7, Upstream: "redis", Hash: testHash, Scripts: NewScripts()}
	o.Witnessed = slices.Contains(wants, witnessed)
	if len(wants) > 0 {
		o.Wants = func(verb string) bool {
			for _, w := range wants {
				if w == verb {
					return true
				}
			}
			return false
		}
		o.Could = func(string) func([]byte) bool {
			return func(key []byte) bool { return string(key) != "boring" }
		}
	}
	return o
}

// witnessed stands among the verbs that are wanted for a witness that is there.
const witnessed = "(witnessed)"

// cmd encodes a request as a client library does.
func cmd(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// words is cmd for arguments without spaces.
func words(line string) string { return cmd(strings.Fields(line)...) }

// describe words an op as the tests compare it.
func describe(op *lock.Op) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s db%d %q", op.Verb, op.Kind, op.DB, op.Key)
	if op.NX {
		b.WriteString(" nx")
	}
	if op.Guarded {
		b.WriteString(" guarded")
	}
	if op.Guessed {
		b.WriteString(" guessed")
	}
	if op.Token.Known() {
		b.WriteString(" token=" + op.Token.Hash)
	}
	if op.TTL != 0 {
		b.WriteString(" ttl=" + op.TTL.String())
	}
	if op.FenceKey != "" {
		b.WriteString(" fencekey=" + op.FenceKey)
	}
	if op.HasFence {
		fmt.Fprintf(&b, " fence=%d", op.Fence)
	}
	if op.Outcome != "" {
		fmt.Fprintf(&b, " %s", op.Outcome)
	}
	if op.Err != "" {
		b.WriteString(" err=" + op.Err)
	}
	if op.Member {
		b.WriteString(" member")
	}
	if op.Racy {
		b.WriteString(" racy")
	}
	if op.Until != 0 {
		b.WriteString(" until")
	}
	return b.String()
}

// tok is how describe shows a token.
func tok(s string) string { return "token=" + testHash.Of([]byte(s)).Hash }

// exchange feeds one whole request and one whole reply, and returns the ops
// that the replies completed.
func exchange(t *testing.T, tr *Tracker, request, reply string) []string {
	t.Helper()
	marks, clear := tr.Client([]byte(request), nil)
	checkMarks(t, marks, clear)
	replies, clear := tr.Upstream([]byte(reply), nil)
	checkMarks(t, replies, clear)
	var out []string
	for _, m := range replies {
		if m.Kind == wire.Reply {
			out = append(out, describe(m.Op))
		}
	}
	return out
}

func checkMarks(t testing.TB, marks []wire.Mark, clear int64) {
	t.Helper()
	last := int64(0)
	for _, m := range marks {
		if m.Start > m.End || m.End < last || m.End > clear {
			t.Fatalf("mark [%d, %d) after %d, clear %d", m.Start, m.End, last, clear)
		}
		last = m.End
	}
}

func kinds(marks []wire.Mark) string {
	var out []string
	for _, m := range marks {
		switch m.Kind {
		case wire.Request:
			out = append(out, fmt.Sprintf("request[%d,%d) %s", m.Start, m.End, m.Op.Verb))
		case wire.Reply:
			out = append(out, fmt.Sprintf("reply[%d,%d) %s %s", m.Start, m.End, m.Op.Verb, m.Op.Outcome))
		case wire.Blind:
			out = append(out, fmt.Sprintf("blind@%d %s", m.End, m.Reason))
		case wire.Called:
			out = append(out, fmt.Sprintf("called[%d,%d) %s", m.Start, m.End, m.Call.(*Call).Verb))
		case wire.Answered:
			out = append(out, fmt.Sprintf("answered[%d,%d) %v", m.Start, m.End, m.Call.(*Call).Ran()))
		}
	}
	return strings.Join(out, "; ")
}

package resp

import (
	"strings"
	"testing"
)

// A connection that is given up keeps nothing of what it waited for.
func TestBlindKeepsNothing(t *testing.T) {
	for name, s := range map[string][2]string{
		"in the queue":     {strings.Repeat(nx, 1000), ""},
		"in a transaction": {lines("MULTI") + strings.Repeat(nx, 1000), "+OK\r\n" + strings.Repeat("+QUEUED\r\n", 1000)},
		"in a reply":       {nx, strings.Repeat("*1\r\n", 100)},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker()
			tr.Client([]byte(s[0]), nil)
			tr.Upstream([]byte(s[1]+"?"), nil)
			if n := held(tr); !tr.told || n > 4<<10 {
				t.Errorf("blind %v, %d bytes held", tr.told, n)
			}
		})
	}
}

// While it is open whether an AUTH was answered, requests are kept apart that
// were sent since.
func TestCareLastsAsLongAsDoubt(t *testing.T) {
	play(t, newTracker(), ">"+lines("PING;AUTH u p;GET a"), "<+PONG\r\n-ERR x\r\n", ">"+lines("GET b")+nx, "<$1\r\nb\r\n:1\r\n", "="+nxOp(`db0 "k"`)+" granted")
}

// An error that the server gives a CLIENT REPLY SKIP which it does not run, or
// else the request behind the next one, is nobody's.
func TestErrorsThatTwoMayHaveCaused(t *testing.T) {
	for _, word := range []string{"BUSY", "NOPERM"} {
		tr := newTracker()
		tr.Client([]byte(lines("CLIENT REPLY SKIP;P1;P2")), nil)
		marks, _ := tr.Upstream([]byte("-"+word+" x\r\n"), nil)
		if len(marks) == 0 || !strings.Contains(marks[len(marks)-1].Reason, "more than one request") {
			t.Errorf("%s: %s", word, kinds(marks))
		}
	}
}

package resp

import (
	"strings"
	"testing"
)

// A list may begin as what is published does.
const (
	likeMessage = "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n"
	likeConfirm = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
	ended       = "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n"
)

func TestListsThatLookLikePublications(t *testing.T) {
	granted, refused := nxOp(`db0 "k"`)+" granted", nxOp(`db0 "k"`)+" refused"
	for name, s := range map[string]struct{ requests, replies, want string }{
		"ahead of a subscription in EXEC": {lines("MULTI;LRANGE l 0 -1;SETNX k v;INCR n;UNSUBSCRIBE c;EXEC"),
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n" + likeMessage + ":0\r\n:1\r\n" + ended, refused + `; INCR fence db0 "n" fencekey=n fence=1 done`},
		"behind a transaction that published nothing": {lines("MULTI;SUBSCRIBE c;UNSUBSCRIBE c;EXEC;LRANGE l 0 -1;SETNX k v;SETNX k v"),
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" + likeConfirm + ended + likeMessage + ":0\r\n:1\r\n", refused + "; " + granted},
		"ahead of a subscription":       {lines("CLIENT REPLY SKIP;GET x;LRANGE l 0 -1;SETNX k v;SUBSCRIBE c"), likeMessage + ":0\r\n" + likeConfirm, refused},
		"a confirmation's, out of turn": {lines("EVAL x 0;SETNX k v;SUBSCRIBE c"), likeConfirm + ":0\r\n" + likeConfirm, refused},
		"the same in EXEC": {lines("MULTI;EVAL x 0;SETNX k v;SUBSCRIBE c;EXEC"),
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n" + likeConfirm + ":0\r\n" + likeConfirm, refused},
		"too long for one": {lines("MULTI;SUBSCRIBE c;LRANGE l 0 -1;SETNX k v;EXEC"),
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n" + likeConfirm + "*4" + strings.TrimPrefix(likeMessage, "*3") + "$1\r\nc\r\n:0\r\n", refused},
		"of numbers": {lines("MULTI;SUBSCRIBE c;EVAL x 0;SETNX k v;EXEC"),
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n" + likeConfirm + "*3\r\n$7\r\nmessage\r\n:1\r\n:2\r\n:0\r\n", refused},
		"a key's end, told to whom it concerns": {lines("SUBSCRIBE c;UNSUBSCRIBE c;SETNX k v"),
			likeConfirm + "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n*1\r\n$1\r\nk\r\n" + ended + ":1\r\n", granted},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker()
			play(t, tr, ">"+s.requests, "<"+s.replies, "="+s.want)
			if tr.told || !tr.queue.empty() || tr.waiting != 0 || tr.subs.waiting != 0 {
				t.Errorf("not followed to its end: %+v", tr.queue)
			}
		})
	}
}

// Where a list may be either, nothing is guessed.
func TestDisputedPublications(t *testing.T) {
	for name, s := range map[string][2]string{
		"in EXEC": {lines("MULTI;SUBSCRIBE c;LRANGE l 0 -1;SETNX k v;EXEC"),
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n" + likeConfirm + likeMessage},
		"behind a transaction": {lines("MULTI;SUBSCRIBE c;PUBLISH c x;UNSUBSCRIBE c;EXEC;LRANGE l 0 -1;SETNX k v"),
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n" + likeConfirm + ":1\r\n" + ended + likeMessage},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker()
			tr.Client([]byte(s[0]), nil)
			marks, clear := tr.Upstream([]byte(s[1]), nil)
			if len(marks) == 0 || !strings.Contains(marks[len(marks)-1].Reason, "may be a publication") || clear != int64(len(s[1])) {
				t.Errorf("%s, clear %d of %d", kinds(marks), clear, len(s[1]))
			}
		})
	}
}

func TestNoConfirmationWithoutACount(t *testing.T) {
	tr := newTracker()
	tr.Client([]byte(lines("SUBSCRIBE c;P1")), nil)
	marks, _ := tr.Upstream([]byte("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n$1\r\n1\r\n"), nil)
	if len(marks) == 0 || !strings.Contains(marks[len(marks)-1].Reason, "confirms no subscription") {
		t.Errorf("taken for a confirmation: %s", kinds(marks))
	}
}

package pgwire

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// SCRAM-SHA-256-PLUS is taken off a list that has other mechanisms, and the
// message waits until it is whole for that.
func TestStripPlus(t *testing.T) {
	for _, tt := range []struct {
		offer, want []string
		strip       bool
	}{
		{[]string{"SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"}, []string{"SCRAM-SHA-256"}, true},
		{[]string{"SCRAM-SHA-256", "SCRAM-SHA-256-PLUS", "OAUTHBEARER"}, []string{"SCRAM-SHA-256", "OAUTHBEARER"}, true},
		{[]string{"SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"}, nil, false},
		{[]string{"SCRAM-SHA-256"}, nil, true},
		{[]string{"SCRAM-SHA-256-PLUS"}, nil, true},
		{[]string{"SCRAM-SHA-256-PLUS2", "x"}, nil, true},
		{nil, nil, true},
	} {
		offer := encode(t, []any{be{&pgproto3.AuthenticationSASL{AuthMechanisms: tt.offer}}})[0].bytes
		for n := range 40 {
			tr := newTracker()
			tr.opt.StripPlus = tt.strip
			pl := newPlayer(t, tr).play(encode(t, started[:1]), 0)
			pl.play([]turn{{false, offer[:len(offer)-1]}}, n)
			if tt.want != nil && pl.clear[1] != 0 {
				t.Fatalf("%q: %d bytes are clear before it is whole", tt.offer, pl.clear[1])
			}
			pl.play([]turn{{false, offer[len(offer)-1:]}}, n)
			if got := fmt.Sprint(mechanisms(t, pl.marks)); got != fmt.Sprint(tt.want) || pl.clear[1] != pl.pos[1] {
				t.Fatalf("%q becomes %s, want %q; clear %d of %d", tt.offer, got, tt.want, pl.clear[1], pl.pos[1])
			}
			pl.play(encode(t, []any{be{&pgproto3.AuthenticationSASLContinue{Data: []byte("SCRAM-SHA-256-PLUS\x00")}, &pgproto3.AuthenticationOk{}, z('I')}, fe{q(sqlUpdate)}}), n)
			if last := pl.marks[len(pl.marks)-1]; last.Kind != wire.Request {
				t.Fatalf("what followed: %s", pl.text())
			}
		}
	}
}

// mechanisms reads the list of the only Answer.
func mechanisms(t *testing.T, marks []wire.Mark) (list []string) {
	t.Helper()
	for _, m := range marks {
		var sasl pgproto3.AuthenticationSASL
		if m.Kind != wire.Answer || list != nil {
			t.Fatalf("mark %+v", m)
		}
		if err := sasl.Decode(m.Bytes[5:]); err != nil || int(m.Bytes[4])+1 != len(m.Bytes) || m.Bytes[0] != 'R' {
			t.Fatalf("answer %q: %v", m.Bytes, err)
		}
		list = sasl.AuthMechanisms
	}
	return list
}

// Once the session is ready, a message that looks like an offer is none.
func TestStripPlusOnlyAtStartup(t *testing.T) {
	tr := newTracker()
	tr.opt.StripPlus = true
	pl := newPlayer(t, tr).play(encode(t, started), 0).play(encode(t, []any{fe{q("select 1")},
		be{&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"}}}}), 0)
	for _, m := range pl.marks {
		if m.Kind == wire.Answer {
			t.Errorf("answered %q", m.Bytes)
		}
	}
}

func TestKeyData(t *testing.T) {
	for _, size := range []int{0, 4, 32, 256, 257} {
		key := bytes.Repeat([]byte{7}, size)
		for n := range 20 {
			var got []string
			tr := newTracker()
			tr.opt.KeyData = func(pid int32, key []byte) { got = append(got, fmt.Sprint(pid, len(key), bytes.Count(key, []byte{7}))) }
			k := append([]byte{'K', 0, 0, byte((8 + size) >> 8), byte(8 + size), 0, 0, 0, 99}, key...)
			pl := newPlayer(t, tr).play(encode(t, started[:1]), 0)
			pl.play([]turn{{false, slices.Concat([]byte("R\x00\x00\x00\x08\x00\x00\x00\x00"), k, []byte("Z\x00\x00\x00\x05I"))}}, n)
			want := []string{fmt.Sprint(99, size, size)}
			if size > maxKey {
				want = nil
			}
			if !slices.Equal(got, want) || tr.BackendPID() != 99 || len(pl.marks) > 0 || pl.clear[1] != pl.pos[1] {
				t.Fatalf("a key of %d: told %q, pid %d", size, got, tr.BackendPID())
			}
			if b := tr.upstream.buf; bytes.Contains(b[:cap(b)], key[:size/2]) && size > 0 {
				t.Fatal("the key is kept")
			}
		}
	}
}

func TestRefused(t *testing.T) {
	refusal := &pgproto3.ErrorResponse{Severity: "FATAL", Code: "28000", Message: "SCRAM channel binding check failed", File: "x"}
	for _, before := range []be{nil, {&pgproto3.AuthenticationOk{}}} {
		for n := range 20 {
			var got []string
			tr := newTracker()
			tr.opt.Refused = func(sqlstate, message string) { got = append(got, sqlstate+" "+message) }
			pl := newPlayer(t, tr).play(encode(t, started[:1]), n).play(encode(t, []any{append(before[:len(before):len(before)], refusal)}), n)
			if fmt.Sprint(got) != "[28000 SCRAM channel binding check failed]" || len(pl.marks) > 0 || pl.clear[1] != pl.pos[1] {
				t.Fatalf("told %q, %s", got, pl.text())
			}
		}
	}
	told := 0
	tr := newTracker()
	tr.opt.Refused = func(string, string) { told++ }
	newPlayer(t, tr).play(encode(t, append(started[:2:2], be{refusal}, fe{q("x")}, be{refusal, z('I')})), 0)
	if told > 0 {
		t.Error("told of an error of a session that was ready")
	}
}

package pgwire

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

func packet(code uint32, rest string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(rest)))
	return append(binary.BigEndian.AppendUint32(b, code), rest...)
}

func TestStartup(t *testing.T) {
	startup := packet(196608, "user\x00u\x00application_name\x00svc\x00\x00")
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  string
		app   string
		phase phase
	}{
		{"3.0", startup, "", "svc", running},
		{"3.2 with options", packet(196610, "application_name\x00a b\x00_pq_.x\x001\x00\x00"), "", "a b", running},
		{"no name", packet(196608, "user\x00u\x00\x00"), "", "", running},
		{"a malformed body", packet(196608, "application_name\x00x"), "", "", running},
		{"HTTP", []byte("GET / HTTP/1.1\r\n\r\n"), `blind startup packet: begins with "GET ", expected a length of 8 to 10004`, "", opaque},
		{"TLS", []byte("\x16\x03\x01\x02\x00\x01\x00"), `blind startup packet: begins with 16 03 01 02 (a TLS handshake), expected a length of 8 to 10004`, "", opaque},
		{"too short", []byte("\x00\x00\x00\x07\x00\x03\x00"), `blind startup packet: begins with "\x00\x00\x00\a", expected a length of 8 to 10004`, "", opaque},
		{"too long", []byte("\x00\x00\x27\x15\x00\x03\x00\x00"), `blind startup packet: begins with "\x00\x00'\x15", expected a length of 8 to 10004`, "", opaque},
		{"2.0", packet(131072, "x"), "blind startup packet: protocol 2.0, expected 3.x", "", opaque},
		{"4.0", packet(262144, "x"), "blind startup packet: protocol 4.0, expected 3.x", "", opaque},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for n := range len(tt.bytes) {
				pl := newPlayer(t, newTracker()).play([]turn{{true, tt.bytes}}, n)
				if got := pl.text(); got != tt.want || pl.tracker.ApplicationName() != tt.app || pl.tracker.phase != tt.phase {
					t.Fatalf("in pieces of %d: %q, application %q, phase %d", n, got, pl.tracker.ApplicationName(), pl.tracker.phase)
				}
				if pl.clear[0] != int64(len(tt.bytes)) {
					t.Fatalf("in pieces of %d: clear to %d of %d", n, pl.clear[0], len(tt.bytes))
				}
			}
		})
	}
}

func TestBackend(t *testing.T) {
	for _, key := range []string{"1234", strings.Repeat("k", 32), strings.Repeat("k", 256)} {
		turns := encode(t, []any{started[0], be{
			&pgproto3.NegotiateProtocolVersion{}, &pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}}}})
		turns = append(turns, encode(t, []any{
			fe{&pgproto3.SASLInitialResponse{AuthMechanism: "SCRAM-SHA-256", Data: []byte("x")}},
			be{&pgproto3.AuthenticationOk{}, notice, &pgproto3.BackendKeyData{ProcessID: 99, SecretKey: []byte(key)}, z('I')},
		})...)
		pl := newPlayer(t, newTracker()).play(turns, 3)
		if pl.tracker.BackendPID() != 99 || pl.tracker.asked.len() != 0 || len(pl.marks) != 0 {
			t.Errorf("pid %d, outstanding %d, %s", pl.tracker.BackendPID(), pl.tracker.asked.len(), pl.text())
		}
	}
}

// A password is never copied.
func TestPasswordIsNotKept(t *testing.T) {
	pl := newPlayer(t, newTracker()).play(encode(t, started[:1]), 0)
	msg, _ := (&pgproto3.PasswordMessage{Password: "hunter2hunter2"}).Encode(nil)
	pl.play([]turn{{true, msg}}, 1)
	if b := pl.tracker.client.buf; bytes.Contains(b[:cap(b)], []byte("hunter2")) {
		t.Error("the password is in the buffer")
	}
}

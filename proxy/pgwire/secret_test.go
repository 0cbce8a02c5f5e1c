package pgwire

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

const hunter = "hunter2"

// What a client proves itself with is read by nobody, whatever it is an answer
// to, and nothing of it stays behind.
func TestC028PasswordsAreNotKept(t *testing.T) {
	sasl := func(data string) pgproto3.FrontendMessage { return &pgproto3.SASLResponse{Data: []byte(data)} }
	for _, tt := range []struct {
		name  string
		turns []any
	}{
		{"cleartext", []any{be{&pgproto3.AuthenticationCleartextPassword{}}, fe{&pgproto3.PasswordMessage{Password: hunter}}}},
		{"md5", []any{be{&pgproto3.AuthenticationMD5Password{Salt: [4]byte{1, 2, 3, 4}}}, fe{&pgproto3.PasswordMessage{Password: "md5" + hunter}}}},
		{"SCRAM", []any{be{&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}}},
			fe{&pgproto3.SASLInitialResponse{AuthMechanism: "SCRAM-SHA-256", Data: []byte(hunter)}},
			be{&pgproto3.AuthenticationSASLContinue{Data: []byte("r=x")}}, fe{sasl(hunter)}, be{&pgproto3.AuthenticationSASLFinal{Data: []byte("v=x")}}}},
		{"OAUTHBEARER", []any{be{&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"OAUTHBEARER"}}},
			fe{&pgproto3.SASLInitialResponse{AuthMechanism: "OAUTHBEARER", Data: []byte("n,,\x01auth=Bearer " + hunter + "\x01\x01")}},
			be{&pgproto3.AuthenticationSASLContinue{Data: []byte(`{"status":"invalid_token"}`)}}, fe{sasl("\x01")}}},
		{"GSS", []any{[]byte{}, be{&pgproto3.AuthenticationGSS{}}, fe{&pgproto3.GSSResponse{Data: []byte(hunter)}},
			be{&pgproto3.AuthenticationGSSContinue{Data: []byte("x")}}, fe{&pgproto3.GSSResponse{Data: []byte(hunter)}}}},
		{"SSPI, unknown kinds", []any{[]byte{}, be{&pgproto3.AuthenticationOk{}}, []byte("p\x00\x00\x00\x0chunter2\x00")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := append([]any{fe{&pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: map[string]string{"user": "u", "_pq_.token": hunter}}}}, tt.turns...)
			turns := encode(t, append(script, be{&pgproto3.AuthenticationOk{}, z('I')}, fe{q("select 1")}, be{rowd("x", 23), data("1"), c("SELECT 1"), z('I')}))
			for n := range 30 {
				pl := newPlayer(t, newTracker()).play(turns, n)
				if len(pl.marks) > 0 || pl.tracker.phase != running || pl.tracker.asked.len() > 0 || pl.clear != pl.pos {
					t.Fatalf("in pieces of %d: %s", n, pl.text())
				}
				if keeps(pl.tracker) {
					t.Fatalf("in pieces of %d: kept", n)
				}
			}
		})
	}
}

// keeps reports whether the secret is anywhere in what the tracker holds.
func keeps(tr *Tracker) bool {
	for _, b := range [][]byte{tr.client.buf, tr.upstream.buf} {
		if bytes.Contains(b[:cap(b)], []byte(hunter)) {
			return true
		}
	}
	c := tr.opt.Statements
	if strings.Contains(fmt.Sprint(c.texts.young, c.texts.old), hunter) {
		return true
	}
	live := []*statement{tr.live, tr.statements.unnamed}
	for _, list := range []map[string]*statement{tr.statements.named.young, tr.statements.named.old} {
		live = slices.AppendSeq(live, maps.Values(list))
	}
	for _, ch := range tr.changes {
		live = append(live, ch.now)
	}
	for _, st := range live {
		for ; st != nil && st.tmpl != nil; st = inside(st) {
			if strings.Contains(fmt.Sprintf("%+v", *st.tmpl), hunter) {
				return true
			}
		}
	}
	return false
}

// inside returns the statement that a PREPARE names.
func inside(st *statement) *statement { return &statement{tmpl: st.tmpl.inner} }

// A literal is hashed when its statement is read, and is in no statement that
// is kept, under a name or not.
func TestLiteralsAreNotKept(t *testing.T) {
	for _, sql := range []string{
		"UPDATE users SET password = 'hunter2' WHERE id = 1",
		"UPDATE users SET note = 1, pwd = 'hunter2' WHERE id = 1",
		"SELECT id FROM users WHERE user_pin = 'hunter2'",
		"INSERT INTO users (otp) VALUES ('hunter2')",
		"INSERT INTO users (pw) VALUES ($$hunter2$$)",
	} {
		for _, script := range [][]any{
			{fe{p("s", sql), p("", sql), syn}, be{parsed, parsed, z('I')}},
			{fe{p("s", sql)}},
			{fe{q("PREPARE s AS " + sql)}, be{c("PREPARE"), z('I')}},
			{fe{q("PREPARE s AS " + sql)}},
		} {
			pl := newPlayer(t, newTracker()).play(encode(t, slices.Concat(started, script)), 0)
			if keeps(pl.tracker) {
				t.Errorf("%s: kept", sql)
			}
			pl.play(encode(t, []any{fe{p("", sql), syn}}), 0)
			if keeps(pl.tracker) {
				t.Errorf("%s: kept when it came again", sql)
			}
		}
	}
}

// A statement that sets a password leaves nothing of its text behind: not in
// the cache, in an op that a rule asks for, or in a reason.
func TestTextsWithPasswordsAreNotKept(t *testing.T) {
	for _, sql := range []string{
		"ALTER ROLE app PASSWORD 'hunter2'",
		"alter user app with encrypted password 'hunter2' valid until 'infinity'",
		"CREATE ROLE app LOGIN PASSWORD 'hunter2'",
		"create user app password $$hunter2$$",
		"CREATE USER MAPPING FOR app SERVER s OPTIONS (user 'app', password 'hunter2')",
		"CREATE SUBSCRIPTION s CONNECTION 'host=h Password=hunter2' PUBLICATION p",
		"select 1; ALTER ROLE app PassWord 'hunter2'; select 2",
		"DO $$begin execute 'alter role app password ''hunter2'''; end$$",
	} {
		for _, script := range [][]any{
			{fe{q(sql)}, be{bad("42501"), z('I')}},
			{fe{p("s", sql), b("", "s"), e(""), syn}, be{parsed, boundOK, bad("42501"), z('I')}},
		} {
			for _, n := range []int{0, 1, 7, 1000} {
				pl := newPlayer(t, newTracker("ALTER", "CREATE", "DO")).play(encode(t, slices.Concat(started, script, script, script)), n)
				for _, m := range pl.marks {
					if s := fmt.Sprintf("%+v %+v %s", *m.Op, m.Op.SQL, m.Reason); strings.Contains(s, hunter) {
						t.Errorf("%s: %s", sql, s)
					}
				}
				c := pl.tracker.opt.Statements
				if s := fmt.Sprintf("%#v %#v", c.texts.young, c.texts.old); strings.Contains(s, hunter) {
					t.Errorf("%s: cached %s", sql, s)
				}
				pl.play([]turn{{true, []byte("Q\xff\xff\xff\xff")}}, n)
				if strings.Contains(pl.text(), hunter) {
					t.Errorf("%s: %s", sql, pl.text())
				}
			}
		}
	}
}

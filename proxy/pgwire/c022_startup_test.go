package pgwire

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// onEach is both, before the startup message.
func onEach(t *testing.T, test func(w *tap)) {
	for _, version := range []int{15, 18} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			w := dial(t, version)
			test(w)
			w.again()
		})
	}
}

// ready runs a write, which is an op once the session is ready.
func (w *tap) ready() {
	w.Helper()
	w.quiet("create temp table counter (id int, value int)")
	w.send(q(sqlUpdate))
	w.want("C:UPDATE_0 Z:I")
	w.marks(`ask UPDATE counter write tx1i [Q]
		got UPDATE done rows=0 [C]
		end UPDATE done [Z]`)
}

func TestC022ProtocolVersions(t *testing.T) {
	for _, tt := range []struct {
		name       string
		version    uint32
		extra      []string
		on15, on18 string // what comes before the first R
	}{
		{"3.0", 196608, nil, "R", "R"},
		{"3.2", 196610, nil, "v R", "R"},
		{"3.9999", 206607, nil, "v R", "v R"},
		{"an option of the protocol", 196608, []string{"_pq_.x", "1"}, "v R", "v R"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEach(t, func(w *tap) {
				w.startup(tt.version, append([]string{"user", "postgres", "application_name", "svc"}, tt.extra...)...)
				w.want(w.by(tt.on15, tt.on18))
				w.until('Z')
				if w.pl.tracker.ApplicationName() != "svc" || w.pl.tracker.BackendPID() == 0 {
					t.Errorf("application %q, pid %d", w.pl.tracker.ApplicationName(), w.pl.tracker.BackendPID())
				}
				w.ready()
			})
		})
	}
}

func TestC023BackendKeyData(t *testing.T) {
	for _, tt := range []struct {
		version    uint32
		on15, on18 int
	}{{196608, 4, 4}, {196610, 4, 32}} {
		onEach(t, func(w *tap) {
			size, told := 0, 0
			w.opt = func(o *Options) { o.KeyData = func(_ int32, key []byte) { size, told = len(key), told+1 } }
			w.opt(&w.pl.tracker.opt)
			w.startup(tt.version, "user", "postgres")
			w.until('Z')
			want := tt.on15
			if w.version == 18 {
				want = tt.on18
			}
			if size != want || told != 1 {
				t.Errorf("a key of %d bytes, told %d times, want %d, once", size, told, want)
			}
			w.ready()
		})
	}
	// No server of ours gives out a key of 256 bytes, or none.
	for _, key := range []string{"", "K\x00\x00\x01\x08\x00\x00\x00\x09" + strings.Repeat("k", 256)} {
		told := 0
		tr := newTracker()
		tr.opt.KeyData = func(int32, []byte) { told++ }
		pl := newPlayer(t, tr).play(encode(t, started[:1]), 0)
		pl.play([]turn{{false, []byte("R\x00\x00\x00\x08\x00\x00\x00\x00" + key + "Z\x00\x00\x00\x05I")}}, 5)
		pl.play(encode(t, []any{fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('I')}}), 5)
		if told != min(len(key), 1) || len(pl.marks) != 3 {
			t.Errorf("told %d times, %s", told, pl.text())
		}
	}
}

// Each method of pg_hba.conf lets a client in through a tracker, and keeps one
// with a wrong password out.
func TestC028AuthenticationMethods(t *testing.T) {
	for _, version := range []int{15, 18} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			server := sharedServer(t, version)
			ctx := context.Background()
			direct, err := pgx.Connect(ctx, server.URL())
			if err != nil {
				t.Fatal(err)
			}
			defer direct.Close(ctx)
			var hba string
			if err := direct.QueryRow(ctx, "show hba_file").Scan(&hba); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(hba)
			if err != nil {
				t.Fatal(err)
			}
			reload := func(rules string) {
				t.Helper()
				if err := os.WriteFile(hba, []byte(rules+string(before)), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := direct.Exec(ctx, "select pg_reload_conf()"); err != nil {
					t.Fatal(err)
				}
			}
			defer reload("")
			for _, method := range []string{"password", "md5", "scram-sha-256"} {
				user := strings.ReplaceAll(method, "-", "_")
				encryption := strings.ReplaceAll(method, "password", "scram-sha-256")
				if _, err := direct.Exec(ctx, fmt.Sprintf("set password_encryption = '%s'; create role %s login password '%s'", encryption, user, hunter)); err != nil {
					t.Fatal(err)
				}
				reload(fmt.Sprintf("host all %s all %s\n", user, method))
				for _, password := range []string{hunter, "wrong"} {
					r := newRelay(t, server.Addr(), 7)
					u, err := url.Parse(r.url(t, server.URL()))
					if err != nil {
						t.Fatal(err)
					}
					u.User = url.UserPassword(user, password)
					conn, err := pgx.Connect(ctx, u.String())
					if err == nil {
						conn.Close(ctx)
					}
					if (err == nil) != (password == hunter) || err != nil && !strings.Contains(err.Error(), "28P01") {
						t.Errorf("%s with password %s: %v", method, password, err)
					}
					marks := r.stop()
					if len(marks) > 0 || r.ends[0].phase != running || keeps(r.ends[0]) || (r.ends[0].BackendPID() != 0) != (err == nil) {
						t.Errorf("%s with password %s: %v", method, password, outcomes(marks))
					}
				}
			}
		})
	}
}

func TestC029RefusedBeforeReady(t *testing.T) {
	for _, tt := range []struct {
		name   string
		params []string
		want   string
		state  string
	}{
		{"a setting that is unknown", []string{"user", "postgres", "no_such", "1"}, "R E:42704 EOF", "42704"},
		{"a role that is unknown", []string{"user", "nobody_there"}, "E:28000 EOF", "28000"},
		{"a database that is unknown", []string{"user", "postgres", "database", "none"}, "R E:3D000 EOF", "3D000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEach(t, func(w *tap) {
				var state string
				w.opt = func(o *Options) { o.Refused = func(s, message string) { state = s } }
				w.opt(&w.pl.tracker.opt)
				w.startup(196608, tt.params...)
				if got := w.until('x'); got != tt.want && !(tt.state == "28000" && got == "R "+tt.want) {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				if state != tt.state || w.pl.tracker.BackendPID() != 0 || w.pl.tracker.asked.len() != 1 {
					t.Errorf("told of %q, pid %d, %d requests", state, w.pl.tracker.BackendPID(), w.pl.tracker.asked.len())
				}
				w.marks("")
			})
		})
	}
}

package legs_test

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy/legs"
)

// A client tries to log in with the settings of a connection string.
type client struct {
	name  string
	login func(t *testing.T, settings string) error
}

// clients are psql with the libpq of Debian and of Postgres 18, and pgx.
func clients(t *testing.T) []client {
	newest := testbed.Libpq18(t)
	return []client{
		{"psql", func(t *testing.T, s string) error { return psql(t, s, "") }},
		{"psql with libpq 18", func(t *testing.T, s string) error { return psql(t, s, newest) }},
		{"pgx", withPgx},
	}
}

type failure string

func (f failure) Error() string { return string(f) }

func psql(t *testing.T, settings, library string) error {
	t.Helper()
	cmd := exec.Command("psql", settings, "-X", "-A", "-t", "-c", "SELECT 40+2")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library, "HOME=/nonexistent", "PGCONNECT_TIMEOUT=30")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "42" {
		return failure(strings.TrimSpace(string(out)))
	}
	return nil
}

func withPgx(t *testing.T, settings string) error {
	t.Helper()
	c, err := pgx.Connect(t.Context(), settings)
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	var n int
	return c.QueryRow(t.Context(), "SELECT 40+2").Scan(&n)
}

func settings(address, user, more string) string {
	host, port, _ := net.SplitHostPort(address)
	return "host=" + host + " port=" + port + " user=" + user + " password=" + testbed.Password + " dbname=postgres " + more
}

// The eight combinations of legs, and what SCRAM makes of them. Two of them,
// the legs never make by themselves: a list of mechanisms that is changed where
// it need not be, or not where it has to be.
func TestC027ChannelBinding(t *testing.T) {
	t.Run("15", func(t *testing.T) { binding(t, postgres15(t)) })
	t.Run("18", func(t *testing.T) { binding(t, postgres18(t)) })
}

const (
	fine     = ""
	checked  = "SCRAM channel binding check failed"
	haggled  = "SCRAM channel binding negotiation error"
	locally  = "hannel binding" // libpq and pgx have words of their own
	nonSSL   = "server offered SCRAM-SHA-256-PLUS authentication over a non-SSL connection"
	tlsLeg   = "sslmode=require "
	plainLeg = "sslmode=disable "
)

func binding(t *testing.T, s *secureServer) {
	h := newHouse(t)
	h.strip = map[string]bool{"stripped": true, "relayed": false}
	own, up := shown(t, s.authority, "proxy"), trusting(t, s.authority)
	serve := func(name string, conf, up *tls.Config) string {
		return h.named(name, lock.Postgres, s.Addr(), &legs.Postgres{Policy: h.policy(s.Addr(), conf, up), Cancels: &h.cancels})
	}
	bothOther, bothStripped, bothSame := serve("", own, up), serve("stripped", own, up), serve("", s.own, up)
	upRelayed, upStripped, clientOnly, none := serve("relayed", nil, up), serve("", nil, up), serve("", own, nil), serve("", nil, nil)
	for _, tt := range []struct {
		row, address, settings string
		libpq, pgx             string
	}{
		{"1 TLS, TLS relayed", bothOther, tlsLeg, checked, checked},
		{"1 and required", bothOther, tlsLeg + "channel_binding=require", checked, checked},
		{"2 TLS, TLS stripped", bothStripped, tlsLeg, haggled, haggled},
		{"2 and required", bothStripped, tlsLeg + "channel_binding=require", locally, locally},
		{"3 TLS, TLS, disabled", bothOther, tlsLeg + "channel_binding=disable", fine, fine},
		{"3 stripped", bothStripped, tlsLeg + "channel_binding=disable", fine, fine},
		{"4 plaintext, TLS relayed", upRelayed, plainLeg, nonSSL, fine},
		{"4 and disabled", upRelayed, plainLeg + "channel_binding=disable", nonSSL, fine},
		{"5 plaintext, TLS stripped", upStripped, plainLeg, fine, fine},
		{"5 and required", upStripped, plainLeg + "channel_binding=require", locally, locally},
		{"6 TLS, plaintext", clientOnly, tlsLeg, fine, fine},
		{"6 and required", clientOnly, tlsLeg + "channel_binding=require", locally, locally},
		{"7 TLS, TLS, the server's certificate", bothSame, tlsLeg, fine, fine},
		{"7 and required", bothSame, tlsLeg + "channel_binding=require", fine, fine},
		{"8 plaintext, plaintext", none, plainLeg, fine, fine},
		{"8 prefer", none, "sslmode=prefer", fine, fine},
	} {
		for _, c := range clients(t) {
			t.Run(tt.row+"/"+c.name, func(t *testing.T) {
				want := tt.libpq
				if c.name == "pgx" {
					want = tt.pgx
				}
				before := len(h.log.String())
				err := c.login(t, settings(tt.address, "scram", tt.settings))
				if (err == nil) != (want == fine) || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q", err, want)
				}
				if want == checked || want == haggled {
					h.says(want)
					explained(t, h.log.String()[before:], want)
				}
			})
		}
	}
	if n := strings.Count(h.log.String(), "the client leg shows another certificate than the upstream"); n != 2 {
		t.Errorf("the certificates that differ are told of %d times, want once for each of two listeners", n)
	}
}

// explained wants one line about a failure, with the remedy.
func explained(t *testing.T, log, text string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) && strings.Contains(line, "remedy=") && strings.Contains(line, "channel_binding=disable") {
			return
		}
	}
	t.Errorf("no line explains %q:\n%s", text, log)
}

// TLS on either leg with every method to log in, for clients old and new.
func TestTLSLogins(t *testing.T) {
	s := postgres18(t)
	h := newHouse(t)
	up := trusting(t, s.authority)
	withCert := up.Clone()
	pair, err := tls.LoadX509KeyPair(s.authority.Issue(t, "client", "cert"))
	if err != nil {
		t.Fatal(err)
	}
	withCert.Certificates = []tls.Certificate{pair}
	clientLeg, upstreamLeg := h.postgres(s.Addr(), s.own, nil), h.postgres(s.Addr(), nil, up)
	bothLegs, certLeg := h.postgres(s.Addr(), s.own, up), h.postgres(s.Addr(), nil, withCert)
	full := "sslmode=verify-full sslrootcert=" + s.authority.File
	for _, tt := range []struct{ name, address, user, settings, want string }{
		{"md5 over the client leg", clientLeg, "md5", full, ""},
		{"cleartext over both", bothLegs, "clear", full, ""},
		{"cleartext over the upstream leg", upstreamLeg, "clear", plainLeg, ""},
		{"a role for TLS alone", upstreamLeg, "tls", plainLeg, ""},
		{"the same without TLS", clientLeg, "tls", full, "pg_hba.conf rejects connection"},
		{"a client certificate of the proxy's", certLeg, "cert", plainLeg, ""},
		{"none", upstreamLeg, "cert", plainLeg, "valid client certificate"},
		{"a wrong password", bothLegs, "scram", full + " password=x", "password authentication failed"},
		{"prefer with a TLS listener", bothLegs, "scram", "sslmode=prefer", ""},
		{"disable with a TLS listener", bothLegs, "scram", "sslmode=disable", "takes TLS connections only"},
		{"require with a plaintext listener", upstreamLeg, "scram", "sslmode=require", ""},
	} {
		for _, c := range clients(t) {
			t.Run(tt.name+"/"+c.name, func(t *testing.T) {
				if tt.name == "require with a plaintext listener" {
					if c.login(t, settings(tt.address, tt.user, tt.settings)) == nil {
						t.Error("a plaintext listener spoke TLS")
					}
					return
				}
				err := c.login(t, settings(tt.address, tt.user, tt.settings))
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v; want %q", err, tt.want)
				}
			})
		}
	}
}

// Direct TLS is between a client and lockfaultd; whether the upstream can do
// it does not matter.
func TestC021DirectTLSToAnOldServer(t *testing.T) {
	old, newer := postgres15(t), postgres18(t)
	h := newHouse(t)
	direct := &legs.Postgres{Policy: h.policy(newer.Addr(), newer.own, trusting(t, newer.authority)), Cancels: &h.cancels, Direct: true}
	impossible := &legs.Postgres{Policy: h.policy(old.Addr(), old.own, trusting(t, old.authority)), Cancels: &h.cancels, Direct: true}
	toOld := h.postgres(old.Addr(), old.own, trusting(t, old.authority))
	toNew := h.serve(lock.Postgres, newer.Addr(), direct)
	for _, c := range clients(t)[1:] {
		for _, address := range []string{toOld, toNew} {
			if err := c.login(t, settings(address, "scram", "sslmode=require sslnegotiation=direct channel_binding=require")); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	h.silent()
	err := withPgx(t, settings(h.serve(lock.Postgres, old.Addr(), impossible), "scram", tlsLeg))
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("direct TLS to Postgres 15: %v", err)
	}
}

// A client of OpenSSL that refuses the proxy's certificate is told apart from
// one that is broken.
func TestCertificateThatIsNotTrusted(t *testing.T) {
	a := authority(t)
	h := newHouse(t)
	address := h.postgres("127.0.0.1:1", shown(t, a, "proxy"), nil)
	stranger := authority(t)
	if err := psql(t, settings(address, "postgres", "sslmode=verify-ca sslrootcert="+stranger.File), ""); err == nil {
		t.Error("psql trusts a certificate of somebody else")
	}
	h.says("(most often a client that does not trust the certificate shown to it)")
}

package pgwire

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// greet feeds bytes piece by piece and writes down what comes of them. A TLS
// handshake is taken to succeed.
func greet(g *Greeter, stream []byte, piece int) string {
	var out []string
	var b []byte
	for {
		step := g.Next(b)
		switch step.Kind {
		case Incomplete:
			if len(stream) == 0 {
				return strings.Join(append(out, "more"), ", ")
			}
			n := min(piece, len(stream))
			b, stream = append(b, stream[:n]...), stream[n:]
			continue
		case Declined:
			out = append(out, string(step.Reply))
		case Negotiated:
			out = append(out, string(step.Reply)+" TLS")
			g.Secured()
		case Direct:
			return strings.Join(append(out, "direct"), ", ")
		case Cancel:
			out = append(out, fmt.Sprintf("cancel %q", CancelKey(b[:step.Size])))
		case Startup:
			out = append(out, fmt.Sprintf("startup of %d", step.Size))
		case Refused:
			return strings.Join(append(out, "refused "+step.Reason+" "+errorOf(step.Reply)), ", ")
		}
		b = b[step.Size:]
		if len(b)+len(stream) == 0 {
			return strings.Join(out, ", ")
		}
	}
}

// errorOf shows a reply as N, and the SQLSTATE of the error.
func errorOf(reply []byte) string {
	out, b := "", reply
	if len(b) > 0 && b[0] == 'N' {
		out, b = "N ", b[1:]
	}
	var e pgproto3.ErrorResponse
	if len(b) < 5 || int(binary.BigEndian.Uint32(b[1:])) != len(b)-1 || e.Decode(b[5:]) != nil || e.Severity != "FATAL" {
		return out + "silently"
	}
	return out + e.Code
}

func TestGreetings(t *testing.T) {
	ssl, gss := string(packet(sslRequest, "")), string(packet(gssRequest, ""))
	startup := string(packet(196608, "user\x00u\x00\x00"))
	cancel := string(packet(cancelRequest, "\x00\x00\x00\x01key!"))
	const early = "received unencrypted data after "
	for _, tt := range []struct {
		name, bytes string
		piece       int // 0: every one
		plain, tls  string
	}{
		{"C016 SSLRequest", ssl, 0, "N", "S TLS"},
		{"C016 and a startup", ssl + startup, 8, "N, startup of 16", "S TLS, startup of 16"},
		{"C017 GSSENCRequest", gss, 0, "N", "N"},
		{"C017 then SSLRequest", gss + ssl + startup, 8, "N, N, startup of 16", "N, S TLS, startup of 16"},
		{"C017 then a startup", gss + startup, 8, "N, startup of 16", "N, refused a startup packet without TLS 28000"},
		{"C017 after SSLRequest", ssl + gss + startup, 8, "N, N, startup of 16", "S TLS, refused unsupported frontend protocol 1234.5680: encryption was negotiated before 0A000"},
		{"C017 twice", gss + gss, 8, "N, refused unsupported frontend protocol 1234.5680: encryption was negotiated before 0A000", "N, refused unsupported frontend protocol 1234.5680: encryption was negotiated before 0A000"},
		{"C018 half an SSLRequest", ssl[:4], 4, "more", "more"},
		{"C019 a startup behind SSLRequest", ssl + startup, 99, "refused " + early + "SSL request N 08P01", "refused " + early + "SSL request 08P01"},
		{"C019 one byte behind SSLRequest", ssl + "x", 99, "refused " + early + "SSL request N 08P01", "refused " + early + "SSL request 08P01"},
		{"C019 a startup behind GSSENCRequest", gss + startup, 99, "refused " + early + "GSSAPI encryption request N 08P01", "refused " + early + "GSSAPI encryption request N 08P01"},
		{"SSLRequest twice", ssl + ssl, 8, "N, refused unsupported frontend protocol 1234.5679: encryption was negotiated before 0A000", "S TLS, refused unsupported frontend protocol 1234.5679: encryption was negotiated before 0A000"},
		{"C020 TLS at once", "\x16\x03\x01\x02\x00\x01\x00", 0, "refused it begins with 16 03 01 02 (a TLS handshake), expected a startup packet silently", "direct"},
		{"C022 3.2", string(packet(196610, "\x00")), 0, "startup of 9", "refused a startup packet without TLS 28000"},
		{"C022 3.9999", string(packet(206607, "_pq_.x\x001\x00\x00")), 0, "startup of 18", "refused a startup packet without TLS 28000"},
		{"C024 cancel", cancel, 0, `cancel "\x00\x00\x00\x01key!"`, `cancel "\x00\x00\x00\x01key!"`},
		{"C024 cancel with a long key", string(packet(cancelRequest, strings.Repeat("k", 260))), 0,
			fmt.Sprintf("cancel %q", strings.Repeat("k", 260)), fmt.Sprintf("cancel %q", strings.Repeat("k", 260))},
		{"C024 cancel after SSLRequest", ssl + cancel, 8, `N, cancel "\x00\x00\x00\x01key!"`, `S TLS, cancel "\x00\x00\x00\x01key!"`},
		{"C024 cancel without a key", string(packet(cancelRequest, "1234")), 0, `cancel ""`, `cancel ""`},
		{"C030 HTTP", "GET / HTTP/1.1\r\n\r\n", 0, `refused it begins with "GET ", expected a startup packet silently`, `refused it begins with "GET ", expected a startup packet silently`},
		{"C030 too short", "\x00\x00\x00\x07\x00\x03\x00", 0, `refused it begins with "\x00\x00\x00\a", expected a startup packet silently`, `refused it begins with "\x00\x00\x00\a", expected a startup packet silently`},
		{"C030 too long", "\x00\x00\x27\x15\x00\x03", 0, `refused it begins with "\x00\x00'\x15", expected a startup packet silently`, `refused it begins with "\x00\x00'\x15", expected a startup packet silently`},
		{"C030 negative", "\xff\xff\xff\xff\x00\x03", 0, `refused it begins with "\xff\xff\xff\xff", expected a startup packet silently`, `refused it begins with "\xff\xff\xff\xff", expected a startup packet silently`},
		{"C030 as long as may be", string(packet(196608, strings.Repeat("x", 9996))), 0, "startup of 10004", "refused a startup packet without TLS 28000"},
		{"C031 2.0", string(packet(131072, "x")), 0, "startup of 9", "refused a startup packet without TLS 28000"},
		{"C031 4.0", string(packet(262144, "x")), 0, "startup of 9", "refused a startup packet without TLS 28000"},
		{"C032 nothing", "", 0, "more", "more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pieces := []int{tt.piece}
			if tt.piece == 0 {
				pieces = []int{1, 2, 3, 4, 5, 7, len(tt.bytes) + 1}
			}
			for _, n := range pieces {
				if got := greet(&Greeter{}, []byte(tt.bytes), n); got != tt.plain {
					t.Errorf("plaintext, in pieces of %d: %s", n, got)
				}
				if got := greet(&Greeter{TLS: true}, []byte(tt.bytes), n); got != tt.tls {
					t.Errorf("TLS, in pieces of %d: %s", n, got)
				}
			}
		})
	}
}

// Behind a direct TLS handshake an SSLRequest is declined, once.
func TestC020SSLRequestInsideDirectTLS(t *testing.T) {
	g := &Greeter{TLS: true}
	if step := g.Next([]byte("\x16\x03\x01\x02")); step.Kind != Direct || step.Size != 0 {
		t.Fatalf("%+v", step)
	}
	g.Secured()
	ssl := packet(sslRequest, "")
	if got, want := greet(g, append(ssl[:8:8], ssl...), 8), "N, refused unsupported frontend protocol 1234.5679: encryption was negotiated before 0A000"; got != want {
		t.Error(got)
	}
}

func TestCancelKeyIsBackendKey(t *testing.T) {
	p := packet(cancelRequest, "\xff\xff\xff\xfe"+strings.Repeat("k", 256))
	if BackendKey(-2, []byte(strings.Repeat("k", 256))) != CancelKey(p) {
		t.Error("a cancel does not name the backend that its key came from")
	}
}

func FuzzGreeter(f *testing.F) {
	f.Add([]byte(SSLRequest+"\x16\x03\x01"), true, uint8(3))
	f.Add(packet(196608, "user\x00u\x00\x00"), false, uint8(1))
	f.Add(append(packet(gssRequest, ""), packet(cancelRequest, "12345678")...), false, uint8(8))
	f.Fuzz(func(t *testing.T, stream []byte, tls bool, piece uint8) {
		greet(&Greeter{TLS: tls}, stream, int(piece)+1)
		if step := (&Greeter{TLS: tls}).Next(stream); step.Kind != Incomplete && step.Size > len(stream) || step.Size > maxStartup {
			t.Errorf("%+v of %d bytes", step, len(stream))
		}
	})
}

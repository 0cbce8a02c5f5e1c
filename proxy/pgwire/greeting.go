package pgwire

import (
	"encoding/binary"
	"fmt"
)

const (
	minStartup = 8
	maxStartup = 10004 // the server allows 10000 behind the length

	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104

	tlsHandshake = 0x16 // the first byte of a TLS connection
)

// SSLRequest is what asks a server for TLS. It answers with one byte: S or N.
const SSLRequest = "\x00\x00\x00\x08\x04\xd2\x16\x2f"

// GreetingKind tells what a client's first bytes are.
type GreetingKind uint8

// The kinds of greeting.
const (
	Incomplete GreetingKind = iota // read on, until there are Size bytes
	Declined                       // a request for encryption: send Reply, then go on with what comes next
	Negotiated                     // a request for TLS: send Reply, then the client begins a handshake
	Direct                         // a TLS handshake has begun; it must agree on [ALPN]
	Cancel                         // a CancelRequest; it gets no reply
	Startup                        // the stream of a session begins here
	Refused                        // Reason says why; send Reply, if there is one, and close
)

// ALPN is the protocol that a TLS connection to Postgres names, and has to name
// if it was not asked for by an SSLRequest.
const ALPN = "postgresql"

// A Greeting is the first thing in what a client has sent.
type Greeting struct {
	Kind   GreetingKind
	Size   int // in bytes
	Reply  []byte
	Reason string
}

// A Greeter follows a client from its first byte up to the StartupMessage, with
// which a session begins, and says what a server would.
type Greeter struct {
	TLS bool // it is offered, and no session begins without it

	secured, sslDone, gssDone bool
}

// Secured is to be called when the connection has become a TLS one. What is
// then shown to Next is what was decrypted.
func (g *Greeter) Secured() { g.secured = true }

// Next looks at what was read and not dealt with yet.
func (g *Greeter) Next(b []byte) Greeting {
	if len(b) < 4 {
		return Greeting{Kind: Incomplete, Size: 4}
	}
	if b[0] == tlsHandshake && g.TLS && !g.secured {
		return Greeting{Kind: Direct}
	}
	size := binary.BigEndian.Uint32(b)
	if size < minStartup || size > maxStartup {
		return refused(nil, "it begins with %s, expected a startup packet", looksLike(b[:4]))
	}
	if len(b) < int(size) {
		return Greeting{Kind: Incomplete, Size: int(size)}
	}
	out := g.packet(binary.BigEndian.Uint32(b[4:]), len(b) > int(size))
	if out.Kind != Refused {
		out.Size = int(size)
	}
	return out
}

func (g *Greeter) packet(code uint32, more bool) Greeting {
	switch {
	case code == cancelRequest:
		return Greeting{Kind: Cancel}
	case code == sslRequest && !g.sslDone:
		return g.ssl(more)
	case code == gssRequest && !g.gssDone:
		g.gssDone, g.sslDone = true, false
		return decline(more, "received unencrypted data after GSSAPI encryption request")
	case code == sslRequest || code == gssRequest:
		text := fmt.Sprintf("unsupported frontend protocol %d.%d", code>>16, code&0xffff)
		return refused(Fatal("0A000", text), "%s: encryption was negotiated before", text)
	case g.TLS && !g.secured:
		return refused(Fatal("28000", "lockfaultd: this address takes TLS connections only (sslmode=require)"), "a startup packet without TLS")
	}
	return Greeting{Kind: Startup}
}

func (g *Greeter) ssl(more bool) Greeting {
	const early = "received unencrypted data after SSL request"
	offered := g.TLS && !g.secured
	g.sslDone, g.gssDone = true, offered
	switch {
	case !offered:
		return decline(more, early)
	case more:
		return refused(Fatal("08P01", early), early)
	}
	return Greeting{Kind: Negotiated, Reply: []byte{'S'}}
}

// decline answers N. Whoever went on without waiting for that is refused, as
// bytes that came before the answer might be taken for encrypted ones.
func decline(more bool, early string) Greeting {
	if more {
		return refused(append([]byte{'N'}, Fatal("08P01", early)...), "%s", early)
	}
	return Greeting{Kind: Declined, Reply: []byte{'N'}}
}

func refused(reply []byte, format string, args ...any) Greeting {
	return Greeting{Kind: Refused, Reply: reply, Reason: fmt.Sprintf(format, args...)}
}

func looksLike(b []byte) string {
	if b[0] == tlsHandshake {
		return fmt.Sprintf("% x (a TLS handshake)", b)
	}
	return fmt.Sprintf("%q", b)
}

// Fatal makes an ErrorResponse after which the connection is closed.
func Fatal(sqlstate, message string) []byte {
	body := "SFATAL\x00VFATAL\x00C" + sqlstate + "\x00M" + message + "\x00\x00"
	out := binary.BigEndian.AppendUint32([]byte{'E'}, uint32(4+len(body)))
	return append(out, body...)
}

// CancelKey returns what a CancelRequest names: the process id and the key, as
// they stand in BackendKeyData. It is "" if the packet is too short for one.
func CancelKey(packet []byte) string {
	if len(packet) <= 12 {
		return ""
	}
	return string(packet[8:])
}

// BackendKey is the [CancelKey] of the CancelRequest that names a backend.
func BackendKey(pid int32, key []byte) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(pid))) + string(key)
}

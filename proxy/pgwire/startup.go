package pgwire

import (
	"encoding/binary"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

const (
	maxKey        = 256     // bytes of a cancel key
	maxMechanisms = 4 << 10 // bytes of a list that is taken apart
)

// startup reads the startup message: a length and a protocol version, without
// a type byte. What may come before it, a [Greeter] deals with.
func (t *Tracker) startup(chunk []byte) []byte {
	s := &t.client
	if s.nhead == 0 {
		s.start, s.nhead = s.pos, headSize
		s.buf, s.limit = s.buf[:0], 4
	}
	chunk = s.gather(chunk, 4)
	if len(s.buf) < 4 {
		return chunk
	}
	size := int64(binary.BigEndian.Uint32(s.buf))
	if size < minStartup || size > maxStartup {
		t.blind(s.start, "startup packet: begins with %s, expected a length of %d to %d", looksLike(s.buf[:4]), minStartup, maxStartup)
		return chunk
	}
	chunk = s.gather(chunk, int(size))
	if len(s.buf) == int(size) {
		t.started(s.buf)
	}
	return chunk
}

// gather copies until n bytes of the packet are at hand.
func (s *scanner) gather(chunk []byte, n int) []byte {
	n = min(n-len(s.buf), len(chunk))
	if n <= 0 {
		return chunk
	}
	s.buf = append(s.buf, chunk[:n]...)
	s.pos += int64(n)
	return chunk[n:]
}

// started acts on a whole startup packet.
func (t *Tracker) started(packet []byte) {
	s := &t.client
	code := binary.BigEndian.Uint32(packet[4:])
	if code>>16 != 3 {
		t.blind(s.start, "startup packet: protocol %d.%d, expected 3.x", code>>16, code&0xffff)
		return
	}
	name := parameter(packet[8:], "application_name")
	t.application.Store(&name)
	t.enter(packet[8:])
	t.tx.startsWith(packet[8:])
	t.startPath(packet[8:])
	t.asked.push(asked{typ: startupPacket})
	t.phase = running
	s.done()
	s.buf = nil // parameters may be secret
}

// enter notes the database, which tells tables of one name apart. Without one
// the server takes that of the user's name.
func (t *Tracker) enter(parameters []byte) {
	database := parameter(parameters, "database")
	if database == "" {
		database = parameter(parameters, "user")
	}
	if t.opt.Upstream != "" {
		database = t.opt.Upstream + "/" + database
	}
	t.opt.Upstream = database
}

// parameter returns a parameter of the startup message.
func parameter(body []byte, name string) string {
	c := cursor{b: body}
	for !c.bad && len(c.b) > 1 {
		key, v := c.text(), c.text()
		if string(key) == name && len(v) <= maxName {
			return string(v)
		}
	}
	return ""
}

// foreseeStartup says how much is wanted of a message that comes before the
// session is ready.
func (t *Tracker) foreseeStartup(typ byte) int {
	switch typ {
	case 'K':
		return 4 + maxKey
	case 'R':
		if t.opt.StripPlus {
			return maxMechanisms
		}
	case 'E':
		return maxMechanisms
	}
	return 0
}

// takeStartup takes a message that comes before the session is ready.
func (t *Tracker) takeStartup(m *message) {
	switch m.typ {
	case 'K':
		t.takeKey(m)
	case 'R':
		if list, ok := withoutPlus(m); ok { // only if it was to be kept
			t.marks = append(t.marks, wire.Mark{Kind: wire.Answer, Start: m.start, End: m.end, Bytes: list})
		}
	}
}

func (t *Tracker) takeKey(m *message) {
	c := cursor{b: m.body}
	pid := int32(c.uint32())
	if c.bad {
		return
	}
	t.pid.Store(pid)
	if t.opt.KeyData != nil && !m.cut {
		t.opt.KeyData(pid, c.b)
	}
}

const (
	authSASL  = 10
	plus      = "SCRAM-SHA-256-PLUS"
	plusBytes = len(plus) + 1
)

// withoutPlus returns an AuthenticationSASL without SCRAM-SHA-256-PLUS, and
// whether there was one, beside others.
func withoutPlus(m *message) ([]byte, bool) {
	c := cursor{b: m.body}
	if c.uint32() != authSASL || m.cut {
		return nil, false
	}
	at, others := none, 0
	for !c.bad && len(c.b) > 1 {
		from := len(m.body) - len(c.b)
		if string(c.text()) == plus {
			at = from
		} else {
			others++
		}
	}
	if at == none || others == 0 || c.bad {
		return nil, false
	}
	out := binary.BigEndian.AppendUint32([]byte{'R'}, uint32(4+len(m.body)-plusBytes))
	out = append(out, m.body[:at]...)
	return append(out, m.body[at+plusBytes:]...), true
}

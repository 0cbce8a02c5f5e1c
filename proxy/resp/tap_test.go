package resp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// A tap is a raw connection to a real server with a tracker that sees what
// passes. Whether each reply is paired with its request is told by probes:
// INCRBY of a key of its own by a number of its own, whose answer is that number.
type tap struct {
	t     *testing.T
	c     net.Conn
	tr    *Tracker
	r     *rand.Rand
	all   []byte // from the server
	sent  int64
	marks []wire.Mark
	ended bool
}

func newTap(t *testing.T, server *testbed.Server) *tap {
	t.Helper()
	c, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return tapOn(t, c)
}

func tapOn(t *testing.T, c net.Conn) *tap {
	return &tap{t: t, c: c, tr: newTracker(), r: rand.New(rand.NewPCG(7, 7))}
}

// probe is the request, and its reply the text that ends probed.
func probe(n int) string  { return words(fmt.Sprintf("INCRBY probe:%d %d", n, 1000+n)) }
func probed(n int) string { return fmt.Sprintf(":%d\r\n", 1000+n) }

func (p *tap) send(requests ...string) {
	p.t.Helper()
	b := []byte(strings.Join(requests, ""))
	for rest := b; len(rest) > 0; {
		n := min(len(rest), 1+p.r.IntN(200))
		p.marks = p.scan(p.tr.Client, rest[:n])
		rest = rest[n:]
	}
	p.sent += int64(len(b))
	if _, err := p.c.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

func (p *tap) scan(scan func([]byte, []wire.Mark) ([]wire.Mark, int64), b []byte) []wire.Mark {
	before := len(p.marks)
	marks, clear := scan(b, p.marks)
	checkMarks(p.t, marks[before:], clear)
	return marks
}

// until reads until what has come since the last call ends so; "" is the end
// of the connection.
func (p *tap) until(end string) string {
	p.t.Helper()
	from, buf := len(p.all), make([]byte, 8192)
	p.c.SetDeadline(time.Now().Add(30 * time.Second))
	for end == "" || !bytes.HasSuffix(p.all[from:], []byte(end)) {
		n, err := p.c.Read(buf[:1+p.r.IntN(len(buf))])
		p.all = append(p.all, buf[:n]...)
		p.marks = p.scan(p.tr.Upstream, buf[:n])
		if err != nil && end == "" && !strings.Contains(err.Error(), "timeout") {
			p.ended = true
			break
		}
		if err != nil {
			p.t.Fatalf("%v after %q", err, p.all[from:])
		}
	}
	return string(p.all[from:])
}

// some reads what there is, if it comes soon.
func (p *tap) some() {
	buf := make([]byte, 4096)
	p.c.SetDeadline(time.Now().Add(50 * time.Millisecond))
	n, _ := p.c.Read(buf)
	p.all = append(p.all, buf[:n]...)
	p.marks = p.scan(p.tr.Upstream, buf[:n])
	p.c.SetDeadline(time.Now().Add(30 * time.Second))
}

// story tells what the tracker made of the probes so far, and whether it went
// blind.
func (p *tap) story() string {
	p.t.Helper()
	var out []string
	for _, m := range p.marks {
		switch {
		case m.Kind == wire.Blind:
			out = append(out, "blind")
		case m.Kind == wire.Reply && m.Op.FenceKey != "":
			var n int
			fmt.Sscanf(m.Op.FenceKey, "probe:%d", &n)
			if m.Op.HasFence && m.Op.Fence != int64(1000+n) {
				p.t.Errorf("probe %d was given the reply of another: %d\n%q", n, m.Op.Fence, p.all)
			}
			out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s", n, m.Op.Outcome, m.Op.Err)))
		}
	}
	return strings.Join(out, ", ")
}

// done fails unless the story is as wanted and nothing is outstanding.
func (p *tap) done(want string) {
	p.t.Helper()
	if got := p.story(); got != want {
		p.t.Errorf("story: %s\nwant:  %s\nfrom the server: %q", got, want, p.all)
	}
	if tr := p.tr; !tr.told && (!tr.queue.empty() || tr.waiting != 0 || tr.due != 0 || tr.subs.waiting != 0 || tr.shaky != 0) {
		p.t.Errorf("not followed to its end: %+v waiting %d due %d subscriptions %d\n%q", tr.queue, tr.waiting, tr.due, tr.subs.waiting, p.all)
	}
}

// An exchange is a flight of requests, in one write, and what ends its replies.
type flight struct {
	name, requests, end, story string
}

// fly has each flight go over a connection of its own.
func fly(t *testing.T, server *testbed.Server, flights []flight) {
	admin := newTap(t, server)
	admin.send(lines("ACL SETUSER deaf on nopass ~* +@all resetchannels &ok;ACL SETUSER mute on nopass ~* &* +@all -client;PING"))
	admin.until("+PONG\r\n")
	for _, f := range flights {
		t.Run(f.name, func(t *testing.T) {
			admin.send(words("FLUSHALL"))
			admin.until("+OK\r\n")
			p := newTap(t, server)
			p.send(f.requests)
			p.until(f.end)
			p.done(f.story)
		})
	}
}

// lines encodes commands that are separated by semicolons; Pn is a probe.
func lines(text string) string {
	var b strings.Builder
	for _, line := range strings.Split(text, ";") {
		var n int
		line = strings.TrimSpace(line)
		if _, err := fmt.Sscanf(line, "P%d", &n); err == nil {
			b.WriteString(probe(n))
			continue
		}
		b.WriteString(words(line))
	}
	return b.String()
}

package pgwire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// The servers that the tests of this package share, by version. Each is started
// by the first test that asks for it.
var shared = map[int]*struct {
	once   sync.Once
	start  func(context.Context, string, ...string) (*testbed.Server, error)
	dir    string
	server *testbed.Server
	err    error
}{15: {start: testbed.StartPostgres}, 18: {start: testbed.StartPostgres18}}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range shared {
		if s.server != nil {
			s.server.Stop()
		}
		if s.dir != "" {
			os.RemoveAll(s.dir)
		}
	}
	os.Exit(code)
}

func sharedServer(t *testing.T, version int) *testbed.Server {
	t.Helper()
	s := shared[version]
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "lockfaultd-pgwire-"); s.err == nil {
			s.server, s.err = s.start(context.Background(), s.dir, "wal_level=logical", "max_prepared_transactions=4")
		}
	})
	if _, missing := s.err.(*testbed.MissingError); missing && os.Getenv("CI") == "" {
		t.Skip(s.err)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

// both runs a test against Postgres 15 and 18, with a session in which setup
// has been done.
func both(t *testing.T, setup string, test func(w *tap)) {
	for _, version := range []int{15, 18} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			w := dial(t, version)
			w.startup(196608, "user", "postgres", "database", "postgres")
			w.until('Z')
			if setup != "" {
				w.quiet(setup)
			}
			test(w)
			w.again()
		})
	}
}

// A tap is a client that speaks to a real server word by word, with a tracker
// that sees both directions. The turns are kept, to be played again in pieces.
type tap struct {
	*testing.T
	version int
	conn    net.Conn
	in      *bufio.Reader
	pl      *player
	turns   []turn
	seen    int // marks that have been looked at
	wants   []string
	opt     func(*Options)
}

func dial(t *testing.T, version int, wants ...string) *tap {
	t.Helper()
	conn, err := net.Dial("tcp", sharedServer(t, version).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	w := &tap{T: t, version: version, conn: conn, in: bufio.NewReader(conn), wants: wants}
	w.pl = newPlayer(t, newTracker(wants...))
	return w
}

func (w *tap) turn(client bool, b []byte) {
	u := turn{client, b}
	w.turns = append(w.turns, u)
	w.pl.frame(u)
	w.pl.feed(client, b)
}

// raw sends bytes.
func (w *tap) raw(b []byte) {
	w.Helper()
	w.turn(true, b)
	if _, err := w.conn.Write(b); err != nil {
		w.Fatal(err)
	}
}

func (w *tap) send(msgs ...pgproto3.FrontendMessage) {
	w.Helper()
	w.raw(encode(w.T, []any{fe(msgs)})[0].bytes)
}

func (w *tap) startup(version uint32, pairs ...string) {
	w.Helper()
	w.raw(packet(version, strings.Join(pairs, "\x00")+"\x00\x00"))
}

// next reads one message of the server, and says what it is.
func (w *tap) next() string {
	w.Helper()
	head, err := w.in.Peek(headSize)
	if err != nil {
		return "EOF"
	}
	msg := make([]byte, 1+binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(w.in, msg); err != nil {
		w.Fatal(err)
	}
	w.turn(false, msg)
	body := msg[headSize:]
	switch msg[0] {
	case 'Z':
		return "Z:" + string(body)
	case 'C':
		return "C:" + strings.ReplaceAll(string(bytes.TrimSuffix(body, []byte{0})), " ", "_")
	case 'E', 'N':
		if errorField(body, 'C') == "XX000" {
			w.Logf("internal error: %s", errorField(body, 'M'))
		}
		return string(msg[:1]) + ":" + errorField(body, 'C')
	}
	return string(msg[:1])
}

// want reads as many messages as are named.
func (w *tap) want(list string) {
	w.Helper()
	for i, want := range strings.Fields(list) {
		if got := w.next(); got != want {
			w.Fatalf("message %d is %s, want %s of %s; marks\n%s", i, got, want, list, w.pl.text())
		}
	}
	if w.pl.clear[1] != w.pl.pos[1] {
		w.Fatalf("after %s: %d bytes of the server are withheld", list, w.pl.pos[1]-w.pl.clear[1])
	}
}

// until reads up to a message of a type, and returns what came.
func (w *tap) until(typ byte) string {
	w.Helper()
	var out []string
	for {
		m := w.next()
		out = append(out, m)
		if m[0] == typ || m == "EOF" {
			return strings.Join(out, " ")
		}
	}
}

// quiet runs SQL of which no op is made.
func (w *tap) quiet(sql string) {
	w.Helper()
	w.send(q("do $do$ begin " + sql + "; end $do$"))
	if got := w.until('Z'); !strings.Contains(got, "C:DO Z:") {
		w.Fatalf("%s: %s", sql, got)
	}
}

// by chooses what the two versions differ in.
func (w *tap) by(on15, on18 string) string {
	if w.version == 15 {
		return on15
	}
	return on18
}

// marks holds the tracker to what it found since the last call.
func (w *tap) marks(want string) {
	w.Helper()
	var out []string
	for _, m := range w.pl.marks[w.seen:] {
		out = append(out, w.pl.describe(m))
	}
	w.seen = len(w.pl.marks)
	if got := strings.Join(out, "\n"); got != lines(want) {
		w.Fatalf("marks\n%s\nwant\n%s", got, lines(want))
	}
}

// again plays all that was said in pieces, to other trackers, which must say
// the same.
func (w *tap) again() {
	w.Helper()
	size := 0
	for _, u := range w.turns {
		size += len(u.bytes)
	}
	for _, n := range []int{1, 7, 1000} {
		if size/n > 1<<20 {
			continue
		}
		tr := newTracker(w.wants...)
		if w.opt != nil {
			w.opt(&tr.opt)
		}
		pl := newPlayer(w.T, tr)
		pl.skips = n == 7
		if got := pl.play(w.turns, n).text(); got != w.pl.text() {
			w.Fatalf("in pieces of %d:\n%s\nwant\n%s", n, got, w.pl.text())
		}
	}
}

// ext is a statement of the extended protocol, all in one segment.
func ext(sql string, params ...string) fe {
	return fe{p("", sql), b("", "", params...), e("")}
}

func segments(list ...fe) (out fe) {
	for _, l := range list {
		out = append(out, l...)
	}
	return out
}

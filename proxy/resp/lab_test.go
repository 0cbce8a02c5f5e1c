package resp

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A lab is a real server with a connection that runs scripts on it, another that
// has its MONITOR, and a shadow that is told of what that shows.
type lab struct {
	t       *testing.T
	c       net.Conn
	in      *bufio.Reader
	feed    *bufio.Reader
	shadow  *Shadow
	scripts *Scripts
	marks   int
	addr    string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return newLabOn(t, testbed.Redis(t).Addr())
}

// eachStory has a lab of its own for each story, on one server.
func eachStory(t *testing.T, tell func(t *testing.T, l *lab, steps []step)) {
	addr := testbed.Redis(t).Addr()
	for name, steps := range stories() {
		t.Run(name, func(t *testing.T) {
			l := newLabOn(t, addr)
			l.do("FLUSHALL")
			tell(t, l, steps)
		})
	}
}

func newLabOn(t *testing.T, addr string) *lab {
	t.Helper()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(60 * time.Second))
		return c
	}
	l := &lab{t: t, c: dial(), addr: addr, scripts: NewScripts()}
	l.in = bufio.NewReader(l.c)
	l.shadow = NewShadow(testHash, l.scripts)
	monitor := dial()
	fmt.Fprint(monitor, words("MONITOR"))
	l.feed = bufio.NewReader(monitor)
	if line, err := l.feed.ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatal(line, err)
	}
	return l
}

// do runs a command, and returns its reply as it came and what the server then
// showed of it.
func (l *lab) do(args ...string) (string, []Command) {
	l.t.Helper()
	l.marks++
	end := fmt.Sprintf("end-%d", l.marks)
	if _, err := l.c.Write([]byte(cmd(args...) + cmd("ECHO", end))); err != nil {
		l.t.Fatal(err)
	}
	var reply strings.Builder
	for {
		line, err := l.in.ReadString('\n')
		if err != nil {
			l.t.Fatalf("%v after %q", err, reply.String())
		}
		if line == end+"\r\n" {
			break
		}
		reply.WriteString(line)
	}
	text := strings.TrimSuffix(reply.String(), fmt.Sprintf("$%d\r\n", len(end)))
	var out []Command
	for {
		line, err := l.feed.ReadString('\n')
		if err != nil {
			l.t.Fatal(err)
		}
		c, ok := ParseCommand([]byte(strings.TrimSuffix(strings.TrimPrefix(line, "+"), "\r\n")))
		if !ok {
			l.t.Fatalf("not understood: %q", line)
		}
		if string(c.Args[0]) == "ECHO" && string(c.Args[1]) == end {
			return text, out
		}
		out = append(out, c)
	}
}

// plain runs a command of no script, of which the shadow is told.
func (l *lab) plain(line string) string {
	l.t.Helper()
	reply, shown := l.do(strings.Fields(line)...)
	for i := range shown {
		l.shadow.Run(&shown[i])
	}
	return reply
}

// call runs a script and returns what it did by what the server showed.
func (l *lab) call(text string, keys []string, args ...string) (string, Effect) {
	l.t.Helper()
	reply, shown := l.do(append(append([]string{"EVAL", text, fmt.Sprint(len(keys))}, keys...), args...)...)
	return reply, l.effect(callOf(text, keys, args), shown)
}

// effect finds the call among what was shown, and what it ran.
func (l *lab) effect(c *Call, shown []Command) Effect {
	l.t.Helper()
	for i := range shown {
		if string(shown[i].Args[0]) != c.Verb {
			continue
		}
		end := i + 1
		for end < len(shown) && shown[end].Inner() {
			end++
		}
		return l.shadow.Script(c, shown[i].At, shown[i+1:end])
	}
	l.t.Fatalf("the call is not shown: %v", shown)
	return Effect{}
}

func callOf(text string, keys, args []string) *Call {
	c := &Call{Verb: "EVAL", Script: sha(text)}
	for _, k := range keys {
		c.Keys = append(c.Keys, []byte(k))
	}
	for _, a := range args {
		c.Args = append(c.Args, []byte(a))
	}
	return c
}

// effects words an effect's ops.
func effects(e Effect) string {
	var out []string
	for i := range e.Ops {
		out = append(out, effectOf(&e.Ops[i]))
	}
	return strings.Join(out, "; ")
}

// effectOf is describe for what a witness tells, without the evidence.
func effectOf(op *lock.Op) string {
	s := strings.TrimSpace(describe(op))
	if op.Shared {
		s += " shared"
	}
	if op.Depth != 0 {
		s += fmt.Sprintf(" depth=%d", op.Depth)
	}
	return s
}

func (l *lab) client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: l.addr})
	l.t.Cleanup(func() { c.Close() })
	return c
}

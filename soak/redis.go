package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"
)

// patience is how long a reply may take: a lost one is told by it.
const patience = time.Minute

const release = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"

// A guest is a client's one connection to Redis.
type guest struct {
	conn  net.Conn
	in    *bufio.Reader
	key   string // nobody else's
	count int    // of what was stored
	incrs int
	tells bool // publishes and subscribes on this connection
}

// redis returns how the client of that number connects.
func (c *crowd) redis(number int) func(context.Context) (visitor, error) {
	times := 0
	return func(ctx context.Context) (visitor, error) {
		conn, err := c.dialer.DialContext(ctx, "tcp", c.Addresses[number%2])
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		times++
		g := &guest{conn: conn, in: bufio.NewReaderSize(conn, 512), key: fmt.Sprintf("soak:%d:%d", number, times), tells: number%40 == 7}
		if g.tells {
			err = g.subscribe()
		} else {
			err = g.ask("+PONG", "PING")
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
		return g, nil
	}
}

func (g *guest) value() string { return fmt.Sprintf("%s=%d", g.key, g.count) }

// act does one of the things that clients do.
func (g *guest) act(context.Context) error {
	switch n := rand.IntN(100); {
	case g.tells:
		return g.publish()
	case n < 40:
		return g.store()
	case n < 60:
		g.incrs++
		return g.ask(":"+strconv.Itoa(g.incrs), "INCR", g.key+":n")
	case n < 75:
		return g.pipeline(1 + rand.IntN(30))
	case n < 88:
		return g.lock()
	case n < 91:
		return g.large()
	case n < 97:
		return g.transaction()
	default:
		return g.ask("*-1", "BLPOP", g.key+":none", "0.05")
	}
}

func (g *guest) store() error {
	g.count++
	if err := g.ask("+OK", "SET", g.key, g.value()); err != nil {
		return err
	}
	return g.ask(g.value(), "GET", g.key)
}

// pipeline sends many commands at once.
func (g *guest) pipeline(n int) error {
	var out []byte
	var want []string
	for i := range n {
		switch i % 3 {
		case 0:
			g.count++
			out, want = command(out, "SET", g.key, g.value()), append(want, "+OK")
		case 1:
			out, want = command(out, "GET", g.key), append(want, g.value())
		default:
			g.incrs++
			out, want = command(out, "INCR", g.key+":n"), append(want, ":"+strconv.Itoa(g.incrs))
		}
	}
	return g.exchange(out, want...)
}

// lock takes a lock and releases it.
func (g *guest) lock() error {
	g.count++
	if err := g.ask("+OK", "SET", g.key+":lock", g.value(), "NX", "PX", "600000"); err != nil {
		return err
	}
	return g.ask(":1", "EVAL", release, "1", g.key+":lock", g.value())
}

// large stores what a proxy does not keep in its buffers.
func (g *guest) large() error {
	g.count++
	value := strings.Repeat(g.value()+"\r\n", 100_000/len(g.value()))
	if err := g.ask("+OK", "SET", g.key+":large", value, "PX", "600000"); err != nil {
		return err
	}
	return g.ask(value, "GETDEL", g.key+":large")
}

func (g *guest) transaction() error {
	g.incrs++
	n := strconv.Itoa(g.incrs)
	var out []byte
	out = command(command(command(command(out, "MULTI"), "INCR", g.key+":n"), "GET", g.key+":n"), "EXEC")
	return g.exchange(out, "+OK", "+QUEUED", "+QUEUED", "*2[:"+n+" "+n+"]")
}

func (g *guest) subscribe() error {
	if err := g.send(command(nil, "HELLO", "3")); err != nil {
		return err
	}
	got, err := g.reply()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(got, "%") {
		return wrongf("%s: HELLO 3 got %.100q", g.key, got)
	}
	return g.ask(">3[subscribe "+g.key+" :1]", "SUBSCRIBE", g.key)
}

// publish hears what it says, before or after the reply.
func (g *guest) publish() error {
	g.count++
	if err := g.send(command(nil, "PUBLISH", g.key, g.value())); err != nil {
		return err
	}
	push, reply := ">3[message "+g.key+" "+g.value()+"]", ":1"
	var got [2]string
	for i := range got {
		var err error
		if got[i], err = g.reply(); err != nil {
			return err
		}
	}
	if got != [2]string{push, reply} && got != [2]string{reply, push} {
		return wrongf("%s: PUBLISH got %.100q", g.key, got)
	}
	return g.store()
}

// leave goes as clients do: in good order, at once, or with a reply under way.
func (g *guest) leave() {
	switch rand.IntN(4) {
	case 0:
		_ = g.conn.(*net.TCPConn).SetLinger(0)
	case 1:
		_ = g.send(command(nil, "GET", g.key))
	case 2:
		_ = g.send(command(nil, "GET", g.key))
		_ = g.conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, g.conn)
	}
	g.conn.Close()
}

func command(out []byte, words ...string) []byte {
	out = fmt.Appendf(out, "*%d\r\n", len(words))
	for _, w := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(w), w)
	}
	return out
}

// ask sends a command and wants one reply.
func (g *guest) ask(want string, words ...string) error {
	return g.exchange(command(nil, words...), want)
}

func (g *guest) exchange(out []byte, want ...string) error {
	if err := g.send(out); err != nil {
		return err
	}
	for i, w := range want {
		got, err := g.reply()
		if err != nil {
			return err
		}
		if got != w {
			return wrongf("%s: reply %d to %.60q is %.100q, want %.100q", g.key, i, out, got, w)
		}
	}
	return nil
}

func (g *guest) send(out []byte) error {
	_ = g.conn.SetDeadline(time.Now().Add(patience)) // a TCP connection has deadlines
	if _, err := g.conn.Write(out); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// reply reads one and tells it as text: strings as they are, what is not one
// with its type.
func (g *guest) reply() (string, error) {
	line, err := g.in.ReadBytes('\n')
	if err != nil {
		return "", fmt.Errorf("await reply: %w", err)
	}
	line = bytes.TrimRight(line, "\r\n")
	if len(line) == 0 {
		return "", wrongf("%s: an empty line for a reply", g.key)
	}
	n, _ := strconv.Atoi(string(line[1:]))
	switch line[0] {
	case '+', '-', ':', '_':
		return string(line), nil
	case '$':
		return g.bulk(n)
	case '*', '>':
		return g.list(line, n)
	case '%':
		return g.list(line, 2*n)
	}
	return "", wrongf("%s: %.100q for a reply", g.key, line)
}

func (g *guest) bulk(n int) (string, error) {
	if n < 0 {
		return "$-1", nil
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(g.in, text); err != nil {
		return "", fmt.Errorf("await reply: %w", err)
	}
	return string(text[:n]), nil
}

func (g *guest) list(line []byte, n int) (string, error) {
	if n < 0 {
		return string(line), nil
	}
	parts := make([]string, n)
	for i := range parts {
		var err error
		if parts[i], err = g.reply(); err != nil {
			return "", err
		}
	}
	return string(line) + "[" + strings.Join(parts, " ") + "]", nil
}

package witness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// A Redis says how a server is reached from beside its proxied connections.
type Redis struct {
	Name     string // of the upstream, as ops have it
	Address  string // as routes have it
	Dial     func(ctx context.Context) (net.Conn, error)
	User     string
	Password string // "" where there is none, or it is not known
}

const (
	asking   = time.Second // for the answer to one question
	maxText  = 64 << 10    // longest text of a reply that is kept
	maxParts = 4096        // most elements of a reply's array
	maxNest  = 8           // deepest array
)

// A refusal is an error that the server has answered: asking again helps little.
type refusal string

func (r refusal) Error() string { return string(r) }

// A link is a side connection to a Redis. One goroutine uses it at a time.
type link struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
	db   int // selected; -1: not known
}

// connect opens a link and logs in. It ends with ctx.
func (r *Redis) connect(ctx context.Context) (*link, error) {
	conn, err := r.Dial(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := l.login(r); err != nil {
		conn.Close()
		return nil, err
	}
	return l, nil
}

func (l *link) login(r *Redis) error {
	auth := [][]byte{[]byte("AUTH")}
	if r.User != "" {
		auth = append(auth, []byte(r.User))
	}
	if r.Password != "" {
		if err := l.must(append(auth, []byte(r.Password))...); err != nil {
			return err
		}
	}
	// A server need not take the name, but whom it does not know it tells so here.
	err := l.must(words("CLIENT", "SETNAME", "lockfaultd")...)
	if refused := refusal(""); errors.As(err, &refused) && !strings.HasPrefix(string(refused), "NOAUTH") {
		return nil
	}
	return err
}

// must asks one thing, and wants no error for an answer.
func (l *link) must(command ...[]byte) error {
	got, err := l.ask(command)
	if err == nil && got[0].kind == '-' {
		err = refusal(got[0].text)
	}
	return err
}

func words(list ...string) [][]byte {
	out := make([][]byte, len(list))
	for i, w := range list {
		out[i] = []byte(w)
	}
	return out
}

// ask sends commands in one go and reads their replies.
func (l *link) ask(commands ...[][]byte) ([]reply, error) {
	// An in-memory connection has no deadlines; it ends with the test.
	_ = l.conn.SetDeadline(time.Now().Add(asking))
	l.out = l.out[:0]
	for _, c := range commands {
		l.out = appendCommand(l.out, c)
	}
	if _, err := l.conn.Write(l.out); err != nil {
		return nil, err
	}
	out := make([]reply, 0, len(commands))
	for range commands {
		r, err := readReply(l.in, 0)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func appendCommand(b []byte, words [][]byte) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n", len(w))
		b = append(append(b, w...), '\r', '\n')
	}
	return b
}

func (l *link) close() { l.conn.Close() }

// A reply is what a Redis answers to one command, in RESP2.
type reply struct {
	kind byte // + - : $ *
	null bool
	text []byte // what was longer than maxText is cut off
	long bool   // text is cut off
	list []reply
}

func (r *reply) integer() (int64, bool) {
	n, err := strconv.ParseInt(string(r.text), 10, 64)
	return n, err == nil
}

// at returns an element; an empty reply where there is none.
func (r *reply) at(i int) *reply {
	if i < len(r.list) {
		return &r.list[i]
	}
	return &reply{}
}

var errReply = errors.New("what the server answers is no reply of Redis")

func readReply(in *bufio.Reader, depth int) (reply, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return reply{}, err
	}
	line = bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'})
	if len(line) == 0 {
		return reply{}, errReply
	}
	r := reply{kind: line[0]}
	switch r.kind {
	case '+', '-', ':':
		r.text = bytes.Clone(line[1:])
		return r, nil
	case '$', '*':
	default:
		return reply{}, errReply
	}
	n, err := strconv.Atoi(string(line[1:]))
	switch {
	case err != nil || n < -1:
		return reply{}, errReply
	case n < 0:
		r.null = true
		return r, nil
	case r.kind == '$':
		return r, r.readText(in, n)
	}
	return r, r.readList(in, n, depth)
}

func (r *reply) readText(in *bufio.Reader, n int) error {
	r.long = n > maxText
	r.text = make([]byte, min(n, maxText))
	if _, err := io.ReadFull(in, r.text); err != nil {
		return err
	}
	_, err := in.Discard(n - len(r.text) + 2)
	return err
}

func (r *reply) readList(in *bufio.Reader, n, depth int) error {
	if depth == maxNest || n > maxParts {
		return errReply
	}
	for range n {
		e, err := readReply(in, depth+1)
		if err != nil {
			return err
		}
		r.list = append(r.list, e)
	}
	return nil
}

const (
	firstRest = 100 * time.Millisecond // before a lost link is opened again
	lastRest  = 10 * time.Second
)

// keep has serve use one link after another until ctx ends. failed is told why one
// could not be had, or was lost.
func (r *Redis) keep(ctx context.Context, serve func(k *link) error, failed func(error)) {
	rest := firstRest
	for ctx.Err() == nil {
		k, err := r.connect(ctx)
		if err == nil {
			rest = firstRest
			err = serve(k)
			k.close()
		}
		if ctx.Err() != nil {
			return
		}
		failed(err)
		if errors.As(err, new(refusal)) {
			rest = lastRest
		}
		sleep(ctx, rest)
		rest = min(2*rest, lastRest)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

package service

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A tape is a history in memory: of sections of one lock, in which each reads the counter and writes one more.
type tape struct {
	t     *testing.T
	run   string
	out   bytes.Buffer
	w     *history.Writer
	now   lock.Instant
	seq   uint64
	value int64
}

func newTape(t *testing.T, run string) *tape {
	p := &tape{t: t, run: run, now: lock.Instant(time.Second)}
	p.w = history.NewWriter(&p.out, history.Header{Run: run, Started: time.Now().Add(-time.Hour), KeyID: "k",
		Declarations: []lock.Declaration{{Key: "lock:c", Table: "counter", Declared: true}}}, func(_, _ string) bool { return true })
	return p
}

func (p *tape) op(op lock.Op) {
	p.seq++
	op.Seq = p.seq
	if op.Session == 0 {
		op.Session = 1
	}
	op.A, op.F = p.now, p.now+1
	p.now += lock.Instant(time.Millisecond)
	p.seq++
	op.ReplySeq, op.R, op.D = p.seq, p.now, p.now+1
	p.now += lock.Instant(time.Millisecond)
	p.w.Op(&op)
}

func hash(format string, args ...any) lock.Value {
	return lock.Value{Hash: fmt.Sprintf("%016x", fmt.Sprintf(format, args...))[:16]}
}

func number(n int64) lock.Value { v := hash("n%d", n); v.Int, v.IsInt = n, true; return v }

// take grants the lock to an actor.
func (p *tape) take(actor string, session uint64, token lock.Value) {
	p.op(lock.Op{Session: session, Actor: actor, Proto: lock.Redis, Kind: lock.Acquire, Verb: "SET", Key: "lock:c", NX: true, TTL: 30 * time.Second, Token: token, Outcome: lock.Granted})
}

// drop removes the lock, whoever has it.
func (p *tape) drop(actor string, session uint64) {
	p.op(lock.Op{Session: session, Actor: actor, Proto: lock.Redis, Kind: lock.Release, Verb: "DEL", Key: "lock:c", Outcome: lock.Done})
}

// section is one that is as it should be.
func (p *tape) section(actor string, session uint64) {
	token := hash("%s %d", actor, p.seq)
	p.take(actor, session, token)
	row := []lock.Cond{{Column: "id", Op: "=", Value: number(1)}}
	p.op(lock.Op{Session: session + 100, Actor: actor, Proto: lock.Postgres, Kind: lock.Read, Verb: "SELECT", Implicit: true, Outcome: lock.Done, Rows: 1,
		SQL: &lock.Statement{Table: "counter", Columns: []string{"value"}, Where: row}, Row: []lock.Cell{{Column: "value", Value: number(p.value)}}})
	p.value++
	p.op(lock.Op{Session: session + 100, Actor: actor, Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", Implicit: true, Outcome: lock.Done, Rows: 1,
		SQL: &lock.Statement{Table: "counter", Set: []lock.Assign{{Column: "value", Value: number(p.value)}}, Where: row}})
	p.op(lock.Op{Session: session, Actor: actor, Proto: lock.Redis, Kind: lock.Release, Verb: "EVAL", Key: "lock:c", Guarded: true, Token: token, Outcome: lock.Done})
}

// theft is that B removes the lock of A: LF301.
func (p *tape) theft() {
	p.section("B", 2) // it has had the lock before
	token := hash("A %d", p.seq)
	p.take("A", 1, token)
	p.drop("B", 2)
	p.op(lock.Op{Session: 1, Actor: "A", Proto: lock.Redis, Kind: lock.Release, Verb: "EVAL", Key: "lock:c", Guarded: true, Token: token, Outcome: lock.NotHeld})
}

// messages are the lines so far, from line n on.
func (p *tape) messages(from uint64) (out []Message) {
	for n, line := range bytes.Split(bytes.TrimSuffix(p.out.Bytes(), []byte("\n")), []byte("\n")) {
		if uint64(n) >= from {
			out = append(out, Message{At: time.Now(), Pos: Position{p.run, uint64(n)}, Line: bytes.Clone(line)})
		}
	}
	return out
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// open makes a service of a folder.
func open(t *testing.T, dir string, step func(string, int) (int, error), watches ...Watch) (*Service, *Store) {
	t.Helper()
	store, kept, err := openStore(dir, step)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Source: Stream{URL: "http://daemon"}, Watches: watches, Log: quiet()}, store, kept)
	if err != nil {
		t.Fatal(err)
	}
	return s, store
}

package service

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe"
)

// polled looks once and judges.
func polled(t *testing.T, w Watch) Opinion {
	t.Helper()
	judge, err := w.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for {
		if o := judge(); !o.Wait {
			return o
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// withinTwo expects that a violation is told by the second look at the latest, with its code.
func withinTwo(t *testing.T, w Watch, code string) Breach {
	t.Helper()
	o := polled(t, w)
	if o.State != Broken {
		o = polled(t, w)
	}
	if o.State != Broken || len(o.Breaches) != 1 || o.Breaches[0].Code != code || o.Breaches[0].Proof == "" {
		t.Fatalf("%+v; want %s", o, code)
	}
	return o.Breaches[0]
}

// sound expects that none of so many looks finds anything, and that most of them can tell.
func sound(t *testing.T, w Watch, looks int) {
	t.Helper()
	held := 0
	for i := range looks {
		switch o := polled(t, w); o.State {
		case Broken:
			t.Fatalf("look %d: %+v", i, o)
		case Holds:
			held++
		default:
			t.Logf("look %d: %s", i, o.Text)
		}
	}
	if held < looks/2 {
		t.Errorf("only %d of %d looks could tell", held, looks)
	}
}

// looks is how many a test under load makes.
func looks() int {
	if testing.Short() {
		return 20
	}
	return 200
}

type db struct {
	t    *testing.T
	url  string
	conn *pgx.Conn
}

func openDB(t *testing.T) *db {
	pg := testbed.Postgres(t)
	d := &db{t: t, url: pg.URL()}
	d.conn = d.connect()
	return d
}

func (d *db) connect() *pgx.Conn {
	d.t.Helper()
	c, err := pgx.Connect(d.t.Context(), d.url)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func (d *db) exec(sql ...string) {
	d.t.Helper()
	for _, s := range sql {
		if _, err := d.conn.Exec(d.t.Context(), s); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *db) at() *Database {
	at := &Database{From: probe.Database{URL: d.url}}
	d.t.Cleanup(at.Close)
	return at
}

// load runs work in so many goroutines, each with a connection of its own, until the test is over.
func (d *db) load(n int, work func(ctx context.Context, c *pgx.Conn, worker, i int) error) (stop func()) {
	var enough atomic.Bool
	var all sync.WaitGroup
	for w := range n {
		c := d.connect()
		all.Go(func() {
			for i := 0; !enough.Load(); i++ {
				if err := work(d.t.Context(), c, w, i); err != nil {
					d.t.Error(err)
					return
				}
			}
		})
	}
	return func() { enough.Store(true); all.Wait() }
}

func TestSum(t *testing.T) {
	d := openDB(t)
	d.exec("CREATE TABLE account (id int PRIMARY KEY, balance bigint)", "CREATE TABLE ledger (account int, amount bigint)", "INSERT INTO account VALUES (7, 0)")
	at := d.at()
	w := &Agrees{Is: About{Name: "balance"}, A: Side{"SELECT balance FROM account WHERE id = 7", at}, B: Side{"SELECT sum(amount) FROM ledger WHERE account = 7", at}}
	if o := polled(t, w); o.State != Holds { // the sum of nothing is NULL
		t.Fatalf("%+v", o)
	}
	stop := d.load(4, func(ctx context.Context, c *pgx.Conn, _, i int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO ledger VALUES (7, $1)", i%5-1); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "UPDATE account SET balance = balance + $1 WHERE id = 7", i%5-1)
			return err
		})
	})
	sound(t, w, looks())
	stop()
	d.exec("UPDATE account SET balance = balance + 3 WHERE id = 7")
	withinTwo(t, w, "LF405")
	d.exec("UPDATE account SET balance = balance - 3 WHERE id = 7")
	if o := polled(t, w); o.State != Holds {
		t.Errorf("%+v", o)
	}
}

// Two databases have no moment in common: what moves is not told of, what stays apart is.
func TestSumOfTwoDatabases(t *testing.T) {
	a, b := openDB(t), openDB(t)
	for _, d := range []*db{a, b} {
		d.exec("CREATE TABLE n (v bigint)", "INSERT INTO n VALUES (0)")
	}
	w := &Agrees{Is: About{Name: "n"}, A: Side{"SELECT v FROM n", a.at()}, B: Side{"SELECT v FROM n", b.at()}}
	other := b.connect()
	stop := a.load(1, func(ctx context.Context, c *pgx.Conn, _, _ int) error {
		if _, err := c.Exec(ctx, "UPDATE n SET v = v + 1"); err != nil {
			return err
		}
		_, err := other.Exec(ctx, "UPDATE n SET v = v + 1")
		return err
	})
	for range 40 {
		if o := polled(t, w); o.State == Broken {
			t.Fatalf("%+v", o)
		}
	}
	stop()
	a.exec("UPDATE n SET v = 5")
	b.exec("UPDATE n SET v = 6")
	withinTwo(t, w, "LF405")
}

func TestZero(t *testing.T) {
	d := openDB(t)
	d.exec("CREATE TABLE job (id int, active bool)", "INSERT INTO job SELECT n, false FROM generate_series(1, 5) n")
	w := &None{Is: About{Name: "one"}, Query: "SELECT id FROM job WHERE active GROUP BY id HAVING count(*) > 1 -- of each", At: d.at()}
	stop := d.load(4, func(ctx context.Context, c *pgx.Conn, _, i int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { // two are active while it goes on, and nobody sees that
			_, err := tx.Exec(ctx, fmt.Sprintf("INSERT INTO job VALUES (%d, true), (%d, true)", i%5, i%5))
			if err == nil {
				_, err = tx.Exec(ctx, "DELETE FROM job WHERE active")
			}
			return err
		})
	})
	sound(t, w, looks())
	stop()
	d.exec("INSERT INTO job VALUES (3, true), (3, true), (4, true), (4, true)")
	if b := withinTwo(t, w, "LF405"); b.Count != 2 {
		t.Errorf("%+v", b)
	}
}

func TestMonotone(t *testing.T) {
	d := openDB(t)
	w := &Rises{Is: About{Name: "offset", Text: "the offset"}, Read: d.at().Number("SELECT v FROM n WHERE id = 1")}
	if o := polled(t, w); o.State != Unknown { // there is no such table yet
		t.Fatalf("%+v", o)
	}
	d.exec("CREATE TABLE n (id int, v bigint)", "INSERT INTO n VALUES (1, 0)")
	stop := d.load(4, func(ctx context.Context, c *pgx.Conn, _, _ int) error {
		_, err := c.Exec(ctx, "UPDATE n SET v = v + 1 WHERE id = 1")
		return err
	})
	sound(t, w, looks())
	stop()
	polled(t, w)
	d.exec("UPDATE n SET v = v - 1 WHERE id = 1")
	withinTwo(t, w, "LF404")
	d.exec("UPDATE n SET v = v + 1 WHERE id = 1")
	if o := polled(t, w); o.State != Holds {
		t.Errorf("%+v", o)
	}
}

func openRedis(t *testing.T) *redis.Client {
	r := testbed.Redis(t)
	var all Clients
	t.Cleanup(all.Close)
	c, err := all.Of("r", r.URL())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestIssuedFence(t *testing.T) {
	c := openRedis(t)
	w := &Rises{Is: About{Name: "fence", Text: "the key fence:c"}, Read: Issued(c, "fence:c"), Fence: true, Issued: true}
	if o := polled(t, w); o.State != Unknown {
		t.Fatalf("%+v", o)
	}
	c.Incr(t.Context(), "fence:c") // those below may not have begun by the first look
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				c.Incr(ctx, "fence:c")
			}
		})
	}
	sound(t, w, looks())
	cancel()
	all.Wait()
	polled(t, w)
	c.Decr(t.Context(), "fence:c")
	withinTwo(t, w, "LF105")
	c.Incr(t.Context(), "fence:c")
	if o := polled(t, w); o.State != Holds {
		t.Fatalf("%+v", o)
	}
	c.Del(t.Context(), "fence:c")
	withinTwo(t, w, "LF105")
}

// Locks that are taken by two commands are without a lifetime for a moment, again and again: none of that is told of. Nor is
// a lock told to be held for long that changes hands, though the token is always the same.
func TestLeases(t *testing.T) {
	c := openRedis(t)
	w := &Leases{Is: About{Name: "leases"}, Client: c, Pattern: "lock:*", Except: []string{"lock:ever"}, Lifetime: true, Longest: 400 * time.Millisecond}
	c.Set(t.Context(), "lock:ever", "x", 0)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for n := range 4 {
		key := fmt.Sprintf("lock:%d", n%3)
		token := any("same")
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if n == 0 {
					token = i
				}
				if ok, _ := c.SetNX(ctx, key, token, 0).Result(); ok {
					c.PExpire(ctx, key, 30*time.Second)
					c.Del(ctx, key)
				}
			}
		})
	}
	all.Go(func() { // one that excludes well, and is always taken
		for ctx.Err() == nil {
			c.SetNX(ctx, "lock:busy", "same", 100*time.Millisecond)
			time.Sleep(time.Millisecond)
		}
	})
	sound(t, w, 40)
	cancel()
	all.Wait()
	keys, _ := c.Keys(t.Context(), "lock:?").Result()
	c.Del(t.Context(), append(keys, "lock:busy", "no")...)
	polled(t, w)
	longest := w.Longest
	w.Longest = 0 // two looks may take longer
	c.Set(t.Context(), "lock:9", "token", 0)
	withinTwo(t, w, "LF304")
	c.Set(t.Context(), "lock:9", "token", time.Minute)
	if o := polled(t, w); o.State != Holds {
		t.Fatalf("%+v", o)
	}
	w.Longest = longest
	time.Sleep(w.Longest + 50*time.Millisecond)
	withinTwo(t, w, "LF313")
}

// ticking is a daemon's clock, and a history of what goes to a database: one line for each op, when it is over.
type ticking struct {
	mu       sync.Mutex
	begun    time.Time
	seq      atomic.Uint64
	sections atomic.Uint64
	acked    *Acked
}

func (k *ticking) now() lock.Instant { return lock.Instant(time.Since(k.begun)) + 1 }

func (k *ticking) Name() string { return "daemon" }

func (k *ticking) Tick(context.Context) (Tick, error) { return Tick{Run: "run", At: k.now()}, nil }

// do does something to the database as an op.
func (k *ticking) do(op lock.Op, what func() error) error {
	op.Seq, op.A = k.seq.Add(1), k.now()
	op.F = k.now()
	err := what()
	op.R = k.now()
	op.ReplySeq, op.D, op.Outcome = k.seq.Add(1), k.now(), lock.Done
	if op.Kind == lock.Acquire {
		op.Outcome = lock.Granted
	}
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.acked.Entry("run", history.Entry{Op: &op})
	}
	return err
}

// guarded judges while no line comes.
type guarded struct {
	*Acked
	mu *sync.Mutex
}

func (g guarded) Look(ctx context.Context) (func() Opinion, error) {
	judge, err := g.Acked.Look(ctx)
	return func() Opinion {
		g.mu.Lock()
		defer g.mu.Unlock()
		return judge()
	}, err
}

func newTicking(t *testing.T, d *db) (*ticking, guarded) {
	inv, err := probe.NewInvariant(probe.CounterKind, "SELECT value FROM counter WHERE id = 1")
	if err != nil {
		t.Fatal(err)
	}
	k := &ticking{begun: time.Now()}
	k.acked = &Acked{Is: About{Name: "counter"}, Invariant: inv, Clock: k, Read: d.at().Number(inv.Query), CaughtUp: func(lock.Instant, time.Time) bool { return true }}
	k.acked.Entry("run", history.Entry{Header: &history.Header{}})
	return k, guarded{k.acked, &k.mu}
}

var rowOne = []lock.Cond{{Column: "id", Op: "=", Value: number(1)}}

// add is a step of the counter by SQL's own arithmetic.
func (k *ticking) add(ctx context.Context, c *pgx.Conn, session uint64, by int64) error {
	op := lock.Op{Session: session, Actor: fmt.Sprint("A", session), Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", Implicit: true, Rows: 1,
		SQL: &lock.Statement{Table: "counter", Set: []lock.Assign{{Column: "value", Delta: by, HasDelta: true}}, Where: rowOne}}
	return k.do(op, func() error {
		_, err := c.Exec(ctx, "UPDATE counter SET value = value + $1 WHERE id = 1", by)
		return err
	})
}

// section reads the counter under a lock and writes one more.
func (k *ticking) section(ctx context.Context, c *pgx.Conn, mu *sync.Mutex, session uint64) error {
	n := k.sections.Add(1)
	actor, token, term := fmt.Sprint("A", session), hash("%d", n), lock.Attribution{ID: lock.TermID(n), Confidence: 1}
	op := lock.Op{Session: session, Actor: actor, Proto: lock.Redis, Kind: lock.Acquire, Verb: "SET", Key: "lock:c", NX: true, TTL: 30 * time.Second, Token: token, Term: term}
	if err := k.do(op, func() error { mu.Lock(); return nil }); err != nil {
		return err
	}
	var value int64
	read := lock.Op{Session: session + 100, Actor: actor, Proto: lock.Postgres, Kind: lock.Read, Verb: "SELECT", Implicit: true, Rows: 1, Term: term,
		SQL: &lock.Statement{Table: "counter", Columns: []string{"value"}, Where: rowOne}, Row: []lock.Cell{{Column: "value"}}}
	err := k.do(read, func() error {
		err := c.QueryRow(ctx, "SELECT value FROM counter WHERE id = 1").Scan(&value)
		read.Row[0].Value = number(value)
		return err
	})
	if err == nil {
		write := lock.Op{Session: session + 100, Actor: actor, Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", Implicit: true, Rows: 1, Term: term,
			SQL: &lock.Statement{Table: "counter", Set: []lock.Assign{{Column: "value", Value: number(value + 1)}}, Where: rowOne}}
		err = k.do(write, func() error {
			_, err := c.Exec(ctx, "UPDATE counter SET value = $1 WHERE id = 1", value+1)
			return err
		})
	}
	release := lock.Op{Session: session, Actor: actor, Proto: lock.Redis, Kind: lock.Release, Verb: "EVAL", Key: "lock:c", Guarded: true, Token: token, Term: term}
	return errorOr(err, k.do(release, func() error { mu.Unlock(); return nil }))
}

func errorOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func TestAcked(t *testing.T) {
	d := openDB(t)
	d.exec("CREATE TABLE counter (id int PRIMARY KEY, value bigint)", "INSERT INTO counter VALUES (1, 100)")
	for _, tt := range []struct {
		name    string
		workers int
		work    func(k *ticking, mu *sync.Mutex) func(ctx context.Context, c *pgx.Conn, worker, i int) error
	}{
		{"additions", 4, func(k *ticking, _ *sync.Mutex) func(context.Context, *pgx.Conn, int, int) error {
			return func(ctx context.Context, c *pgx.Conn, worker, i int) error {
				time.Sleep(time.Duration(i%7) * time.Millisecond)
				return k.add(ctx, c, uint64(worker+1), int64(i%5-1))
			}
		}},
		{"sections", 4, func(k *ticking, mu *sync.Mutex) func(context.Context, *pgx.Conn, int, int) error {
			return func(ctx context.Context, c *pgx.Conn, worker, i int) error {
				time.Sleep(time.Duration(i%7) * time.Millisecond)
				return k.section(ctx, c, mu, uint64(worker+1))
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &db{t: t, url: d.url, conn: d.conn}
			k, w := newTicking(t, d)
			mu := &sync.Mutex{}
			past := func(sql string) { // the daemon, and not between a section's read and its write, which would undo it
				mu.Lock()
				defer mu.Unlock()
				d.exec(sql)
			}
			stop := d.load(tt.workers, tt.work(k, mu))
			sound(t, w, looks())
			past("UPDATE counter SET value = value - 100 WHERE id = 1")
			if b := withinTwo(t, w, "LF403"); b.Count < 50 {
				t.Errorf("%+v", b)
			}
			past("UPDATE counter SET value = value + 100 WHERE id = 1")
			sound(t, w, 5)
			stop()
			polled(t, w)
			d.exec("UPDATE counter SET value = value + 1 WHERE id = 1")
			if b := withinTwo(t, w, "LF403"); b.Count != 1 {
				t.Errorf("%+v", b)
			}
		})
	}
}

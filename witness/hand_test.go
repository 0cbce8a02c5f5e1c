package witness

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A key is removed in its own database, and a server that forgot it says so. MONITOR shows that, and it is nobody's
// past the proxies.
func TestKeyIsForgotten(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Monitor = true })
	p := b.party()
	p.call(b.load(acquireText), []string{"lock:own"}, "token-of-a", "60000") // by which it is known whose addresses are whose
	p.watch.Passed(&lock.Op{Proto: lock.Redis, Kind: lock.Acquire, Key: "lock:a", DB: 2})
	db := redis.NewClient(&redis.Options{Addr: b.server.Addr(), DB: 2, PoolSize: 1})
	defer db.Close()
	ctx := t.Context()
	other := redis.NewClient(&redis.Options{Addr: b.server.Addr(), PoolSize: 1})
	defer other.Close()
	db.Set(ctx, "lock:a", "x", 0)
	if got := await(t, b.record.bypasses); got.Verb != "SET" {
		t.Fatalf("%+v", got)
	}
	other.Set(ctx, "lock:a", "x", 0)
	for _, want := range []lock.Outcome{lock.Done, lock.NotHeld} {
		if got, err := b.house.Forget(ctx, "", 2, "lock:a"); got != want || err != nil {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	if other.Exists(ctx, "lock:a").Val() != 1 {
		t.Error("the key of another database is gone")
	}
	db.Expire(ctx, "lock:a", time.Minute) // behind it, nothing is left to be shown
	if got := await(t, b.record.bypasses); got.Verb != "EXPIRE" {
		t.Errorf("taken for past the proxies: %+v", got)
	}
}

func TestKeyThatCannotBeForgotten(t *testing.T) {
	b := newBench(t, func(*Options) {})
	ctx := t.Context()
	if got, err := b.house.Forget(ctx, "nobody", 0, "lock:a"); got != lock.Failed || err == nil {
		t.Errorf("of an unknown server: %s, %v", got, err)
	}
	if got, err := b.house.Forget(ctx, "", 99, "lock:a"); got != lock.Failed || err == nil || !strings.Contains(err.Error(), "SELECT 99") {
		t.Errorf("of an unknown database: %s, %v", got, err)
	}
	admin := redis.NewClient(&redis.Options{Addr: b.server.Addr()})
	defer admin.Close()
	if err := admin.Do(ctx, "ACL", "SETUSER", "default", "-del").Err(); err != nil {
		t.Fatal(err)
	}
	defer admin.Do(context.Background(), "ACL", "SETUSER", "default", "+@all")
	if got, err := b.house.Forget(ctx, "", 0, "lock:a"); got != lock.Failed || err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("not allowed: %s, %v", got, err)
	}
}

// The backend ends that has the connection, and its lock is free when that is said.
func TestBackendIsEnded(t *testing.T) {
	server := testbed.Postgres(t)
	h, _ := pgHouse(t, server)
	ctx := t.Context()
	victim, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close(context.Background())
	if _, err := victim.Exec(ctx, "SELECT pg_advisory_lock(4711)"); err != nil {
		t.Fatal(err)
	}
	pid, from := int32(victim.PgConn().PID()), netip.MustParseAddrPort(victim.PgConn().Conn().LocalAddr().String())
	if o, err := h.Kill(ctx, server.Addr(), pid, netip.AddrPortFrom(from.Addr(), from.Port()+1)); o != lock.Failed || err == nil || !strings.Contains(err.Error(), "no backend") {
		t.Errorf("of another connection: %s, %v", o, err)
	}
	if err := victim.Ping(ctx); err != nil {
		t.Fatalf("the wrong backend ended: %v", err)
	}
	if o, err := h.Kill(ctx, server.Addr(), pid, from); o != lock.Done || err != nil {
		t.Fatal(o, err)
	}
	next, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close(context.Background())
	var granted bool
	if err := next.QueryRow(ctx, "SELECT pg_try_advisory_lock(4711)").Scan(&granted); err != nil || !granted {
		t.Errorf("granted %t, %v", granted, err)
	}
	if err := victim.Ping(ctx); err == nil || !strings.Contains(err.Error(), "57P01") {
		t.Errorf("the client is told %v", err)
	}
	if o, err := h.Kill(ctx, "elsewhere:1", pid, from); o != lock.Failed || err == nil {
		t.Errorf("on an unknown server: %s, %v", o, err)
	}
}

// Of a backend that was told to end, and does not within the time that a reply can wait, nobody says that it was refused.
func TestBackendEndsLate(t *testing.T) {
	server := testbed.Postgres(t)
	h, _ := pgHouse(t, server)
	ctx := t.Context()
	victim, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close(context.Background())
	pid, from := int32(victim.PgConn().PID()), netip.MustParseAddrPort(victim.PgConn().Conn().LocalAddr().String())
	if err := unix.Kill(int(pid), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(int(pid), unix.SIGCONT)
	if o, err := h.Kill(ctx, server.Addr(), pid, from); o != lock.Unknown || err == nil || !strings.Contains(err.Error(), "had not within 2s") {
		t.Errorf("while it cannot end: %s, %v", o, err)
	}
	if err := unix.Kill(int(pid), unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := victim.Ping(ctx); err == nil || !strings.Contains(err.Error(), "57P01") {
		t.Errorf("the client is told %v", err)
	}
}

// That a backend has ended counts when it is heard with the last of the time, too.
func TestFateOfABackend(t *testing.T) {
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		ctx   context.Context
		there bool
		err   error
		want  lock.Outcome
		says  string
	}{
		"ended":             {t.Context(), false, nil, lock.Done, ""},
		"ended, heard late": {late, false, nil, lock.Done, ""},
		"there":             {t.Context(), true, nil, lock.Pending, ""},
		"there, late":       {late, true, nil, lock.Unknown, "had not within 2s"},
		"no answer":         {t.Context(), false, broken, lock.Unknown, "see it end: broken"},
		"no answer in time": {late, false, context.DeadlineExceeded, lock.Unknown, "had not within 2s"},
	} {
		o, err := fate(tt.ctx, tt.there, tt.err)
		if o != tt.want || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %s, %v", name, o, err)
		}
	}
}

// What the server refuses is not done.
func TestBackendThatMayNotBeEnded(t *testing.T) {
	server := testbed.Postgres(t)
	ctx := t.Context()
	victim, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close(context.Background())
	other, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	if _, err := other.Exec(ctx, "CREATE ROLE meek; GRANT pg_read_all_stats TO meek; SET ROLE meek"); err != nil {
		t.Fatal(err)
	}
	pid, from := int32(victim.PgConn().PID()), netip.MustParseAddrPort(victim.PgConn().Conn().LocalAddr().String())
	if o, err := terminate(ctx, other, pid, from); o != lock.Failed || err == nil || !strings.Contains(err.Error(), "pg_terminate_backend") {
		t.Errorf("not allowed: %s, %v", o, err)
	}
	if err := victim.Ping(ctx); err != nil {
		t.Errorf("it ended: %v", err)
	}
	broken, cancel := context.WithCancel(ctx)
	cancel()
	if o, err := terminate(broken, victim, pid, from); o != lock.Unknown || err == nil {
		t.Errorf("nobody heard what came of it: %s, %v", o, err)
	}
}

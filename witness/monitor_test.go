package witness

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

var testHash = lock.NewHasher([]byte("test"))

// A bench is a real Redis with witnesses beside it.
type bench struct {
	t       *testing.T
	server  *testbed.Server
	house   *House
	record  *recorded
	log     *logged
	scripts *resp.Scripts
	local   netip.AddrPort // instead of the sessions' own, if it is valid
	patient time.Duration  // for which its sessions wait for a look
}

func newBench(t *testing.T, options func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, server: testbed.Redis(t), record: newRecorded(), log: &logged{}, scripts: resp.NewScripts(), patient: 30 * time.Second}
	o := Options{
		Redis: []Redis{{Address: b.server.Addr(), Dial: dialTo(b.server.Addr())}},
		Hash:  testHash, Scripts: b.scripts, Now: clockFrom(time.Now()),
		Locks: func() uint64 { return 0 }, Record: b.record, Log: b.log.log(),
	}
	options(&o)
	b.house = New(o)
	b.house.Begin(time.Minute)
	t.Cleanup(func() { b.house.Close() })
	return b
}

// A party is a session that is watched: a connection, and a tracker that is fed
// what goes over it.
type party struct {
	b       *bench
	link    *link
	heard   *heard
	tracker *resp.Tracker
	watch   proxy.Watcher
}

// A heard is a connection that keeps what is read from it.
type heard struct {
	net.Conn
	bytes []byte
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	h.bytes = append(h.bytes, p[:n]...)
	return n, err
}

func (b *bench) party() *party {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.server.Addr())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	local := conn.LocalAddr().(*net.TCPAddr).AddrPort()
	if b.local.IsValid() {
		local = b.local
	}
	h := &heard{Conn: conn}
	return &party{
		b: b, heard: h, link: &link{conn: h, in: bufio.NewReader(h)},
		tracker: resp.NewTracker(resp.Options{Session: 1, Hash: testHash, Scripts: b.scripts, Witnessed: true, EffectsOnly: true}),
		watch:   b.house.Watch(proxy.Watched{Session: 1, Route: proxy.Route{Protocol: lock.Redis, Upstream: b.server.Addr()}, Local: local}),
	}
}

// call runs a script that the server knows, as a session does, and returns its
// reply and what the witness has seen it do; false if that was nothing.
func (p *party) call(sha string, keys []string, args ...string) (got reply, ops []*lock.Op, told bool) {
	p.b.t.Helper()
	command := words(append(append([]string{"EVALSHA", sha, strconv.Itoa(len(keys))}, keys...), args...)...)
	marks, _ := p.tracker.Client(appendCommand(nil, command), nil)
	c := marks[len(marks)-1].Call
	for _, m := range marks[:len(marks)-1] {
		ops = append(ops, m.Op) // by what the script's calls did before
	}
	if l := p.watch.Before(c); l != nil && !p.b.given(l) {
		p.watch.Missed(c)
	}
	p.heard.bytes = nil
	replies, err := p.link.ask(command)
	if err != nil {
		p.b.t.Error(err)
		return got, nil, false
	}
	p.tracker.Upstream(p.heard.bytes, nil)
	l := p.watch.After(c)
	if l == nil {
		return replies[0], nil, false
	}
	if !p.b.given(l) {
		p.watch.Missed(c)
	}
	ops = append(ops, c.Resolve(true)...)
	told = slices.ContainsFunc(ops, func(op *lock.Op) bool { return op.Evidence == lock.FromMonitor || op.Evidence == lock.FromProbe })
	return replies[0], ops, told
}

// given waits for a look, longer than a session would, and reports whether it
// came.
func (b *bench) given(l *proxy.Look) bool {
	for until := time.Now().Add(b.patient); time.Now().Before(until); {
		if l.Given() {
			l.Take()
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// load has the server know a script, on a connection past the session.
func (b *bench) load(text string) string {
	b.t.Helper()
	other := redis.NewClient(&redis.Options{Addr: b.server.Addr()})
	defer other.Close()
	sha, err := other.ScriptLoad(b.t.Context(), text).Result()
	if err != nil {
		b.t.Fatal(err)
	}
	return sha
}

// The three scripts of a lock, as libraries have them.
const (
	acquireText = `if redis.call("exists", KEYS[1]) == 1 then return nil end redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2]) return 1`
	renewText   = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) end return 0`
	releaseText = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`
)

func describe(ops []*lock.Op) string {
	var out []string
	for _, op := range ops {
		out = append(out, fmt.Sprintf("%s %s %s %v %s", op.Kind, op.Key, op.Outcome, op.TTL, op.Evidence))
	}
	return strings.Join(out, "; ")
}

// A life of a lock by scripts that nobody has the text of.
func TestMonitorTellsScripts(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Monitor = true })
	life(t, b, "monitor", "k0")
	if b.log.String() != "" {
		t.Errorf("log: %s", b.log)
	}
}

func TestProbeTellsScripts(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Probe = ProbeAll })
	life(t, b, "probe", "k0")
	if b.log.String() != "" {
		t.Errorf("log: %s", b.log)
	}
}

func life(t *testing.T, b *bench, evidence lock.Evidence, key string) {
	t.Helper()
	p := b.party()
	acquire, renew, release := b.load(acquireText), b.load(renewText), b.load(releaseText)
	keys := []string{key}
	for _, step := range []struct {
		sha  string
		args []string
		want string
	}{
		{acquire, []string{"token-of-a", "60000"}, "acquire %s granted 1m0s %s"},
		{acquire, []string{"token-of-b", "60000"}, "acquire %s refused 0s %s"},
		{renew, []string{"token-of-a", "90000"}, "renew %s done 1m30s %s"},
		{renew, []string{"token-of-b", "90000"}, "renew %s not-held 0s %s"},
		{release, []string{"token-of-b"}, "other %s not-held 0s %s"}, // it never released anything
		{release, []string{"token-of-a"}, "release %s done 0s %s"},
		{acquire, []string{"token-of-b", "60000"}, "acquire %s granted 1m0s %s"},
		{release, []string{"token-of-a"}, "release %s not-held 0s %s"},
	} {
		_, ops, told := p.call(step.sha, keys, step.args...)
		if got, want := describe(ops), fmt.Sprintf(step.want, key, evidence); !told || got != want {
			t.Errorf("%v: got %q, want %q", step.args, got, want)
		}
	}
}

// Many contend for a lock by scripts, and what each is told is what its reply
// says, whatever the others do.
func TestMonitorTellsThoseWhoContend(t *testing.T) {
	for range 10 {
		b := newBench(t, func(o *Options) { o.Monitor = true })
		told, calls := contend(t, b, 8, 60)
		counts := b.house.say.all()
		if counts[Lapses] > 0 && !t.Failed() {
			continue // the machine stood still for so long that the server was let go of
		}
		if told < calls*9/10 {
			t.Errorf("%d of %d calls were told, counts %v", told, calls, counts)
		}
		return
	}
	t.Error("the server was let go of each time")
}

func TestProbeTellsThoseWhoContend(t *testing.T) {
	for _, patient := range []time.Duration{0, patience, time.Minute} {
		b := newBench(t, func(o *Options) { o.Probe = ProbeAll })
		b.house.redis[b.server.Addr()].prober.patient = patient
		told, calls := contend(t, b, 4, 60)
		if patient > patience && told < calls/2 { // who is not waited for is told less
			t.Errorf("%d of %d calls were told, counts %v", told, calls, b.house.say.all())
		}
	}
}

// contend has n sessions take and leave one lock for so many rounds each, and
// returns how many of their calls were told rightly. One that was told wrongly
// fails the test.
func contend(t *testing.T, b *bench, n, rounds int) (told, calls int) {
	acquire, release := b.load(acquireText), b.load(releaseText)
	var mu sync.Mutex
	var all sync.WaitGroup
	check := func(kind lock.Kind, won, ok bool, ops []*lock.Op) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		if !ok {
			return
		}
		told++
		yes := lock.Granted
		if kind == lock.Release {
			yes = lock.Done
		}
		if won && (len(ops) != 1 || ops[0].Kind != kind || ops[0].Outcome != yes) {
			t.Errorf("%s succeeded, and it is told that: %s", kind, describe(ops))
		}
		if !won && len(ops) == 1 && ops[0].Outcome == yes {
			t.Errorf("%s had no success, and it is told that: %s", kind, describe(ops))
		}
	}
	for i := range n {
		p := b.party()
		all.Go(func() {
			for round := range rounds {
				token := fmt.Sprintf("token-%d-of-%d", round, i)
				reply, ops, ok := p.call(acquire, []string{"lock:hot"}, token, "60000")
				check(lock.Acquire, string(reply.text) == "1", ok, ops)
				if string(reply.text) == "1" {
					reply, ops, ok = p.call(release, []string{"lock:hot"}, token)
					check(lock.Release, string(reply.text) == "1", ok, ops)
				}
			}
		})
	}
	all.Wait()
	return told, calls
}

// Somebody who goes past the proxies is noticed, once for each thing that it does;
// those who only read are not.
func TestWhoGoesPastIsNoticed(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Monitor = true })
	acquire, release := b.load(acquireText), b.load(releaseText)
	p := b.party()
	p.call(acquire, []string{"lock:a"}, "token-of-a", "60000")
	p.call(release, []string{"lock:a"}, "token-of-a")
	p.watch.Passed(&lock.Op{Proto: lock.Redis, Kind: lock.Acquire, Key: "lock:b", DB: 0})
	stranger := redis.NewClient(&redis.Options{Addr: b.server.Addr(), PoolSize: 1})
	defer stranger.Close()
	ctx := t.Context()
	stranger.Get(ctx, "lock:a")
	stranger.Set(ctx, "other", "x", 0)
	for range 2 {
		stranger.Set(ctx, "lock:a", "x", 0)
		stranger.EvalSha(ctx, release, []string{"lock:a"}, "x")
		stranger.Del(ctx, "lock:b")
	}
	for _, want := range []string{"SET lock:a", "DEL lock:a", "DEL lock:b"} {
		got := await(t, b.record.bypasses)
		if got.Verb+" "+got.Key != want || got.At == 0 || got.Address == "" {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
	p.call(acquire, []string{"lock:c"}, "token-of-a", "60000")
	if n := len(b.record.bypasses); n != 0 {
		t.Errorf("%d more", n)
	}
}

// Where something gives connections other addresses, a session is known by what
// it calls.
func TestSessionUnderAnotherAddress(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Monitor = true })
	b.local = netip.MustParseAddrPort("192.0.2.1:7")
	life(t, b, "monitor", "k1")
	stranger := redis.NewClient(&redis.Options{Addr: b.server.Addr(), PoolSize: 1})
	defer stranger.Close()
	stranger.Del(t.Context(), "k1")
	if _, _, told := b.party().call(b.load(acquireText), []string{"k2"}, "token-of-c", "60000"); !told {
		t.Error("the next session is not known by what it calls")
	}
	if n := len(b.record.bypasses); n != 0 {
		t.Errorf("%d are taken for past the proxy, though nobody knows who is who", n)
	}
}

// A witness that is cut off in the middle says nothing wrong, is told of once,
// and comes back.
func TestSideConnectionsThatBreak(t *testing.T) {
	for name, set := range map[string]func(*Options){
		"monitor": func(o *Options) { o.Monitor = true },
		"probe":   func(o *Options) { o.Probe = ProbeAll },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, set)
			b.patient = 200 * time.Millisecond // a look before is not given where its link breaks
			ctx, cancel := context.WithCancel(t.Context())
			killer := redis.NewClient(&redis.Options{Addr: b.server.Addr(), PoolSize: 1})
			defer killer.Close()
			var killing sync.WaitGroup
			var killed atomic.Int64
			killing.Go(func() {
				for ctx.Err() == nil {
					for _, line := range strings.Split(killer.ClientList(t.Context()).Val(), "\n") {
						if _, rest, _ := strings.Cut(line, "id="); strings.Contains(line, "name=lockfaultd ") {
							id, _, _ := strings.Cut(rest, " ")
							killer.Do(t.Context(), "CLIENT", "KILL", "ID", id)
						}
					}
					killed.Add(1)
					sleep(ctx, 150*time.Millisecond)
				}
			})
			for killed.Load() < 3 {
				contend(t, b, 3, 20)
			}
			cancel()
			killing.Wait()
			p, acquire := b.party(), b.load(acquireText)
			for i := 0; ; i++ {
				if _, _, told := p.call(acquire, []string{fmt.Sprint("lock:", i)}, "token-of-a", "60000"); told {
					break
				}
			}
			if n := strings.Count(b.log.String(), "has lost the server"); n == 0 || n > 3 {
				t.Errorf("said %d times that it is lost: %s", n, b.log)
			}
		})
	}
}

// A server that shows more than can be read does no harm.
func TestFloodedMonitor(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Monitor = true })
	b.patient = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var flooding sync.WaitGroup
	large := strings.Repeat("\x00", 300<<10) // four times as much where MONITOR shows it
	flooding.Go(func() {
		c := redis.NewClient(&redis.Options{Addr: b.server.Addr(), PoolSize: 1})
		defer c.Close()
		for i := 0; ctx.Err() == nil; i++ {
			pipe := c.Pipeline()
			for j := range 200 {
				pipe.Set(ctx, fmt.Sprint("cache:", i*200+j), "v", time.Minute)
			}
			pipe.Set(ctx, "large", large, time.Minute)
			_, _ = pipe.Exec(ctx)
		}
	})
	told, calls := contend(t, b, 2, 20)
	cancel()
	flooding.Wait()
	t.Logf("%d of %d calls were told, counts %v", told, calls, b.house.say.all())
}

// called returns the call that a tracker makes of a request.
func called(t *testing.T, command ...string) wire.Call {
	t.Helper()
	tracker := resp.NewTracker(resp.Options{Session: 1, Hash: testHash, Witnessed: true})
	marks, _ := tracker.Client(appendCommand(nil, words(command...)), nil)
	return marks[len(marks)-1].Call
}

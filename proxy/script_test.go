package proxy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

var update = flag.Bool("update", false, "rewrite the expected transcripts")

// TestScripts runs every testdata/*.txt in virtual time over an in-memory
// network. A script is commands, a line ----, and all that came of them: what
// each end received and when, what was frozen, and the history.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, want, _ := strings.Cut(string(text), "----\n")
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, script) })
			if *update {
				if err := os.WriteFile(file, []byte(script+"----\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("transcript differs.\n-- got --\n%s\n-- want --\n%s", got, want)
			}
		})
	}
}

// A stage is one script being played.
type stage struct {
	t      *testing.T
	ctx    context.Context
	start  time.Time
	net    testbed.Network
	engine *proxy.Engine
	server *proxy.Server
	record *proxy.Record
	rules  []fault.Rule
	alters bool
	decls  []lock.Declaration
	ends   map[string]*end // by connection name

	mu     sync.Mutex
	said   []saying
	step   int
	quiet  bool           // the script is over
	owners map[string]int // client address -> pid
	blocks map[int32][]int32
	refuse string       // the freezer's answer, if it is to refuse
	deeds  lock.Outcome // of what is done to servers
	file   strings.Builder
	wait   sync.WaitGroup
}

// An end is a client's connection and the upstream's end of it.
type end struct {
	client   net.Conn
	upstream net.Conn
	pg       bool
}

func play(t *testing.T, script string) string {
	ctx, cancel := context.WithCancel(t.Context())
	s := &stage{t: t, ctx: ctx, start: time.Now(), ends: map[string]*end{}, owners: map[string]int{}}
	for n, line := range strings.Split(script, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		s.mu.Lock()
		s.step++
		s.mu.Unlock()
		if err := s.do(strings.Fields(line)); err != nil {
			t.Fatalf("line %d: %s: %v", n+1, line, err)
		}
		synctest.Wait()
	}
	s.mu.Lock()
	s.quiet = true
	s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.ends)) {
		s.ends[name].client.Close()
		s.ends[name].upstream.Close()
		synctest.Wait()
	}
	cancel()
	s.wait.Wait()
	if s.record != nil {
		if err := s.record.Close(); err != nil {
			t.Error(err)
		}
	}
	return strings.Join(steady(s.said), "\n") + "\n\n" + strings.Join(inOrder(s.file.String()), "\n") + "\n"
}

// steady sorts what several ends read at one instant of one step, which comes
// in any order.
func steady(said []saying) []string {
	slices.SortStableFunc(said, func(a, b saying) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.at, b.at), strings.Compare(a.who, b.who))
	})
	var out []string
	for _, l := range joined(said) {
		out = append(out, fmt.Sprintf("%-6s %s", l.at, l.text))
	}
	return out
}

// joined makes one read of those that one reader made at one instant: how many
// there were is up to the scheduler.
func joined(said []saying) (out []saying) {
	for _, l := range said {
		begin := l.who + ` reads "`
		if n := len(out); n > 0 && out[n-1].step == l.step && out[n-1].at == l.at &&
			strings.HasPrefix(l.text, begin) && strings.HasPrefix(out[n-1].text, begin) {
			out[n-1].text = strings.TrimSuffix(out[n-1].text, `"`) + strings.TrimPrefix(l.text, begin)
			continue
		}
		out = append(out, l)
	}
	return out
}

// A saying is one line of the transcript. who is "" for what is not a read:
// those come first, as a freeze does before the reply that waited for it.
type saying struct {
	step int
	at   time.Duration
	who  string
	text string
}

// inOrder groups the lines of a history by type, ops by their place.
func inOrder(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	key := func(line string) (int, int) {
		var l struct {
			Type             string
			Seq, ID, Session int
		}
		_ = json.Unmarshal([]byte(line), &l)
		return slices.Index([]string{"header", "actor", "op", "injection", "turn", "vain", "end"}, l.Type), l.Seq + l.ID
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		at, an := key(a)
		bt, bn := key(b)
		return cmp.Or(cmp.Compare(at, bt), cmp.Compare(an, bn))
	})
	return lines
}

func (s *stage) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet {
		return
	}
	line := saying{step: s.step, at: time.Since(s.start), text: fmt.Sprintf(format, args...)}
	if who, _, read := strings.Cut(line.text, " reads "); read {
		line.who = who
	}
	s.said = append(s.said, line)
}

func (s *stage) clock() lock.Instant { return lock.Instant(time.Since(s.start)) + 1 }

func (s *stage) do(f []string) error {
	rest := func(n int) string { return strings.Join(f[n:], " ") }
	switch f[0] {
	case "rule":
		r, err := fault.Parse(f[1], rest(2))
		s.rules = append(s.rules, r)
		return err
	case "refuse":
		s.refuse = rest(1)
		return nil
	case "deeds":
		s.deeds = lock.Outcome(f[1])
		return nil
	case "lock":
		s.decls = append(s.decls, lock.Declaration{Key: f[1], Table: f[2], FenceColumn: f[3], Declared: true})
		return nil
	case "blocked":
		waits, _ := strconv.Atoi(f[1])
		by, err := strconv.Atoi(f[2])
		s.mu.Lock()
		defer s.mu.Unlock()
		s.blocks = map[int32][]int32{int32(waits): {int32(by)}}
		return err
	case "signal":
		heard, opened := s.engine.Signal(f[1], s.clock())
		waiting, kept := s.engine.Waiting(f[1])
		s.say("signal %s: heard by %d, opened %d; then %d wait, kept %t", f[1], heard, opened, waiting, kept)
		return nil
	case "alters":
		s.alters = true
		return nil
	case "add", "remove", "arm", "off":
		return s.alter(f)
	case "stop":
		rules, held := s.engine.Stop(s.clock())
		s.say("stop: %d rules disarmed, %d things let go", rules, held)
		return nil
	case "freeze":
		return s.freezeByHand(f[1], f[2])
	case "thaw":
		label := strings.Join(f[1:], "")
		n, err := s.engine.Thaw(label, s.clock())
		s.say("thaw %q: %d, %v", label, n, err)
		return nil
	case "look":
		s.look()
		return nil
	case "disarm":
		s.engine.Disarm(s.clock())
		return nil
	case "connect":
		backend := 7
		if len(f) > 4 {
			backend, _ = strconv.Atoi(f[4])
		}
		return s.connect(f[1], f[2], f[3], uint32(backend))
	case "sleep":
		d, err := time.ParseDuration(f[1])
		time.Sleep(d)
		return err
	case "close":
		return s.ends[f[1]].client.Close()
	case "finish":
		return s.ends[f[1]].client.(*testbed.Conn).CloseWrite()
	case "drop":
		return s.ends[f[1]].upstream.Close()
	case "send":
		return s.write(s.ends[f[1]].client, unescape(rest(2)))
	case "command":
		return s.write(s.ends[f[1]].client, multibulk(f[2:]))
	case "query":
		return s.messages(s.ends[f[1]].client, &pgproto3.Query{String: rest(2)})
	case "execute":
		return s.messages(s.ends[f[1]].client, &pgproto3.Parse{Query: rest(2)}, &pgproto3.Bind{}, &pgproto3.Execute{})
	case "sync":
		return s.messages(s.ends[f[1]].client, &pgproto3.Sync{})
	case "done":
		return s.messages(s.ends[f[1]].upstream, &pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, &pgproto3.CommandComplete{CommandTag: []byte(rest(2))})
	case "reply":
		return s.write(s.ends[f[1]].upstream, unescape(rest(2)))
	case "tag":
		return s.messages(s.ends[f[1]].upstream, &pgproto3.CommandComplete{CommandTag: []byte(rest(3))}, ready(f[2]))
	case "row":
		return s.messages(s.ends[f[1]].upstream, column(f[3]), &pgproto3.DataRow{Values: [][]byte{[]byte(f[4])}},
			&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}, ready(f[2]))
	}
	return errors.New("unknown command")
}

func (s *stage) write(c net.Conn, text string) error {
	_, err := c.Write([]byte(text))
	return err
}

func unescape(s string) string {
	out, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
	if err != nil {
		return s
	}
	return out
}

func multibulk(words []string) string {
	out := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		out += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return out
}

// messages writes Postgres messages in one go.
func (s *stage) messages(c net.Conn, list ...pgproto3.Message) error {
	var out []byte
	for _, m := range list {
		var err error
		if out, err = m.Encode(out); err != nil {
			return err
		}
	}
	return s.write(c, string(out))
}

func ready(status string) *pgproto3.ReadyForQuery {
	return &pgproto3.ReadyForQuery{TxStatus: status[0]}
}

// column describes a result of one int8 column in text form.
func column(name string) *pgproto3.RowDescription {
	return &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte(name), DataTypeOID: 20, DataTypeSize: 8, TypeModifier: -1}}}
}

// open starts everything at the first connection, when the rules are known.
func (s *stage) open() error {
	if s.engine != nil {
		return nil
	}
	plan, err := fault.NewPlan(s.rules, 1, fault.Limits{})
	if err != nil {
		return err
	}
	plan.Start(s.clock())
	s.engine = proxy.NewEngine(lock.NewLedger(s.decls), plan)
	if s.alters {
		s.engine.Alters()
	}
	hash := lock.NewHasher([]byte("test"))
	s.record = proxy.NewRecord(history.NewWriter(&s.file, history.Header{Schema: history.Schema, Started: s.start, Seed: 1},
		func(string, string) bool { return true }), func() error { return nil }, s.engine, proxy.Wait, nil)
	scripts, cache := resp.NewScripts(), pgwire.NewCache()
	s.server = &proxy.Server{
		Engine: s.engine, Freezer: s, Clock: s.clock, Dial: s.net.Dial, Recorder: s.record,
		Log: slog.New(slog.NewTextHandler(logger{s}, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(g []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}})),
		Track: func(r proxy.Route, session uint64) proxy.Tracker {
			wants := func(verb string) bool { return plan.Wants(r.Protocol, verb) }
			if r.Protocol == lock.Postgres {
				t := pgwire.NewTracker(pgwire.Options{Session: session, Hash: hash, Statements: cache, Wants: wants})
				return proxy.Tracker{Tracker: t, ClientName: t.ApplicationName, Backend: t.BackendPID, Working: t.Working}
			}
			t := resp.NewTracker(resp.Options{Session: session, Hash: hash, Scripts: scripts, Wants: wants, Epoch: plan.Epoch})
			return proxy.Tracker{Tracker: t, ClientName: t.ClientName}
		},
	}
	runner := &proxy.Runner{Hand: s, Deed: s.record.Op, Engine: s.engine, Freezer: s, Clock: s.clock, Blocked: s, Injected: s.record.Injection, Turned: s.record.Turn, Vain: func(v fault.Vain) {
		s.say("in vain: %s: %s: %s", v.Rule, v.Name, v.Why)
		s.record.Vain(v)
	}}
	s.wait.Go(func() { runner.Run(s.ctx) })
	return errors.Join(s.serve("redis", lock.Redis), s.serve("pg", lock.Postgres))
}

func (s *stage) serve(name string, p lock.Protocol) error {
	ln, err := s.net.Listen(name)
	if err != nil {
		return err
	}
	s.wait.Go(func() { _ = s.server.Serve(s.ctx, ln, proxy.Route{Protocol: p, Upstream: name + "-server"}) })
	return nil
}

// connect opens a connection of the process pid and reports what both ends read.
func (s *stage) connect(name, where, pid string, backend uint32) error {
	if err := s.open(); err != nil {
		return err
	}
	up, err := s.net.Listen(where + "-server")
	if err != nil {
		return err
	}
	defer up.Close()
	client, err := s.dial(where, pid)
	if err != nil {
		return err
	}
	e := &end{client: client, pg: where == "pg"}
	s.ends[name] = e
	if e.upstream, err = up.Accept(); err != nil {
		return err
	}
	s.wait.Go(func() { s.listen(name, client) })
	s.wait.Go(func() { s.listen(name+"'s server", e.upstream) })
	if e.pg {
		return s.startup(e, backend)
	}
	return nil
}

// dial connects, and knows whose the connection is before anybody can ask.
func (s *stage) dial(where, pid string) (net.Conn, error) {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	client, err := s.net.Dial(s.ctx, where)
	if err == nil {
		s.owners[client.LocalAddr().String()] = n
	}
	return client, err
}

func (s *stage) startup(e *end, backend uint32) error {
	err := s.messages(e.client, &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersionNumber, Parameters: map[string]string{"user": "u"}})
	if err != nil {
		return err
	}
	synctest.Wait()
	return s.messages(e.upstream, &pgproto3.AuthenticationOk{}, &pgproto3.BackendKeyData{ProcessID: backend, SecretKey: 9}, ready("I"))
}

func (s *stage) listen(name string, c net.Conn) {
	buf := make([]byte, 1<<16)
	for {
		n, err := c.Read(buf)
		if n > 0 {
			s.say("%s reads %q", name, buf[:n])
		}
		if err != nil {
			s.say("%s reads end: %v", name, err)
			return
		}
	}
}

// Lookup implements proxy.Freezer.
func (s *stage) Lookup(_ context.Context, client, _ netip.AddrPort) *proxy.Owner {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid := s.owners[client.String()]
	if pid == 0 {
		return &proxy.Owner{Address: client.Addr().String(), Reason: "no process found"}
	}
	return &proxy.Owner{Key: fmt.Sprint(pid), PID: pid, Address: client.Addr().String()}
}

// Blocked implements proxy.Blocked.
func (s *stage) Blocked(_ context.Context, upstream string) (map[int32][]int32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if upstream != "pg-server" {
		return nil, errors.New("not this one")
	}
	return s.blocks, nil
}

// Freeze implements proxy.Freezer. It takes a virtual millisecond.
func (s *stage) Freeze(_ context.Context, o *proxy.Owner, scope fault.Scope, _ time.Duration) (proxy.Thawer, error) {
	time.Sleep(time.Millisecond)
	if s.refuse != "" {
		return nil, errors.New(s.refuse)
	}
	s.say("froze pid %d, scope %s", o.PID, scope)
	return thawer{s, o.PID}, nil
}

// Forget implements proxy.Hand. It takes a virtual millisecond.
func (s *stage) Forget(_ context.Context, upstream string, db int, key string) (lock.Outcome, error) {
	time.Sleep(time.Millisecond)
	switch s.deeds {
	case lock.Failed:
		return lock.Failed, errors.New("it says NOPERM")
	case lock.Unknown:
		return lock.Unknown, errors.New("it does not answer")
	case "":
		s.deeds = lock.Done
	}
	s.say("DEL %s of database %d of upstream %q: %s", key, db, upstream, s.deeds)
	return s.deeds, nil
}

// Kill implements proxy.Hand. It takes a virtual millisecond, too.
func (s *stage) Kill(_ context.Context, upstream string, backend int32, from netip.AddrPort) (lock.Outcome, error) {
	time.Sleep(time.Millisecond)
	switch s.deeds {
	case lock.Failed:
		return lock.Failed, errors.New("it says no")
	case lock.Unknown:
		return lock.Unknown, errors.New("it was told to end, and has not")
	case lock.NotHeld:
		return lock.NotHeld, nil
	}
	s.say("backend %d of %s ends, whose client is at %s", backend, upstream, from)
	return lock.Done, nil
}

type thawer struct {
	s   *stage
	pid int
}

func (t thawer) Thaw() (string, error) {
	t.s.say("thawed pid %d", t.pid)
	return "", nil
}

type logger struct{ s *stage }

func (l logger) Write(p []byte) (int, error) {
	l.s.say("log: %s", strings.TrimSpace(string(p)))
	return len(p), nil
}

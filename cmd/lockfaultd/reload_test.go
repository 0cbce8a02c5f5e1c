package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/lockfaultd/lockfaultd/admin"
	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// replaceFile puts a file in the place of another at once, as editors do.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// awaitSaid waits until something was said so many times.
func awaitSaid(t *testing.T, said func() string, what string, times int) {
	t.Helper()
	for n := 0; strings.Count(said(), what) < times; n++ {
		if n > 3000 {
			t.Fatalf("%q was not said %d times: %s", what, times, said())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// The rules follow their file, by SIGHUP and by themselves, on a connection that stays; a bad file changes nothing.
func TestRulesFollowTheirFile(t *testing.T) {
	redis := testbed.Redis(t)
	file := filepath.Join(t.TempDir(), "lockfaultd.yaml")
	rule := func(name, key string) string {
		return fmt.Sprintf("  - {name: %s, on: {event: GET, key: %s}, at: before, do: stall, for: 1ms}\n", name, key)
	}
	const head = "version: 1\nrules:\n"
	replaceFile(t, file, head+rule("first", "a")+rule("second", "b"))
	cmd, address, said := sidecar(t, "--admin", "127.0.0.1:0", "--config", file, "--redis", "127.0.0.1:0="+redis.Addr())
	a, c := api{t, adminOf(t, said)}, dialLine(t, address)
	c.say(t, "GET a")
	c.hear(t, "$-1")
	a.ask("POST", "/v1/rules", `{"rule":"--stall-before GET(c)=1ms","name":"mine"}`, 201, nil)
	hangup := func() {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	rules := func(want string) {
		t.Helper()
		for _, key := range []string{"a", "b", "c"} {
			c.say(t, "GET "+key)
			c.hear(t, "$-1")
		}
		var list struct{ Rules []admin.Rule }
		a.ask("GET", "/v1/rules", "", 200, &list)
		var got []string
		for _, r := range list.Rules {
			got = append(got, fmt.Sprintf("%s:%s:%d", r.Name, r.Origin, r.Fired))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s, want %s", s, want)
		}
	}
	rules("first:file:2 second:file:1 mine:api:1")
	replaceFile(t, file, head+rule("third", "b")+rule("first", "a"))
	hangup()
	awaitSaid(t, said, "kept=1 new=1 gone=1", 1)
	rules("third:file:1 first:file:3 mine:api:2")

	for _, bad := range []struct{ text, why string }{
		{head + rule("first", "a") + "  - {name: x, on: {event: GTE}, at: before, do: stall, for: 1ms}\n", file + `:4:27: unknown event \"GTE\", the nearest known one is GET`},
		{head + rule("mine", "a"), file + ":3:5: arm rule --stall-before GET(a)=1ms,name=mine: another rule has the name mine"},
		{"version: 2\n", file + ":1:10: unknown version 2"},
	} {
		replaceFile(t, file, bad.text)
		hangup()
		awaitSaid(t, said, `the rules are as they were" config=`+file+` err="`+bad.why, 1) // or more often: it is looked at as well
	}
	rules("third:file:2 first:file:4 mine:api:3")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	awaitSaid(t, said, "no such file", 1)

	replaceFile(t, file, head+rule("last", "a")+"locks:\n  - {name: new, key: other}\n")
	awaitSaid(t, said, "kept=0 new=1 gone=2", 1)
	rules("last:file:1 mine:api:4")
	hangup()
	awaitSaid(t, said, "kept=1 new=0 gone=0", 1)
	if n := strings.Count(said(), "only rules are read again"); n != 1 || !strings.Contains(said(), "changed=locks") {
		t.Errorf("said %d times what stays as it was: %s", n, said())
	}
	rules("last:file:2 mine:api:5")
	if n := strings.Count(said(), "session began"); n > 1 {
		t.Errorf("%d connections", n)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Without a file to read again, SIGHUP ends the daemon in order.
func TestHangupEndsADaemonWithoutAFile(t *testing.T) {
	redis := testbed.Redis(t)
	cmd, _, _ := sidecar(t, "--redis", "127.0.0.1:0="+redis.Addr())
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A daemon with a file, too, ends with the terminal that it was started from.
func TestATerminalsHangupEndsIt(t *testing.T) {
	redis := testbed.Redis(t)
	file := filepath.Join(t.TempDir(), "lockfaultd.yaml")
	replaceFile(t, file, "version: 1\n")
	terminal, end := openTerminal(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config", file, "--redis", "127.0.0.1:0="+redis.Addr())
	cmd.Args[0] = "lockfaultd"
	cmd.Stdin, cmd.Stderr = end, end
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	end.Close()
	words := bufio.NewReader(terminal)
	await := func(what string) {
		t.Helper()
		for {
			said, err := words.ReadString('\n')
			if err != nil {
				t.Fatalf("%q is not said: %v", what, err)
			}
			if strings.Contains(said, what) {
				return
			}
		}
	}
	await("no rule is armed")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	await("the file was read again")
	terminal.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// openTerminal makes a pair of a terminal's two ends.
func openTerminal(t *testing.T) (terminal, end *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	var n uint32
	err = errOf(terminal, func(fd int) (err error) {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		n, err = unix.IoctlGetUint32(fd, unix.TIOCGPTN)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	end, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return terminal, end
}

func errOf(f *os.File, do func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	if err := c.Control(func(fd uintptr) { done = do(int(fd)) }); err != nil {
		return err
	}
	return done
}

// A load is what clients do on connections that they never open anew.
type load struct {
	done   atomic.Int64
	failed chan error
	wait   sync.WaitGroup
	stop   chan struct{}
}

// goOn repeats what one client does until the load stops, or that fails.
func (l *load) goOn(once func(i int) error) {
	l.wait.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-l.stop:
				return
			default:
			}
			if err := once(i); err != nil {
				l.failed <- err
				return
			}
			l.done.Add(1)
		}
	})
}

func typing(address string, client int) (func(i int) error, func(), error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReader(c)
	return func(i int) error {
		if _, err := fmt.Fprintf(c, "SET reload:%d token NX PX 60000\r\nDEL reload:%d\r\n", client, client); err != nil {
			return err
		}
		for _, want := range []string{"+OK\r\n", ":1\r\n"} {
			if got, err := in.ReadString('\n'); err != nil || got != want {
				return fmt.Errorf("redis client %d, round %d: %q, %w", client, i, got, err)
			}
		}
		return nil
	}, func() { c.Close() }, nil
}

func querying(ctx context.Context, url, address string) (func(i int) error, func(), error) {
	conf, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, err
	}
	conf.Host, conf.Fallbacks = host, nil
	if _, err := fmt.Sscan(port, &conf.Port); err != nil {
		return nil, nil, err
	}
	c, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		return nil, nil, err
	}
	return func(i int) error {
		var got int
		if err := c.QueryRow(ctx, "SELECT value + $1 FROM reloaded WHERE id = 1", i).Scan(&got); err != nil || got != i+7 {
			return fmt.Errorf("postgres round %d: %d, %w", i, got, err)
		}
		_, err := c.Exec(ctx, "UPDATE reloaded SET other = $1 WHERE id = 1", i)
		return err
	}, func() { _ = c.Close(context.Background()) }, nil
}

// However often the rules change, whatever they do, no connection is lost and no answer is another.
func TestManyReloadsDropNoConnection(t *testing.T) {
	times := 1000
	if testing.Short() {
		times = 60
	}
	redis, postgres := testbed.Redis(t), testbed.Postgres(t)
	setUp, err := pgx.Connect(t.Context(), postgres.URL())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := setUp.Exec(t.Context(), "CREATE TABLE reloaded (id int PRIMARY KEY, value int, other int); INSERT INTO reloaded VALUES (1, 7, 0)"); err != nil {
		t.Fatal(err)
	}
	setUp.Close(t.Context())
	var list []endpoint
	for _, p := range []config.Proxy{{Name: "redis", Protocol: lock.Redis, Upstream: redis.Addr()}, {Name: "postgres", Protocol: lock.Postgres, Upstream: postgres.Addr()}} {
		p.Listen = "127.0.0.1:0"
		e, err := listen(p)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	d, err := newDaemon(&setup{seed: 1, reloads: true, config: &config.Config{}}, upstreams(list), "", proxy.Wait, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	d.accept(list)
	l := &load{failed: make(chan error, 16), stop: make(chan struct{})}
	for i := range 8 {
		client := func() (func(i int) error, func(), error) { return typing(list[0].address(), i) }
		if i >= 6 {
			client = func() (func(i int) error, func(), error) {
				return querying(t.Context(), postgres.URL(), list[1].address())
			}
		}
		once, end, err := client()
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		l.goOn(once)
	}
	file := filepath.Join(t.TempDir(), "lockfaultd.yaml")
	r := newReloader(d, file, nil)
	for i := range times {
		replaceFile(t, file, ruleSets[i%len(ruleSets)])
		r.reload()
		select {
		case err := <-l.failed:
			t.Fatalf("at reload %d: %v", i, err)
		case <-time.After(time.Millisecond):
		}
	}
	close(l.stop)
	l.wait.Wait()
	select {
	case err := <-l.failed:
		t.Fatal(err)
	default:
	}
	fired := 0
	for _, u := range d.engine.Uses() {
		fired += u.Fired
	}
	if n := d.server.Sessions(); n != 8 || d.server.Desyncs() != 0 {
		t.Errorf("%d sessions, %d not followed to the end", n, d.server.Desyncs())
	}
	t.Logf("%d reloads, %d rounds of 8 clients, %d injections by the last rules", times, l.done.Load(), fired)
	if err := d.close(); err != nil {
		t.Error(err)
	}
}

// ruleSets hold what the load does in many ways, each for a moment; the third is no good.
var ruleSets = []string{
	`version: 1
rules:
  - {on: {event: acquire}, at: after, do: stall, for: 1ms}
  - {on: {event: SELECT, table: reloaded}, at: before, do: stall, for: 1ms}
  - {on: {event: DEL, key: "reload:1"}, do: hold, for: 1ms}
`, `version: 1
`, `version: 1
rules: [{on: {event: nonsense}}]
`, `version: 1
rules:
  - {on: {event: DEL, key: "reload:1"}, do: hold, for: 1ms}
  - {name: late, on: {event: UPDATE, table: reloaded, every: 3}, at: after, do: stall, for: 2ms, scope: process}
  - {on: {event: "tick(3ms)"}, do: stall, for: 1ms}
`, `version: 1
rules:
  - {on: {event: release, key: "reload:*", probability: 50%}, do: hold-reply, for: 1ms}
  - {name: late, on: {event: UPDATE, table: reloaded, every: 3}, at: after, do: stall, for: 2ms, scope: process}
`,
}

// quiet makes a daemon without proxies.
func quiet(t *testing.T, s *setup) *daemon {
	t.Helper()
	d, err := newDaemon(s, nil, "", proxy.Wait, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// A file that is being written is not read before it has stayed the same from one look to the next.
func TestAFileThatIsWrittenIsLeftAlone(t *testing.T) {
	d := quiet(t, &setup{seed: 1, reloads: true, config: &config.Config{}})
	file := filepath.Join(t.TempDir(), "lockfaultd.yaml")
	r := newReloader(d, file, nil)
	const head = "version: 1\nrules:\n"
	text := head
	for i := range 4 {
		text += fmt.Sprintf("  - {on: {event: GET, key: k%d}, at: before, do: stall, for: 1ms}\n", i)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r.look(); len(d.engine.Rules()) != 0 {
			t.Fatalf("%d rules while the file is written", len(d.engine.Rules()))
		}
	}
	if r.look(); len(d.engine.Rules()) != 4 {
		t.Errorf("%d rules when it was written", len(d.engine.Rules()))
	}
}

// Rules that wait for signals are no good where nothing takes signals.
func TestReloadWantsTheAPIForSignals(t *testing.T) {
	d := quiet(t, &setup{seed: 1, reloads: true, config: &config.Config{}})
	file := filepath.Join(t.TempDir(), "lockfaultd.yaml")
	replaceFile(t, file, "version: 1\nrules:\n  - {on: {event: DEL}, at: before, do: stall, until: ['signal:go']}\n")
	r := newReloader(d, file, nil)
	if _, _, err := r.replace(); err == nil || !strings.Contains(err.Error(), "expected a start with --admin") {
		t.Error(err)
	}
	if n := len(d.engine.Rules()); n != 0 {
		t.Errorf("%d rules", n)
	}
}

// Rules that the API adds are so many at most.
func TestRulesAreBounded(t *testing.T) {
	d := quiet(t, &setup{seed: 1, admin: "127.0.0.1:0", config: &config.Config{}})
	for i := range mostRules + 1 {
		_, err := ruling{d}.Add(admin.NewRule{Text: "--stall-before 'GET(x)=1s'"})
		if (err != nil) != (i == mostRules) || err != nil && !errors.Is(err, admin.ErrConflict) {
			t.Fatalf("rule %d: %v", i, err)
		}
	}
}

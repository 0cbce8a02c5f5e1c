package browser

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// build makes the commands and returns their folder.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	c := exec.Command("go", "build", "-o", dir+"/", "./cmd/...")
	c.Dir = ".."
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return dir
}

// begin starts a daemon, and returns what patterns find in what it says: the first group of each.
func begin(t *testing.T, c *exec.Cmd, patterns ...string) []string {
	t.Helper()
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines, over := make(chan string, 1000), make(chan struct{})
	go func() {
		defer close(over)
		defer close(lines)
		for s := bufio.NewScanner(said); s.Scan(); {
			select {
			case lines <- s.Text():
			default: // nobody reads what it says later
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		<-over
		if err := c.Wait(); err != nil {
			t.Errorf("%s: %v", c.Path, err)
		}
	})
	found, all, late := make([]string, len(patterns)), []string{}, time.After(time.Minute)
	for slices.Contains(found, "") {
		select {
		case <-late:
			t.Fatalf("it does not say what was waited for:\n%s", strings.Join(all, "\n"))
		case line, more := <-lines:
			if !more {
				t.Fatalf("it has ended:\n%s", strings.Join(all, "\n"))
			}
			all = append(all, line)
			for i, p := range patterns {
				if m := regexp.MustCompile(p).FindStringSubmatch(line); m != nil {
					found[i] = m[1]
				}
			}
		}
	}
	return found
}

const (
	saysRedis    = `^lockfaultd: redis (\S+) -> `
	saysPostgres = `^lockfaultd: pg (\S+) -> `
	saysAdmin    = `^lockfaultd: admin (\S+)$`
	saysProbe    = `^probe: serves (\S+)$`
)

// A locker takes locks at a Redis.
type locker struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, address string) *locker {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &locker{t, conn, bufio.NewReader(conn)}
}

// take asks for a lock; the channel has the answer.
func (l *locker) take(key string) <-chan string {
	l.t.Helper()
	var b strings.Builder
	words := []string{"SET", key, "token", "NX", "PX", "60000"}
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := l.conn.Write([]byte(b.String())); err != nil {
		l.t.Fatal(err)
	}
	answer := make(chan string, 1)
	go func() {
		line, err := l.in.ReadString('\n')
		if err != nil {
			line = err.Error()
		}
		answer <- strings.TrimSpace(line)
	}()
	return answer
}

// A rule that is switched on from the page holds a grant, one that is off does not, and Stop lets go.
func TestLivePageSwitchesARule(t *testing.T) {
	found := begin(t, exec.Command(filepath.Join(build(t), "lockfaultd"), "--redis", "127.0.0.1:0="+testbed.Redis(t).Addr(), "--admin", "127.0.0.1:0",
		"--stall-after", "SETNX=until:signal:go,timeout=90s,name=held"), saysRedis, saysAdmin)
	redis, admin := found[0], found[1]
	l := dial(t, redis)
	b := open(t, wide)
	b.do(chromedp.Navigate(admin))
	const pressed = `document.querySelector('#rules .switch').getAttribute('aria-pressed')`
	b.until(`document.querySelector('#rules .switch')`)
	if got := ask[string](b, focusedRule+` + `+pressed); got != "heldtrue" {
		t.Fatalf("the rule is %q", got)
	}

	b.press("r", " ")
	b.until(pressed + ` == 'false'`)
	if got := <-l.take("lock:free"); got != "+OK" {
		t.Errorf("with the rule off: %s", got)
	}
	b.until(`document.getElementById('locks').textContent.includes('lock:free')`)

	b.press(" ")
	b.until(pressed + ` == 'true'`)
	granted := l.take("lock:held")
	b.until(`document.querySelector('#actors .state.stalled')`)
	b.until(`document.querySelector('#rules .facts').textContent.includes('1 fired')`)
	b.until(`document.querySelector('#picture .m-stall')`)
	b.shot("live-real-stalled")
	select {
	case got := <-granted:
		t.Errorf("the grant was not held: %s", got)
	default:
	}

	b.press("s")
	b.until(`document.activeElement.id == 'stop-no'`)
	b.press(kb.Tab, " ")
	if got := <-granted; got != "+OK" {
		t.Errorf("after Stop: %s", got)
	}
	b.until(pressed + ` == 'false'`)
	b.until(`document.getElementById('sources').textContent.includes('` + redis + ` → ')`)

	if got := <-l.take("<script>window.hurt=1</script><img src=x onerror=window.hurt=1>\x1b[31m"); got != "+OK" {
		t.Errorf("with all stopped: %s", got)
	}
	b.until(`document.getElementById('locks').textContent.includes('<script>window.hurt=1</script>')`)
	if ask[bool](b, `!!window.hurt || document.images.length > 0 || document.scripts.length > 1`) {
		t.Error("a key became markup")
	}
	b.shot("live-real")
}

const focusedRule = `document.querySelector('#rules .name').textContent`

const watching = `version: 1
source: {admin: %s}
postgres: {main: %q}
locks:
  - {name: counter, key: "lock:counter", protects: [{table: counter, fence: fence}]}
invariants:
  - {name: total, kind: acked, query: SELECT value FROM counter WHERE id = 1, lock: counter}
`

// What a fault does to a service without a fence is on probe's page while it goes on.
func TestLivePageOfProbe(t *testing.T) {
	dir := build(t)
	redis, postgres := testbed.Redis(t), testbed.Postgres(t)
	found := begin(t, exec.Command(filepath.Join(dir, "lockfaultd"), "--redis", "127.0.0.1:0="+redis.Addr(), "--postgres", "127.0.0.1:0="+postgres.Addr(), "--admin", "127.0.0.1:0",
		"--lock", "lock:counter=counter.fence", "--freeze-after", "read(counter)#*/20=ttl+300ms,name=late"), saysRedis, saysPostgres, saysAdmin)
	load := exec.Command(filepath.Join(dir, "probe"), "load", "--duration", "6s", "--redis", "redis://"+found[0]+"/0", "--database", strings.Replace(postgres.URL(), postgres.Addr(), found[1], 1))
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = load.Wait() })
	config := filepath.Join(t.TempDir(), "probe.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, watching, found[2], postgres.URL()), 0o666); err != nil {
		t.Fatal(err)
	}
	page := begin(t, exec.Command(filepath.Join(dir, "probe"), "serve", "--config", config, "--listen", "127.0.0.1:0", "--state", t.TempDir()), saysProbe)[0]

	b := open(t, wide)
	b.do(chromedp.Navigate(page))
	b.until(`document.querySelector('#verdicts .harm .code')`)
	b.until(`[...document.querySelectorAll('#verdicts .harm .code')].some((x) => x.textContent == 'LF104')`)
	b.until(`document.getElementById('word').textContent.includes('of harm')`)
	b.until(`document.getElementById('invariants').textContent.includes('total')`)
	if ask[bool](b, `document.querySelector('#rules-panel').checkVisibility() || document.querySelector('#stop').checkVisibility() || document.querySelector('#actors-panel').checkVisibility()`) {
		t.Error("probe has no rules to switch")
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#verdicts .harm details').open = true, undefined`))
	b.shot("live-real-probe")
}

package browser

import (
	"bufio"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// daemon starts lockfaultd, and returns where its proxy of Redis and its admin API are.
func daemon(t *testing.T, flags ...string) (redis, admin string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "lockfaultd")
	build := exec.Command("go", "build", "-o", program, "./cmd/lockfaultd")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	upstream := testbed.Redis(t).Addr()
	c := exec.Command(program, append([]string{"--redis", "127.0.0.1:0=" + upstream, "--admin", "127.0.0.1:0"}, flags...)...)
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines, over := make(chan string, 100), make(chan struct{})
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
			t.Errorf("lockfaultd: %v", err)
		}
	})
	var all []string
	for line := range lines {
		all = append(all, line)
		if m := regexp.MustCompile(`^lockfaultd: redis (\S+) -> `).FindStringSubmatch(line); m != nil {
			redis = m[1]
		}
		if m := regexp.MustCompile(`^lockfaultd: admin (\S+)$`).FindStringSubmatch(line); m != nil {
			return redis, m[1]
		}
	}
	t.Fatalf("lockfaultd has ended:\n%s", strings.Join(all, "\n"))
	return "", ""
}

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
	redis, admin := daemon(t, "--stall-after", "SETNX=until:signal:go,timeout=90s,name=held")
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

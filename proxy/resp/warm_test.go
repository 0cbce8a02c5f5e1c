package resp

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// locking is a program that uses a lock in all ways that redis-py has.
const locking = `
import asyncio, sys
import redis, redis.asyncio

where, token = sys.argv[1], sys.argv[2]

client = redis.Redis(unix_socket_path=where, client_name="sync")
lock = client.lock("lock:sync", timeout=60)
assert lock.acquire(token=token)
lock.extend(30)
lock.extend(90, replace_ttl=True)
lock.reacquire()
lock.release()

async def main():
    client = redis.asyncio.Redis(unix_socket_path=where, client_name="async")
    lock = client.lock("lock:async", timeout=60)
    assert await lock.acquire(token=token)
    await lock.extend(30)
    await lock.extend(90, replace_ttl=True)
    await lock.reacquire()
    await lock.release()
    await client.close()

asyncio.run(main())
`

// A relay passes connections on to a server, through a tracker for each.
type relay struct {
	opt    Options
	server string
	wg     sync.WaitGroup

	mu  sync.Mutex // of all trackers: their calls are serialised by it
	ops []string   // in order of the replies
	bad []string
}

func (r *relay) serve(l net.Listener) {
	defer r.wg.Done()
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.server)
		if err != nil {
			client.Close()
			continue
		}
		tr := NewTracker(r.opt)
		r.wg.Go(func() { r.copy(server, client, tr.Client) })
		r.wg.Go(func() { r.copy(client, server, tr.Upstream) })
	}
}

func (r *relay) copy(to, from net.Conn, scan func([]byte, []wire.Mark) ([]wire.Mark, int64)) {
	defer to.Close()
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		r.scan(scan, buf[:n])
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (r *relay) scan(scan func([]byte, []wire.Mark) ([]wire.Mark, int64), chunk []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	marks, _ := scan(chunk, nil)
	for _, m := range marks {
		switch m.Kind {
		case wire.Reply:
			r.ops = append(r.ops, describe(m.Op))
		case wire.Blind:
			r.bad = append(r.bad, m.Reason)
		}
	}
}

// run has the program talk to the server through a relay that has seen
// nothing before, and returns the ops.
func run(t *testing.T, python, server, token string) []string {
	t.Helper()
	socket := t.TempDir() + "/relay"
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{opt: testOptions(), server: server}
	r.wg.Add(1)
	go r.serve(l)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "-c", locking, socket, token).CombinedOutput()
	l.Close()
	r.wg.Wait()
	if err != nil || len(r.bad) > 0 {
		t.Fatalf("%v, blind %q\n%s", err, r.bad, out)
	}
	return r.ops
}

// The second run is what a daemon sees that was started after its server: the
// library finds its scripts there and never sends them.
func TestRedisPyOnAWarmServer(t *testing.T) {
	const python = "/usr/bin/python3"
	if out, err := exec.Command(python, "-c", "import redis.asyncio").CombinedOutput(); err != nil {
		lacks(t, "%s has no redis with asyncio: %v\n%s", python, err, out)
	}
	server := dialServer(t).RemoteAddr().String()
	const first, second = "5d2c1f0aec1811f1941302fc00000001", "7b1e9d44ec1811f1941302fc00000002"
	cold, warm := run(t, python, server, first), run(t, python, server, second)
	checkOps(t, "cold", cold, append(oneRun("sync", first, learnt), oneRun("async", first, known)...))
	checkOps(t, "warm", warm, append(oneRun("sync", second, never), oneRun("async", second, never)...))
}

// What a tracker knows of the scripts.
type knowledge int

const (
	never  knowledge = iota // nothing, and the server has them
	learnt                  // nothing at first, and the server neither
	known                   // their text
)

// oneRun is what the program does with one of its locks. An extension that
// replaces the expiry has a TTL that the text does not tell.
func oneRun(name, token string, k knowledge) []string {
	out := []string{fmt.Sprintf(`SET acquire db0 "lock:%s" nx %s ttl=1m0s granted`, name, tok(token))}
	for _, step := range []struct {
		kind, guessed, read string
		first               bool // call of its script
	}{
		{"renew", "", "", true}, {"renew", " ttl=1m30s", "", false},
		{"renew", " ttl=1m0s", " ttl=1m0s", true}, {"release", "", "", true},
	} {
		guess := fmt.Sprintf(`EVALSHA %s db0 "lock:%s" guarded guessed %s%s`, step.kind, name, tok(token), step.guessed)
		if k == never {
			out = append(out, guess+" done")
			continue
		}
		if k == learnt && step.first {
			out = append(out, guess+" failed err=NOSCRIPT")
		}
		out = append(out, fmt.Sprintf(`EVALSHA %s db0 "lock:%s" guarded %s%s done`, step.kind, name, tok(token), step.read))
	}
	return out
}

func checkOps(t *testing.T, what string, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

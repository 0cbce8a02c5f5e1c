package resp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// dialServer starts a server of the test's own and returns a connection to it.
func dialServer(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", testbed.Redis(t, "--enable-debug-command", "yes").Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// lacks skips the test for what this machine lacks, and fails it in CI.
func lacks(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// converse sends what it is given, and scans replies until the echo that ends
// them, which is a push's size at most behind the last reply.
func converse(t *testing.T, c net.Conn, tr *Tracker, r *rand.Rand, request string) []string {
	t.Helper()
	end := fmt.Sprintf("end-%d", r.Uint64())
	request += cmd("ECHO", end)
	for b := []byte(request); len(b) > 0; {
		n := min(len(b), 1+r.IntN(100))
		tr.Client(b[:n], nil)
		b = b[n:]
	}
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	var got []string
	var all []byte
	buf := make([]byte, 4096)
	for !bytes.HasSuffix(all, []byte(end+"\r\n")) {
		n, err := c.Read(buf[:1+r.IntN(len(buf))])
		if err != nil {
			t.Fatalf("%v after %q", err, all)
		}
		all = append(all, buf[:n]...)
		marks, _ := tr.Upstream(buf[:n], nil)
		for _, m := range marks {
			if m.Kind != wire.Reply {
				t.Fatalf("%s\nrequest %q\nreply %q", kinds(marks), request, all)
			}
			got = append(got, describe(m.Op))
		}
	}
	if tr.told || !tr.queue.empty() {
		t.Fatalf("out of step: request %q\nreply %q", request, all)
	}
	return got
}

func TestAgainstAServer(t *testing.T) {
	c := dialServer(t)
	tr, r := newTracker(), rand.New(rand.NewPCG(1, 1))
	for _, proto := range []string{"2", "3"} {
		converse(t, c, tr, r, words("FLUSHALL")+words("HELLO "+proto)+words("SELECT 0"))
		got := converse(t, c, tr, r, words("SET k tok NX PX 60000")+words("SET k other NX PX 60000")+
			words("SELECT 1")+"setnx k \"tok\"\r\n"+words("SELECT 99")+words("SETNX k tok")+
			cmd("EVAL", compareAndExpire, "1", "k", "tok", "60000")+cmd("EVAL", compareAndDelete, "1", "k", "other")+
			cmd("EVAL", compareAndDelete, "1", "k", "tok")+cmd("EVALSHA", sha(compareAndDelete), "1", "k", "tok")+
			cmd("EVAL", acquireWithFence, "2", "l", "f", "tok", "60000")+cmd("EVAL", acquireWithFence, "2", "l", "f", "tok", "60000")+
			words("MULTI")+words("GET l")+words("INCR f")+words("INCR l")+words("DEL l m")+words("EXEC"))
		want := []string{
			`SET acquire db0 "k" nx T ttl=1m0s granted`, `SET acquire db0 "k" nx O ttl=1m0s refused`,
			`SETNX acquire db1 "k" nx T granted`, `SETNX acquire db1 "k" nx T refused`,
			`EVAL renew db1 "k" guarded T ttl=1m0s done`, `EVAL release db1 "k" guarded O not-held`,
			`EVAL release db1 "k" guarded T done`, `EVALSHA release db1 "k" guarded T not-held`,
			`EVAL acquire db1 "l" nx T ttl=1m0s fencekey=f fence=1 granted`, `EVAL acquire db1 "l" nx T ttl=1m0s fencekey=f refused`,
			`INCR fence db1 "f" fencekey=f fence=2 done`, `INCR fence db1 "l" fencekey=l failed err=ERR`,
			`DEL release db1 "l" unknown`, `DEL release db1 "m" unknown`,
		}
		for i := range want {
			want[i] = strings.NewReplacer(" T", " "+tok("tok"), " O", " "+tok("other")).Replace(want[i])
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("RESP%s: got\n%s\nwant\n%s", proto, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// Whatever is asked, the replies of a real server stay in step.
func TestStaysInStepWithAServer(t *testing.T) {
	c := dialServer(t)
	tr, r := newTracker("GET", "HGETALL", "EXEC"), rand.New(rand.NewPCG(2, 2))
	pool := []string{
		"\r\n", "*0\r\n", "*-1\r\n", "PING\r\n", "  \n", words("GET a"), words("SET a 1"), words("SETNX a 1"), words("SET a b NX PX 100"),
		words("DEL a b c"), words("INCR a"), words("INCR h"), words("HSET h x y"), words("HGETALL h"), words("MULTI"), words("MULTI"),
		words("EXEC"), words("EXEC"), words("DISCARD"), words("WATCH a"), words("HELLO 3"), words("HELLO 2"), words("HELLO 9"),
		words("RESET"), words("SELECT 1"), words("SELECT 99"), words("SELECT x"), words("NOSUCH"), words("GET"), words("EXPIRE a 0"),
		words("DEBUG PROTOCOL attrib"), words("DEBUG PROTOCOL map"), words("DEBUG PROTOCOL set"), words("DEBUG PROTOCOL push"),
		words("DEBUG PROTOCOL verbatim"), words("DEBUG PROTOCOL bignum"), words("DEBUG PROTOCOL null"), words("DEBUG PROTOCOL double"),
		words("CLIENT SETNAME n"), words("CLIENT TRACKING ON"), words("CLIENT REPLY ON"), words("COMMAND DOCS GET"), words("KEYS *"),
		cmd("EVAL", compareAndDelete, "1", "a", "b"), cmd("EVAL", "return {1, {2, {false, 'x'}}, redis.call('GET', 'a')}", "0"), cmd("EVAL", "return", "0"),
		cmd("EVALSHA", sha("x"), "1", "a"), words("SCRIPT FLUSH"), cmd("", "a"), cmd("SET", "a", strings.Repeat("v", 20000), "EX", "9"), words("LRANGE h 0 1"),
	}
	for range 200 {
		var b strings.Builder
		for range 1 + r.IntN(40) {
			b.WriteString(pool[r.IntN(len(pool))])
		}
		b.WriteString(words("DISCARD")) // an ECHO that is queued would not end it
		converse(t, c, tr, r, b.String())
	}
	if tr.waiting != 0 || tr.asking != 0 || len(tr.tx.items) != 0 {
		t.Errorf("%d waiting, %d asking, %d queued", tr.waiting, tr.asking, len(tr.tx.items))
	}
}

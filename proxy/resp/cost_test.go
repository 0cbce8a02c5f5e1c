package resp

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

func TestPlainTrafficAllocatesNothing(t *testing.T) {
	requests := map[string][2]string{
		"GET":          {words("GET key:1"), "$5\r\nvalue\r\n"},
		"SET":          {words("SET key:1 value"), "+OK\r\n"},
		"SET KEEPTTL":  {words("SET key:1 value KEEPTTL"), "+OK\r\n"},
		"HSET":         {words("HSET h f v g w"), ":2\r\n"},
		"inline":       {"GET key\r\n", "$-1\r\n"},
		"MGET":         {words("MGET a b c d"), "*4\r\n$-1\r\n$1\r\na\r\n$-1\r\n$-1\r\n"},
		"HGETALL":      {words("HGETALL h"), "%1\r\n$1\r\na\r\n$1\r\nb\r\n"},
		"push":         {words("GET a"), ">2\r\n$10\r\ninvalidate\r\n_\r\n$1\r\nx\r\n"},
		"SELECT":       {words("SELECT 1"), "+OK\r\n"},
		"transaction":  {words("MULTI") + words("HSET h f v") + words("EXEC"), "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n"},
		"unknown sha":  {cmd("EVALSHA", sha("x"), "1", "k"), ":1\r\n"},
		"sha, 2 keys":  {cmd("EVALSHA", sha("x"), "2", "k", "l", "ce8e6618ec1711f1"), ":1\r\n"},
		"sha, 4 args":  {cmd("EVALSHA", sha("x"), "1", "k", "ce8e6618ec1711f1", "1", "2", "3"), ":1\r\n"},
		"sha, limiter": {cmd("EVALSHA", sha("x"), "1", "k", "1700000000.25", "60", "1"), ":1\r\n"},
		"sha, text":    {cmd("EVALSHA", sha("x"), "1", "k", "ce8e6618ec1711f1", "text"), ":1\r\n"},
		"inline sha":   {"EVALSHA " + sha("x") + " 1 k ce8e6618ec1711f1 text\r\n", ":1\r\n"},
		"plain script": {cmd("EVAL", "return redis.call('GET', KEYS[1])", "1", "k"), "$-1\r\n"},
		"GETSET":       {words("GETSET key:1 value"), "$-1\r\n"},
		"GETEX":        {words("GETEX key:1"), "$-1\r\n"},
		"SADD":         {words("SADD s a b"), ":2\r\n"},
		"SREM":         {words("SREM s a"), ":1\r\n"},
		"HDEL":         {words("HDEL h f"), ":1\r\n"},
		"ZADD":         {words("ZADD z 1 a"), ":1\r\n"},
		"FCALL":        {words("FCALL f 1 k x"), ":1\r\n"},
		"WATCH":        {words("WATCH a b") + words("GET c") + words("UNWATCH"), "+OK\r\n$-1\r\n+OK\r\n"},
		"large GETSET": {cmd("GETSET", "k", strings.Repeat("x", 1<<20)), "$-1\r\n"},
		"large value":  {cmd("HSET", "h", "f", strings.Repeat("x", 1<<20)), ":1\r\n"},
	}
	for name, r := range requests {
		t.Run(name, func(t *testing.T) {
			tr := newTracker("NOTHING")
			tr.opt.Scripts.keys.add(0, "key:2") // some key is a lock's
			request, reply := bytes.Repeat([]byte(r[0]), 4), bytes.Repeat([]byte(r[1]), 4)
			marks := make([]wire.Mark, 0, 8)
			run := func() {
				for _, b := range [][]byte{request, request} { // a pipeline, so that the queue has a length
					tr.Client(b[:len(b)/2], marks)
					tr.Client(b[len(b)/2:], marks)
				}
				for _, b := range [][]byte{reply, reply} {
					tr.Upstream(b, marks)
				}
			}
			run()
			if n := testing.AllocsPerRun(50, run); n > 0 {
				t.Errorf("%.1f allocations", n)
			}
			if !tr.queue.empty() || tr.told {
				t.Errorf("it was not followed to its end")
			}
		})
	}
}

// A rule that names a verb costs its traffic nothing, hopped over or not.
func TestKeysThatNoRuleMatchesCostNothing(t *testing.T) {
	o := testOptions("GET", "XREAD")
	o.Could = func(verb string) func([]byte) bool { return func(key []byte) bool { return string(key) == verb } }
	tr := NewTracker(o)
	request, reply := []byte(words("GET a")+words("XREAD STREAMS a 0")+"GET a\r\n"), []byte("$-1\r\n*-1\r\n$-1\r\n")
	run := func() {
		tr.Client(request, nil)
		tr.Client(request[:10], nil)
		tr.Client(request[10:], nil)
		tr.Upstream(reply, nil)
		tr.Upstream(reply, nil)
	}
	run()
	if n := testing.AllocsPerRun(50, run); n > 0 || tr.told || !tr.queue.empty() {
		t.Errorf("%.1f allocations", n)
	}
}

// What is of interest only where it is short is not withheld where it is long.
func TestLongArgumentsAreNotWithheld(t *testing.T) {
	for _, request := range []string{"GETSET k ", "SADD k ", "HDEL h ", "ZADD k NX 1 "} {
		tr := newTracker()
		tr.opt.Scripts.keys.add(0, "h")
		b := []byte(cmd(append(strings.Fields(request), strings.Repeat("x", 100_000))...))
		marks, clear := tr.Client(b[:50_000], nil)
		if clear != 50_000 || len(marks) > 0 {
			t.Errorf("%s: %d bytes are clear", request, clear)
		}
		marks, _ = tr.Client(b[50_000:], marks)
		if len(marks) > 0 || tr.queue.behind != 1 {
			t.Errorf("%s: %s", request, kinds(marks))
		}
	}
}

// A peer's lengths cost nothing until the bytes come.
func TestHostileLengthsCostNothing(t *testing.T) {
	for _, request := range []string{
		"*2147483647\r\n$3\r\nDEL\r\n", "*3\r\n$3\r\nSET\r\n$536870912\r\n", "*1\r\n$536870912\r\n",
		"*2147483647\r\n$4\r\nEVAL\r\n$536870912\r\n",
	} {
		checkGrowth(t, request, func(tr *Tracker) { tr.Client([]byte(request), nil) })
	}
	for _, reply := range []string{"*2147483647\r\n", "$536870912\r\n", "%2147483647\r\n", strings.Repeat("*2147483647\r\n", maxDepth)} {
		checkGrowth(t, reply, func(tr *Tracker) {
			tr.Client([]byte(nx), nil)
			tr.Upstream([]byte(reply), nil)
		})
	}
}

func checkGrowth(t *testing.T, what string, run func(*Tracker)) {
	t.Helper()
	tr := newTracker()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run(tr)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
		t.Errorf("%.40q: %d bytes", what, n)
	}
}

// What is kept of a request is bounded, whatever its size.
func TestKeptArgumentsAreBounded(t *testing.T) {
	tr := newTracker()
	tr.Client([]byte("*100001\r\n$3\r\nDEL\r\n"), nil)
	arg := []byte("$1000\r\n" + strings.Repeat("x", 1000) + "\r\n")
	marks, fed := 0, int64(len("*100001\r\n$3\r\nDEL\r\n"))
	for range 100000 {
		m, clear := tr.Client(arg, nil)
		marks += len(m)
		if fed += int64(len(arg)); fed-clear > wire.MaxHeld {
			t.Fatalf("%d bytes withheld", fed-clear)
		}
	}
	if len(tr.req.buf) > maxKept || len(tr.req.args) > maxArgs || marks == 0 || marks > maxKept/1000 {
		t.Errorf("%d bytes, %d arguments, %d marks", len(tr.req.buf), len(tr.req.args), marks)
	}
}

func benchmark(b *testing.B, request, reply string) {
	const pipeline = 16
	requests, replies := []byte(strings.Repeat(request, pipeline)), []byte(strings.Repeat(reply, pipeline))
	tr := newTracker()
	marks := make([]wire.Mark, 0, 64)
	b.SetBytes(int64(len(request) + len(reply)))
	b.ReportAllocs()
	for b.Loop() {
		tr.Client(requests, marks)
		tr.Upstream(replies, marks)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pipeline), "ns/command")
}

func BenchmarkGet(b *testing.B) {
	benchmark(b, words("GET key:000000000001"), "$3\r\nxxx\r\n")
}

func BenchmarkSet(b *testing.B) { benchmark(b, words("SET key:000000000001 xxx"), "+OK\r\n") }

func BenchmarkSetLarge(b *testing.B) {
	benchmark(b, cmd("SET", "k", strings.Repeat("x", 4096)), "+OK\r\n")
}

func BenchmarkAcquire(b *testing.B) {
	benchmark(b, words("SET lock:counter 0123456789abcdef PX 500 NX"), "+OK\r\n")
}

func BenchmarkRelease(b *testing.B) {
	benchmark(b, cmd("EVAL", compareAndDelete, "1", "lock:counter", "0123456789abcdef"), ":1\r\n")
}

// An element of a large reply, and an argument of a large request.
func BenchmarkManyElements(b *testing.B) {
	reply := []byte("*1000\r\n" + strings.Repeat("$3\r\nabc\r\n", 1000))
	request := []byte(cmd(append([]string{"MGET"}, strings.Fields(strings.Repeat("key ", 1000))...)...))
	tr := newTracker()
	for b.Loop() {
		tr.Client(request, nil)
		tr.Upstream(reply, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*1000), "ns/element")
}

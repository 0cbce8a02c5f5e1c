package resp

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// opBytes is what an entry that waits, or an op of one, takes at most beside the
// bytes that came for it.
const opBytes = 512

// held is what a tracker holds beside itself, the ops that wait among it.
func held(tr *Tracker) int64 {
	n := int64(cap(tr.req.buf)) + int64(cap(tr.req.args))*int64(unsafe.Sizeof(argument{})) + int64(cap(tr.rep.levels))*int64(unsafe.Sizeof(level{}))
	for b := tr.queue.first; b != nil; b = b.next {
		n += int64(unsafe.Sizeof(block{}))
		for i := range b.entries {
			n += heldBy(&b.entries[i])
		}
	}
	n += int64(cap(tr.tx.items)) * int64(unsafe.Sizeof(queued{}))
	for i := range tr.tx.items {
		n += heldBy(&tr.tx.items[i].entry)
	}
	for name := range tr.memos {
		n += int64(2*unsafe.Sizeof(memo{})) + int64(len(name))
	}
	return n + int64(len(tr.ClientName()))
}

func heldBy(e *entry) int64 {
	if e.more == nil {
		return 0
	}
	n := int64(unsafe.Sizeof(detail{}))
	if a := e.more.ask; a != nil {
		n = int64(unsafe.Sizeof(*a)) + int64(cap(a.ops))*int64(unsafe.Sizeof(a.one[0]))
		for _, op := range a.ops {
			n += int64(unsafe.Sizeof(*op)) + int64(len(op.Key)+len(op.FenceKey)+len(op.Token.Hash))
		}
		if c := a.call; c != nil {
			n += int64(unsafe.Sizeof(*c)) + int64(len(c.Script)+c.size)
		}
	}
	if e.more.sums != nil {
		n += int64(unsafe.Sizeof(*e.more.sums)) + int64(cap(*e.more.sums))*4
	}
	if e.more.name != nil {
		n += int64(unsafe.Sizeof(*e.more.name)) + int64(len(*e.more.name))
	}
	return n
}

func checkHeld(t testing.TB, tr *Tracker, received int64) {
	if n := held(tr); n > 4*received+64<<10+opBytes*int64(tr.waiting) {
		t.Fatalf("%d bytes held of %d received, with %d that wait", n, received, tr.waiting)
	}
	if tr.waiting > maxPending+maxArgs {
		t.Fatalf("%d wait", tr.waiting)
	}
}

func TestHeldMemoryIsBounded(t *testing.T) {
	for name, unit := range map[string]string{
		"EXEC": "EXEC\n", "SELECT": "SELECT 1\n", "SELECT far": "SELECT 70000\n", "UNSUBSCRIBE": "UNSUBSCRIBE\n", "SUBSCRIBE": words("SUBSCRIBE a"), "CLIENT SETNAME": "CLIENT SETNAME a\n",
		"skip": "CLIENT REPLY SKIP\n\n", "AUTH": "PING\nAUTH x\n", "HELLO": "HELLO 3 SETNAME a\n", "after AUTH": "A\n", "many channels": cmd(manyChannels(1000)...), "arguments": "*3\r\n$3\r\nDEL\r\n$0\r\n\r\n$0\r\n\r\n",
		"SETNX": "SETNX k v\n", "DEL": "DEL k\n", "DEL of many": "DEL" + strings.Repeat(" k", 1000) + "\n", "a script's": "EVALSHA " + strings.Repeat("a", 40) + " 1 k 12345678\n",
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker()
			received, times := int64(0), min(20000, 1<<20/len(unit))
			if name == "after AUTH" {
				tr.Client([]byte("PING\nAUTH x\n"), nil)
			}
			for range times {
				tr.Client([]byte(unit), nil)
				received += int64(len(unit))
			}
			checkHeld(t, tr, received)
			tr = newTracker()
			tr.Client([]byte("MULTI\n"), nil)
			tr.Upstream([]byte("+OK\r\n"), nil)
			for range times {
				tr.Client([]byte(unit), nil)
				tr.Upstream([]byte("+QUEUED\r\n"), nil)
			}
			checkHeld(t, tr, tr.req.pos+tr.rep.pos)
		})
	}
	tr := newTracker("GET")
	for i := range 2 * maxMemos { // of names that no server knows, and some as long as they may be
		name := []byte(fmt.Sprintf("%d%s", i, strings.Repeat("x", 16000)))
		tr.Client(append(name, "\r\n"...), nil)
		tr.Client(append(name[:maxName:maxName], "\r\n"...), nil)
		tr.Upstream([]byte("-ERR x\r\n-ERR x\r\n"), nil)
	}
	checkHeld(t, tr, 0)
	tr = newTracker()
	tr.Client([]byte("*1000000\r\n$9\r\nSUBSCRIBE\r\n"+strings.Repeat("$0\r\n\r\n", 999_999)), nil)
	checkHeld(t, tr, tr.req.pos)
}

// What an idle connection keeps, after a handshake and after frames that needed
// much.
func TestIdleMemory(t *testing.T) {
	const handshake = "HELLO 3 AUTH u p SETNAME a-client\r\nCLIENT SETINFO LIB-NAME x\r\nCLIENT SETINFO LIB-VER 1\r\nSELECT 1\r\nPING\r\n"
	const replies = "%1\r\n+proto\r\n:3\r\n+OK\r\n+OK\r\n+OK\r\n+PONG\r\n"
	deep := strings.Repeat("*1\r\n", 100) + ":1\r\n"
	large := cmd("EVAL", strings.Repeat("x", 16000), "1", "k") + cmd(append([]string{"DEL"}, strings.Fields(strings.Repeat("k ", 900))...)...)
	for name, s := range map[string][2]string{"handshake": {handshake, replies}, "large": {handshake + large + strings.Repeat(nx, 200), replies + deep + ":1\r\n" + strings.Repeat(":1\r\n", 200)}} {
		t.Run(name, func(t *testing.T) {
			opt := testOptions()
			const n = 1000
			trackers := make([]*Tracker, n)
			marks := make([]wire.Mark, 0, 4096)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for i := range trackers {
				tr := NewTracker(opt)
				tr.Client([]byte(s[0]), marks)
				tr.Upstream([]byte(s[1]), marks)
				trackers[i] = tr
			}
			clear(marks[:cap(marks)])
			runtime.GC()
			runtime.ReadMemStats(&after)
			each, limit := int64(after.HeapAlloc-before.HeapAlloc)/n, int64(1536)
			if name == "large" {
				limit = 3584
			}
			if each > limit || trackers[0].told || !trackers[0].queue.empty() {
				t.Errorf("%d bytes each, want at most %d; told %v", each, limit, trackers[0].told)
			}
			t.Log(fmt.Sprint(each, " bytes each; the tracker itself ", unsafe.Sizeof(Tracker{})))
		})
	}
}

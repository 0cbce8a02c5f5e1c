package pgwire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// size returns what the queue's blocks take.
func (q *queue) size() int {
	n := 0
	for b := q.oldest; b != nil; b = b.next {
		n++
	}
	if q.spare != nil {
		n++
	}
	return n * int(unsafe.Sizeof(block{}))
}

// check holds the queue's sums and links to what its entries say.
func (q *queue) check(t *testing.T) {
	t.Helper()
	requests, weight, at := 0, 0, []*asked(nil)
	have := map[*detail]int32{}
	for a := range q.recent(q.entries) {
		requests++
		if a.typ == 'S' {
			requests += int(a.n)
		}
		if a.more != nil {
			if have[a.more]++; have[a.more] == 1 {
				weight += int(a.more.weight)
			}
		}
		at = append(at, a)
	}
	if requests != q.length || weight != q.weight || len(at) != q.entries {
		t.Fatalf("%d requests of weight %d in %d entries, counted %d, %d, %d", q.length, q.weight, q.entries, requests, weight, len(at))
	}
	for d, n := range have {
		if d.shared != n {
			t.Fatalf("%d requests share a detail, counted %d", d.shared, n)
		}
	}
	for i, a := range at {
		if q.last(i) != a {
			t.Fatalf("the newest but %d is another one backward", i)
		}
	}
	if ahead := slices.Collect(q.ahead(q.entries)); !slices.Equal(ahead, at) {
		t.Fatal("the order is another one from the front")
	}
	if len(at) > 0 && at[len(at)-1] != q.first() || len(at) == 0 && q.first() != nil {
		t.Fatal("the first is not the oldest")
	}
	used := 0
	for b := q.oldest; b != nil; b = b.next {
		if b.next != nil && b.next.prev != b {
			t.Fatal("a block is not where it came from")
		}
		for _, a := range b.entries {
			if a != (asked{}) {
				used++
			}
		}
	}
	if q.spare != nil && *q.spare != (block{}) || used > q.entries {
		t.Fatalf("%d places are used for %d entries, or the spare block is", used, q.entries)
	}
}

// The queue does what a slice of single requests does.
func TestQueueIsAQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var q queue
	var want []asked
	for step := range 100_000 {
		grows := step/200%3 < 2
		switch n := rng.IntN(10); {
		case n < 6 && grows:
			a := asked{typ: "SSSQDE"[rng.IntN(6)]}
			switch a.typ {
			case 'Q':
				a.more = &detail{weight: rng.Int32N(3)}
			case 'D':
				a.more = &detail{weight: 1}
				if n := len(want); n > 0 && want[n-1].more != nil {
					a.more = want[n-1].more
				}
			}
			q.push(a)
			want = append(want, a)
		case n < 8 && len(want) > 0:
			q.pop()
			want = want[1:]
		case n == 9:
			marked := false
			if s := q.last(0); s != nil && s.typ == 'S' && !s.has(seen) {
				s.is, marked = seen, true
			}
			for i := len(want) - 1; marked && i >= 0 && want[i].typ == 'S' && !want[i].has(seen); i-- {
				want[i].is = seen
			}
		}
		if q.len() != len(want) {
			t.Fatalf("%d requests, want %d", q.len(), len(want))
		}
		if a := q.first(); a != nil && (a.typ != want[0].typ || a.is != want[0].is || a.more != want[0].more) || a == nil && len(want) > 0 {
			t.Fatalf("the first is %+v of %d", a, len(want))
		}
		if step%50 == 0 {
			q.check(t)
			sync := slices.IndexFunc(want, func(a asked) bool { return a.typ == 'S' })
			if s, n := q.next('S'); (s != nil) != (sync >= 0) || s != nil && n != sync {
				t.Fatalf("the next Sync is behind %d, want %d", n, sync)
			}
		}
	}
	for q.len() > 0 {
		q.pop()
	}
	if q.check(t); q.size() > 2*int(unsafe.Sizeof(block{})) {
		t.Errorf("an empty queue keeps %d bytes", q.size())
	}
}

func TestRequestsAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(block{}); size != 256 {
		t.Errorf("a block has %d bytes", size)
	}
	if size := unsafe.Sizeof(asked{}); size > 24 {
		t.Errorf("a request has %d bytes", size)
	}
}

// heap feeds what a client sends to a tracker that gets no answers, and
// returns how much the heap has grown by, and how much was sent.
func heap(t *testing.T, tr *Tracker, times int, msgs func(int) []byte) (grown, sent int64) {
	t.Helper()
	before := tr.client.pos
	var was, is runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&was)
	for i := range times {
		if tr.Client(msgs(i), nil); tr.phase == opaque {
			t.Fatal("the connection is given up")
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&is)
	runtime.KeepAlive(tr)
	return int64(is.HeapAlloc) - int64(was.HeapAlloc), tr.client.pos - before
}

// What is asked without ops weighs no more than four times what was sent.
func TestUnansweredRequestsAreBounded(t *testing.T) {
	const many = 1_000_000
	update := func(i int) []byte { return enc(t, fe{p("", fmt.Sprint("update t set a = ", i))}) }
	for _, tt := range []struct {
		name string
		msgs fe
		each int // requests
		next func(int) []byte
	}{
		{"Sync", fe{syn}, 1, nil},
		{"Describe", fe{dp("")}, 1, nil},
		{"Describe of a statement", fe{ds("x")}, 1, nil},
		{"Execute", fe{e("")}, 1, nil},
		{"empty Query", fe{q("")}, 1, nil},
		{"Close", fe{cs("x")}, 1, nil},
		{"Bind", fe{b("", "")}, 1, nil},
		{"Parse", fe{p("", "")}, 1, nil},
		{"all of them", fe{p("", "select"), b("", ""), dp(""), e(""), syn}, 5, nil},
		{"a SELECT that nobody reads", fe{p("", "select a from t"), b("", ""), dp(""), e("")}, 4, nil},
		{"messages without a body", nil, 7, func(int) []byte {
			return []byte("D\x00\x00\x00\x04E\x00\x00\x00\x04P\x00\x00\x00\x04B\x00\x00\x00\x04C\x00\x00\x00\x04Q\x00\x00\x00\x04F\x00\x00\x00\x04")
		}},
		{"Parses that are never the same", nil, 10, update},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := unread()
			newPlayer(t, tr).play(encode(t, started), 0)
			if msgs := enc(t, tt.msgs); tt.next == nil {
				tt.next = func(int) []byte { return msgs }
			}
			grown, sent := heap(t, tr, many/tt.each, tt.next)
			if size := int64(tr.asked.size()); size > 4*sent || grown > 4*sent+64<<10 || tr.asked.weight > 0 {
				t.Errorf("%d bytes in blocks, %d in all, of %d", size, grown, sent)
			}
		})
	}
}

// What ops and names weigh beside that is counted.
func TestUnansweredOpsAreWeighed(t *testing.T) {
	const values = "1, a = 1, a = 1, a = 1, a = 1, a = 1, a = 1, a = 1, a = 1, a = 1, a = 1, a = 1, a = 1, a = 1, a = 1, a = 1"
	same := func(msgs fe) func(int) []byte { return func(int) []byte { return enc(t, msgs) } }
	wide := b("", "wide")
	for range 200 {
		wide.Parameters = append(wide.Parameters, nil)
	}
	for _, tt := range []struct {
		name string
		msgs func(int) []byte
	}{
		{"Executes", same(fe{b("", "s", "1", "2"), e("")})},
		{"with a Describe", same(fe{b("", "s", "1", "2"), dp(""), e("")})},
		{"of many values", same(fe{b("", "many"), e("")})},
		{"of many parameters", same(fe{wide, e("")})},
		{"Describes of portals", same(fe{wide, dp("")})},
		{"Describes of statements", same(fe{ds("s")})},
		{"Queries", same(fe{q("delete from t")})},
		{"of many statements", same(fe{q("begin; delete from t; select a from t; commit")})},
		{"Queries of many values", same(fe{q("update t set a = " + values)})},
		{"EXECUTE", same(fe{q("execute many; execute many")})},
		{"EXECUTE in a portal", same(fe{b("", "run"), e("")})},
		{"of what a rule names", same(fe{p("", "set x = 1"), b("", ""), e("")})},
		{"savepoints", same(fe{p("", "savepoint x"), b("", ""), e("")})},
		{"names", func(i int) []byte { return enc(t, fe{p(fmt.Sprint("n", i), "select 1"), cs(fmt.Sprint("n", i))}) }},
		{"names that are taken", same(fe{p("s", "select 1")})},
		{"names in SQL", same(fe{q("prepare x as select 1"), q("deallocate all")})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTracker("SET")
			newPlayer(t, tr).play(encode(t, append(started[:2:2],
				fe{p("s", sqlWrite), p("many", "update t set a = "+values), p("wide", "update t set a = $200"), p("run", "execute many"), syn}, be{parsed, parsed, parsed, parsed, z('I')})), 0)
			grown, sent := heap(t, tr, 2000, tt.msgs)
			if weight := int64(tr.asked.weight); weight == 0 || grown > weight<<10+4*sent+64<<10 {
				t.Errorf("%d bytes for %d KiB and %d sent", grown, weight, sent)
			}
		})
	}
}

// pipeline is a stream of many segments that are answered only when all of it
// has been sent, with what a server answers.
type pipeline struct{ client, server []byte }

func (p *pipeline) add(t *testing.T, times int, ask fe, answer be) {
	p.client = append(p.client, bytes.Repeat(enc(t, ask), times)...)
	p.server = append(p.server, bytes.Repeat(encode(t, []any{answer})[0].bytes, times)...)
}

// drive feeds a pipeline and then one more op.
func (p *pipeline) drive(t *testing.T) *player {
	t.Helper()
	pl := newPlayer(t, newTracker()).play(encode(t, started), 0)
	pl.play([]turn{{true, p.client}, {false, p.server}}, 1<<16)
	if n := pl.tracker.asked.len(); n > 0 || pl.tracker.phase != running {
		t.Fatalf("%d requests are left, %s", n, pl.text())
	}
	if n := pl.tracker.asked.size(); n > 512 {
		t.Errorf("an empty queue keeps %d bytes", n)
	}
	pl.play(encode(t, after), 0)
	return pl
}

var (
	askNone  = fe{p("", "select 1"), b("", ""), dp(""), e("")}
	gotNone  = be{parsed, boundOK, rowd("x", 23), data("1"), c("SELECT 1")}
	askWrite = fe{p("s", sqlWrite), syn}
	askWrong = fe{p("", "no sql")}
	askOp    = fe{p("", sqlWrite), b("", "", "8", "1"), e(""), syn}
	gotOp    = be{parsed, boundOK, c("UPDATE 1"), z('I')}
)

const (
	opBefore = `
		ask UPDATE counter write tx1i [PBE]`
	opBehind = `
		ask UPDATE counter write tx2i [PBE]
		got UPDATE done rows=1 [12C]
		end UPDATE done [Z]`
)

// A million requests may wait for their answers.
func TestLongPipeline(t *testing.T) {
	var p pipeline
	p.add(t, 200_000, append(askNone, syn), append(gotNone, z('I')))
	p.add(t, 1, askOp, gotOp)
	if want, got := lines(opBefore+`
		got UPDATE done rows=1 [12C]
		end UPDATE done [Z]`+opBehind), p.drive(t).text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Those behind an error, up to the Sync, are passed over.
func TestLongPipelineThatFailsAtOnce(t *testing.T) {
	var p pipeline
	p.add(t, 1, askWrong, be{bad("42601")})
	p.add(t, 250_000, askNone, nil)
	p.add(t, 1, askOp, be{z('I')})
	p.add(t, 3, fe{syn}, be{z('I')})
	if want, got := lines(opBefore+`
		got UPDATE failed rows=0 err=skipped [Z]
		end UPDATE failed [Z]`+opBehind), p.drive(t).text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Describes that lead up to an op do not look for it each anew.
func TestManyDescribesBeforeAnExecute(t *testing.T) {
	const many = wire.MaxHeld / 8
	var p pipeline
	p.add(t, 1, fe{b("", "s", "1", "1")}, be{boundOK})
	p.add(t, many, fe{dp("")}, be{noData})
	p.add(t, 1, fe{e(""), syn}, be{c("UPDATE 1"), z('I')})
	tr := newTracker()
	newPlayer(t, tr).play(encode(t, append(started[:2:2], askWrite, be{parsed, z('I')})), 0)
	began := time.Now()
	tr.Client(p.client, nil)
	marks, _ := tr.Upstream(p.server, nil)
	if took := time.Since(began); took > 5*time.Second || len(marks) != 2 || marks[0].Kind != wire.Reply || marks[0].Start == marks[0].End {
		t.Errorf("took %v, %+v", took, marks)
	}
}

// A Describe may have the detail of an Execute, and is none.
func TestDescribeIsNoExecute(t *testing.T) {
	p := portal{doing: doing{op: &lock.Op{}}}
	p.run, p.detail.change = &p, &change{}
	d, e := asked{typ: 'D', more: &p.detail}, asked{typ: 'E', more: &p.detail}
	if d.run() != nil || d.change() != nil || e.run() != &p || e.change() != p.detail.change {
		t.Errorf("it runs %v and changes %v", d.run(), d.change())
	}
}

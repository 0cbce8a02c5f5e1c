package pgwire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

func packet(code uint32, rest string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(rest)))
	return append(binary.BigEndian.AppendUint32(b, code), rest...)
}

func TestStartup(t *testing.T) {
	startup := packet(196608, "user\x00u\x00application_name\x00svc\x00\x00")
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  string
		app   string
		phase phase
	}{
		{"3.0", startup, "", "svc", running},
		{"3.2 with options", packet(196610, "application_name\x00a b\x00_pq_.x\x001\x00\x00"), "", "a b", running},
		{"no name", packet(196608, "user\x00u\x00\x00"), "", "", running},
		{"a malformed body", packet(196608, "application_name\x00x"), "", "", running},
		{"SSL first", append(packet(sslRequest, ""), startup...), "answer N", "svc", running},
		{"GSS, then SSL", append(append(packet(gssRequest, ""), packet(sslRequest, "")...), startup...), "answer N\nanswer N", "svc", running},
		{"cancel", packet(cancelRequest, "\x00\x00\x00\x01\x00\x00\x00\x02"), "", "", opaque},
		{"cancel with a long key", packet(cancelRequest, strings.Repeat("k", 260)), "", "", opaque},
		{"cancel after SSL", append(packet(sslRequest, ""), packet(cancelRequest, "12345678")...), "answer N", "", opaque},
		{"HTTP", []byte("GET / HTTP/1.1\r\n\r\n"), `blind startup packet: begins with "GET ", expected a length of 8 to 10000`, "", opaque},
		{"TLS", []byte("\x16\x03\x01\x02\x00\x01\x00"), `blind startup packet: begins with 16 03 01 02 (a TLS handshake), expected a length of 8 to 10000`, "", opaque},
		{"too short", []byte("\x00\x00\x00\x07\x00\x03\x00"), `blind startup packet: begins with "\x00\x00\x00\a", expected a length of 8 to 10000`, "", opaque},
		{"too long", []byte("\x00\x00\x27\x11\x00\x03\x00\x00"), `blind startup packet: begins with "\x00\x00'\x11", expected a length of 8 to 10000`, "", opaque},
		{"2.0", packet(131072, "x"), "blind startup packet: protocol 2.0, expected 3.x", "", opaque},
		{"4.0", packet(262144, "x"), "blind startup packet: protocol 4.0, expected 3.x", "", opaque},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for n := range len(tt.bytes) {
				pl := newPlayer(t, newTracker()).play([]turn{{true, tt.bytes}}, n)
				if got := pl.text(); got != tt.want || pl.tracker.ApplicationName() != tt.app || pl.tracker.phase != tt.phase {
					t.Fatalf("in pieces of %d: %q, application %q, phase %d", n, got, pl.tracker.ApplicationName(), pl.tracker.phase)
				}
				if pl.clear[0] != int64(len(tt.bytes)) {
					t.Fatalf("in pieces of %d: clear to %d of %d", n, pl.clear[0], len(tt.bytes))
				}
			}
		})
	}
}

// An answer's bytes are the whole packet, and none of it is clear before it is
// whole.
func TestAnswerIsNotForwarded(t *testing.T) {
	tr := newTracker()
	b := packet(sslRequest, "")
	marks, clear := tr.Client(b[:4], nil)
	if len(marks) != 0 || clear != 0 {
		t.Fatalf("half a packet: %v, clear %d", marks, clear)
	}
	marks, _ = tr.Client(b[4:], nil)
	if len(marks) != 1 || marks[0].Start != 0 || marks[0].End != 8 {
		t.Fatalf("marks %+v", marks)
	}
}

func TestBackend(t *testing.T) {
	for _, key := range []string{"1234", strings.Repeat("k", 32), strings.Repeat("k", 256)} {
		turns := encode(t, []any{started[0], be{
			&pgproto3.NegotiateProtocolVersion{}, &pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}}}})
		turns = append(turns, encode(t, []any{
			fe{&pgproto3.SASLInitialResponse{AuthMechanism: "SCRAM-SHA-256", Data: []byte("x")}},
			be{&pgproto3.AuthenticationOk{}, notice, &pgproto3.BackendKeyData{ProcessID: 99, SecretKey: []byte(key)}, z('I')},
		})...)
		pl := newPlayer(t, newTracker()).play(turns, 3)
		if pl.tracker.BackendPID() != 99 || pl.tracker.asked.len() != 0 || len(pl.marks) != 0 {
			t.Errorf("pid %d, outstanding %d, %s", pl.tracker.BackendPID(), pl.tracker.asked.len(), pl.text())
		}
	}
}

// A password is never copied.
func TestPasswordIsNotKept(t *testing.T) {
	pl := newPlayer(t, newTracker()).play(encode(t, started[:1]), 0)
	msg, _ := (&pgproto3.PasswordMessage{Password: "hunter2hunter2"}).Encode(nil)
	pl.play([]turn{{true, msg}}, 1)
	if b := pl.tracker.client.buf; bytes.Contains(b[:cap(b)], []byte("hunter2")) {
		t.Error("the password is in the buffer")
	}
}

func TestBlind(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script []any
		server string
		want   string
	}{
		{"client's length too small", []any{[]byte("Q\x00\x00\x00\x03abc")}, "", `blind client's message 'Q': length 3, expected 4 to 1073741824`},
		{"client's length too large", []any{[]byte("B\xff\xff\xff\xffabc")}, "", `blind client's message 'B': length 4294967295, expected 4 to 1073741824`},
		{"upstream's length", []any{fe{q("select 1")}}, "T\x00\x00\x00\x00", `blind upstream's message 'T': length 0, expected 4 to 1073741824`},
		{"not asked", nil, "1\x00\x00\x00\x04", `blind upstream's message '1': nothing was asked`},
		{"not asked for readiness", nil, "Z\x00\x00\x00\x05I", `blind upstream's message 'Z': nothing was asked`},
		{"another reply", []any{fe{p("", "x")}}, "2\x00\x00\x00\x04", `blind upstream's message '2': expected the reply to 'P'`},
		{"ready too early", []any{fe{p("", "x"), syn}}, "Z\x00\x00\x00\x05I", `blind upstream's message 'Z': expected the reply to 'P'`},
		{"ready after an error without a Sync", []any{fe{p("", "x")}}, "E\x00\x00\x00\x05\x00Z\x00\x00\x00\x05I", `blind upstream's message 'Z': no Sync was sent after an error, expected none`},
		{"not ready after an error", []any{fe{p("", "x"), syn}}, "E\x00\x00\x00\x051\x00\x00\x00\x04", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				tt.server = "E\x00\x00\x00\x05\x001\x00\x00\x00\x04"
				tt.want = `blind upstream's message '1': expected ReadyForQuery after an error`
			}
			for n := range 9 {
				pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], tt.script...)), n)
				pl.play([]turn{{false, []byte(tt.server)}}, n)
				if pl.text() != tt.want || pl.tracker.phase != opaque {
					t.Fatalf("in pieces of %d: %s", n, pl.text())
				}
				pl.play(encode(t, []any{fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('I')}}), n)
				if pl.text() != tt.want || pl.clear != pl.pos {
					t.Fatalf("what followed was read, or withheld: %s", pl.text())
				}
			}
		})
	}
}

func TestTooManyAsked(t *testing.T) {
	pl := newPlayer(t, newTracker()).play(encode(t, started), 0)
	many := bytes.Repeat([]byte("S\x00\x00\x00\x04"), maxAsked+1)
	pl.play([]turn{{true, many}}, 1<<16)
	if want := `blind client's message 'S': 262144 requests are unanswered, expected fewer`; pl.text() != want {
		t.Errorf("%s", pl.text())
	}
}

// An implicit transaction whose end does not come is given up, whether its
// statements run or are skipped.
func TestTooManyUnsettled(t *testing.T) {
	ask := enc(t, fe{b("", "s", "1", "1"), e("")})
	for _, reply := range []be{{boundOK, c("UPDATE 1")}, nil} {
		pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], fe{p("s", sqlWrite), syn}, be{parsed, z('I')})), 0)
		answer := encode(t, []any{reply})[0].bytes
		if reply == nil {
			pl.play(encode(t, []any{fe{p("", "x")}, be{bad("42601")}}), 0)
		}
		for range maxUnsettled + 2 {
			pl.feed(true, ask)
			pl.feed(false, answer)
		}
		pl.play(encode(t, []any{fe{syn}, be{z('I')}}), 0)
		if n := len(pl.marks); pl.marks[n-1].Kind != wire.Blind || pl.tracker.phase != opaque {
			t.Errorf("the last mark is %+v", pl.marks[n-1])
		}
	}
}

// clears feeds chunks of the client and returns how much of each stays behind.
func clears(t *testing.T, chunks ...[]byte) []int64 {
	t.Helper()
	pl := newPlayer(t, newTracker()).play(encode(t, started), 0)
	var out []int64
	for _, c := range chunks {
		pl.feed(true, c)
		out = append(out, pl.pos[0]-pl.clear[0])
	}
	return out
}

func enc(t testing.TB, list fe) []byte { return encode(t, []any{list})[0].bytes }

func TestClientWithholds(t *testing.T) {
	parse, bind, exec := enc(t, fe{p("", sqlWrite)}), enc(t, fe{b("", "", "1", "1")}), enc(t, fe{e("")})
	noop := enc(t, fe{p("", "select 1")})
	group := append(append(append([]byte{}, parse...), bind...), exec...)
	for _, tt := range []struct {
		name   string
		chunks [][]byte
		want   []int64
	}{
		{"a whole group", [][]byte{group}, []int64{0}},
		{"a chunk that ends with a message", [][]byte{parse, bind, exec}, []int64{0, 0, 0}},
		{"a chunk that ends inside Execute", [][]byte{group[:len(group)-1], exec[len(exec)-1:]}, []int64{int64(len(group) - 1), 0}},
		{"a chunk that ends inside Bind", [][]byte{group[:len(parse)+7]}, []int64{int64(len(parse) + 7)}},
		{"a chunk that ends inside a header", [][]byte{group[:len(parse)+1]}, []int64{int64(len(parse) + 1)}},
		{"no op", [][]byte{append(noop[:len(noop):len(noop)], bind[:7]...)}, []int64{7}},
		{"Flush ends a group", [][]byte{append(append(parse[:len(parse):len(parse)], enc(t, fe{flush})...), bind[:7]...)}, []int64{7}},
		{"inside Sync", [][]byte{append(parse[:len(parse):len(parse)], 'S', 0)}, []int64{2}},
		{"inside a Query", [][]byte{enc(t, fe{q(sqlUpdate)})[:20]}, []int64{20}},
		{"inside copy data", [][]byte{[]byte("d\x00\x00\x01\x00abc")}, []int64{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := clears(t, tt.chunks...); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("withheld %v, want %v", got, tt.want)
			}
		})
	}
}

// A Bind of a statement that is no op is clear as soon as its names are known,
// and is not copied.
func TestBindThatDoesNotMatterStreams(t *testing.T) {
	pl := newPlayer(t, newTracker()).play(encode(t, started), 0)
	bind := enc(t, fe{p("", "select $1"), b("", "", strings.Repeat("x", 300_000)), e(""), syn})
	pl.play([]turn{{true, bind}}, 1000)
	if pl.held > 2048 || cap(pl.tracker.client.buf) > 2048 || len(pl.marks) != 0 {
		t.Errorf("withheld %d, copied %d, %s", pl.held, cap(pl.tracker.client.buf), pl.text())
	}
}

// What is too large to be withheld streams, and its mark is empty.
func TestLargeRequests(t *testing.T) {
	large := strings.Repeat("x", wire.MaxHeld+1)
	for _, tt := range []struct {
		name string
		msgs fe
		want string
	}{
		{"Query", fe{q("update counter set note = '" + large + "'; commit")}, "ask UPDATE counter write tx1i []"},
		{"Bind", fe{p("", sqlWrite), b("", "", "1", large), e("")}, "ask UPDATE counter write tx1i [E]"},
		{"Parse", fe{p("", "update counter set note = $1 where a = '"+large+"'"), b("", "", "1"), e("")}, "ask UPDATE counter write tx1i [E]"},
		{"a Bind that just does not fit", fe{p("", sqlWrite), b("", "", "1", large[:wire.MaxHeld-60]), e("")}, "ask UPDATE counter write tx1i [E]"},
		{"a Bind that fits", fe{p("", sqlWrite), b("", "", "1", large[:wire.MaxHeld-130]), e("")}, "ask UPDATE counter write tx1i [PBE]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			msgs := enc(t, tt.msgs)
			for _, n := range []int{0, 1 << 10, 100_001} {
				pl := newPlayer(t, newTracker()).play(encode(t, started), 0).play([]turn{{true, msgs}}, n)
				if pl.text() != tt.want || pl.clear[0] != pl.pos[0] {
					t.Fatalf("in pieces of %d: %s, clear %d of %d", n, pl.text(), pl.clear[0], pl.pos[0])
				}
				if strings.HasPrefix(tt.name, "Query") && !pl.marks[0].Op.SQL.Opaque {
					t.Fatal("a statement of which only a prefix was read is not opaque")
				}
			}
		})
	}
}

func TestUpstreamWithholds(t *testing.T) {
	pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], fe{p("", sqlRead), b("", "", "1"), dp(""), e(""), syn})), 0)
	base := pl.pos[1]
	for i, step := range []struct {
		msgs be
		held bool
	}{
		{be{notice}, false}, {be{parsed}, true}, {be{boundOK}, true}, {be{rowd("value", 23)}, true}, {be{status, data("7")}, true}, {be{c("SELECT 1")}, false}, {be{z('I')}, false},
	} {
		chunk := encode(t, []any{step.msgs})[0].bytes
		before := pl.clear[1]
		pl.feed(false, chunk)
		if i == 0 {
			base = pl.pos[1]
		}
		if held := pl.clear[1] != pl.pos[1]; held != step.held || held && pl.clear[1] != max(before, base) {
			t.Errorf("step %d: clear %d of %d", i, pl.clear[1], pl.pos[1])
		}
	}
}

// Upstream that waits for copy data must be heard.
func TestCopyInResponseIsClear(t *testing.T) {
	pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2],
		fe{p("", "copy t from stdin"), b("", ""), e(""), syn}, be{parsed, boundOK, copyIn})), 0)
	if pl.clear[1] != pl.pos[1] {
		t.Errorf("clear %d of %d", pl.clear[1], pl.pos[1])
	}
}

func TestLargeReply(t *testing.T) {
	value := strings.Repeat("x", 1000)
	rows := be{rowd("value", 25)}
	for range wire.MaxHeld/1000 + 10 {
		rows = append(rows, data(value))
	}
	rows = append(rows, c("SELECT 1058"), z('I'))
	script := append(started[:2:2], fe{q("select value from counter")}, rows)
	for _, n := range []int{0, 777, 1 << 16} {
		pl := newPlayer(t, newTracker()).play(encode(t, script), n)
		want := lines(`ask SELECT counter read tx1i [Q]
			got SELECT done rows=1058 []
			end SELECT done [Z]`)
		if pl.text() != want {
			t.Errorf("in pieces of %d: %s", n, pl.text())
		}
	}
}

// Rows of what is no op are clear as they come, and are not copied.
func TestRowsThatDoNotMatterStream(t *testing.T) {
	row := data(strings.Repeat("x", 100_000))
	script := append(started[:2:2], fe{q("select repeat('x', 100000)")}, be{rowd("x", 25), row, row, c("SELECT 2"), z('I')})
	pl := newPlayer(t, newTracker()).play(encode(t, script), 1000)
	if pl.held > 64 || cap(pl.tracker.upstream.buf) > 128 {
		t.Errorf("withheld %d, copied %d", pl.held, cap(pl.tracker.upstream.buf))
	}
}

func TestOp(t *testing.T) {
	turns := encode(t, append(started[:2:2],
		fe{p("s", sqlClaim), ds("s"), flush}, be{parsed, types(20), rowd("value", 23)},
		fe{bin(b("", "s", eight)), e(""), syn}, be{boundOK, data(four), c("UPDATE 1"), z('I')}))
	pl := newPlayer(t, newTracker()).play(turns, 0)
	op := pl.marks[0].Op
	if op.Session != 7 || op.Upstream != "main/u" || op.Proto != lock.Postgres || op.Kind != lock.Write || op.Verb != "UPDATE" {
		t.Errorf("op %+v", op)
	}
	want := hasher.Of([]byte("8"))
	sql := op.SQL
	if sql.Set[0] != (lock.Assign{Column: "fence", Value: want}) || sql.Where[0] != (lock.Cond{Column: "id", Op: "=", Value: hasher.Of([]byte("1"))}) ||
		sql.Where[1] != (lock.Cond{Column: "fence", Op: "<", Value: want}) || !sql.Returning {
		t.Errorf("statement %+v", sql)
	}
	if len(op.Row) != 1 || op.Row[0] != (lock.Cell{Column: "value", Value: hasher.Of([]byte("7"))}) {
		t.Errorf("row %+v", op.Row)
	}
}

// Two executions of one text share nothing that is theirs.
func TestTemplatesAreNotShared(t *testing.T) {
	cache := NewCache()
	var ops []*lock.Op
	for _, v := range []string{"1", "2"} {
		tr := NewTracker(Options{Hash: hasher, Statements: cache})
		pl := newPlayer(t, tr).play(encode(t, append(started[:2:2], fe{p("", "update t set a = $1, n = n - $1"), b("", "", v), e("")})), 0)
		ops = append(ops, pl.marks[0].Op)
	}
	if ops[0].SQL.Set[0].Value == ops[1].SQL.Set[0].Value || ops[0].SQL.Set[1].Delta != -1 || ops[1].SQL.Set[1].Delta != -2 || !ops[1].SQL.Set[1].HasDelta {
		t.Errorf("%+v %+v", ops[0].SQL, ops[1].SQL)
	}
}

// The names of a client that never closes its statements do not pile up.
func TestStatementsAreBounded(t *testing.T) {
	pl := newPlayer(t, newTracker()).play(encode(t, started), 0)
	for i := range 3 * maxStatements {
		name := fmt.Sprintf("s%d", i)
		pl.play(encode(t, []any{fe{p(name, sqlRead), b(name, name, "1"), syn}, be{parsed, boundOK, z('T')}}), 0)
	}
	for _, n := range []int{len(pl.tracker.statements.young) + len(pl.tracker.statements.old), len(pl.tracker.portals.young) + len(pl.tracker.portals.old)} {
		if n > maxStatements {
			t.Errorf("%d names are kept", n)
		}
	}
	last := fmt.Sprintf("s%d", 3*maxStatements-1)
	pl.play(encode(t, []any{fe{b("", last, "1"), e(""), syn}}), 0)
	if len(pl.marks) != 1 {
		t.Error("the newest statement has been forgotten")
	}
}

func TestStore(t *testing.T) {
	s := store[int]{entries: 8, bytes: 1000}
	get := func(key string) int { v, _ := s.get([]byte(key)); return v }
	s.set("a", 1)
	s.set("b", 2)
	s.set("c", 3)
	s.set("x", 9) // the younger generation is full
	if get("a") != 1 || get("b") != 2 || get("c") != 3 {
		t.Error("a recent entry is gone")
	}
	s.drop("b")
	if get("b") != 0 {
		t.Error("a dropped entry is there")
	}
	s.set("d", 4)
	s.clear()
	if get("a")+get("c")+get("d") != 0 {
		t.Error("entries survive clear")
	}
}

// A large message does not leave its buffer behind.
func TestBuffersShrink(t *testing.T) {
	pl := newPlayer(t, newTracker()).play(encode(t, started), 0)
	pl.play([]turn{{true, enc(t, fe{q("select '" + strings.Repeat("x", 500_000) + "'")})}}, 1000)
	if n := cap(pl.tracker.client.buf); n > keepBuffer {
		t.Errorf("%d bytes are kept", n)
	}
}

func TestCacheIsBounded(t *testing.T) {
	cache := NewCache()
	for i := range 5000 {
		cache.read(fmt.Appendf(nil, "select a from t where b = %d", i), false)
	}
	for i := range 500 {
		cache.read(fmt.Appendf(nil, "select a from t where b = '%s%d'", strings.Repeat("x", 60_000), i), false)
	}
	n, size := 0, 0
	for _, g := range []map[string][]template{cache.texts.young, cache.texts.old} {
		for k := range g {
			n++
			size += len(k)
		}
	}
	if n > cacheEntries || size > cacheBytes {
		t.Errorf("%d texts of %d bytes", n, size)
	}
	before := len(cache.texts.young)
	cache.read([]byte("select '"+strings.Repeat("x", cacheText)+"'"), false)
	if len(cache.texts.young) != before {
		t.Error("a long text is kept")
	}
}

func TestTrafficWithoutOpsAllocatesNothing(t *testing.T) {
	msgs := enc(t, fe{q("select 1"), q("set x = 1"), p("", "select $1"), b("", "", "1"), dp(""), e(""), syn, copyData, flush})
	reply := encode(t, []any{be{rowd("x", 23), data("1"), c("SELECT 1"), z('I'), c("SET"), status, z('I'), parsed, boundOK, rowd("x", 23), data("1"), notice, c("SELECT 1"), z('I')}})[0].bytes
	pl := newPlayer(t, newTracker()).play(encode(t, started), 0)
	var marks []wire.Mark
	if n := testing.AllocsPerRun(1000, func() {
		marks, _ = pl.tracker.Client(msgs[:11], marks[:0])
		marks, _ = pl.tracker.Client(msgs[11:], marks)
		marks, _ = pl.tracker.Upstream(reply[:20], marks)
		marks, _ = pl.tracker.Upstream(reply[20:], marks)
	}); n > 0 || len(marks) > 0 {
		t.Errorf("%v allocations, %d marks", n, len(marks))
	}
}

// An expression does not take the name of its alias, be it told by the text or
// by upstream.
func TestExpressionsHaveNoName(t *testing.T) {
	for sql, want := range map[string]string{
		"select value + 1 as value from counter":    "",
		"select count(*) as value from counter":     "",
		"select * from counter":                     "value",
		"select other as value from counter":        "other",
		"select coalesce(other, 0) as value from t": "other",
	} {
		pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], fe{q(sql)}, be{rowd("value", 23), data("42"), c("SELECT 1"), z('I')})), 0)
		if row := pl.marks[1].Op.Row; len(row) != 1 || row[0].Column != want {
			t.Errorf("%s: row %+v, want column %q", sql, row, want)
		}
	}
	desc := &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("id"), TableOID: 1}, {Name: []byte("value")}}}
	pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], fe{q("select * from counter, (select 1 as value) x")}, be{desc, data("1", "42"), c("SELECT 1"), z('I')})), 0)
	if row := pl.marks[1].Op.Row; row[0].Column != "id" || row[1].Column != "" {
		t.Errorf("row %+v", row)
	}
}

// Copy data behind many Syncs must not look at all of them each time.
func TestCopyDataBehindSyncs(t *testing.T) {
	const n = 100_000
	for _, first := range []fe{{p("", "copy t from stdin"), b("", ""), e("")}, {q("select 1")}} {
		tr := newTracker()
		newPlayer(t, tr).play(encode(t, append(started[:2:2], first)), 0)
		began := time.Now()
		tr.Client(bytes.Repeat([]byte("S\x00\x00\x00\x04"), n), nil)
		tr.Client(bytes.Repeat([]byte("d\x00\x00\x00\x04"), n), nil)
		if took := time.Since(began); took > 5*time.Second || tr.asked.len() < n {
			t.Errorf("took %v, with %d requests", took, tr.asked.len())
		}
	}
}

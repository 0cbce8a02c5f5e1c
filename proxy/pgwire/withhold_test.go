package pgwire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

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

// A reply is withheld until its op is answered, but for what came before a
// message that answers nothing: the op may be waiting for what its client does
// about that.
func TestUpstreamWithholds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ask   fe
		steps []be
		held  []string // messages, behind each step
		want  string
	}{
		{"an answer", fe{p("", sqlRead), b("", "", "1"), dp(""), e(""), syn},
			[]be{{notice}, {parsed}, {boundOK}, {rowd("value", 23)}, {data("7")}, {c("SELECT 1")}, {z('I')}},
			[]string{"", "1", "12", "12T", "12TD", "", ""}, "got SELECT done rows=1 value=7 [12TDC]"},
		{"a status before the row", fe{p("", sqlRead), b("", "", "1"), dp(""), e("")},
			[]be{{parsed, boundOK, rowd("value", 23)}, {status}, {data("7")}, {c("SELECT 1")}},
			[]string{"12T", "", "D", ""}, "got SELECT done rows=1 value=7 [DC]"},
		{"a notice of a trigger", fe{p("", sqlWrite), b("", "", "1", "1"), e("")},
			[]be{{parsed, boundOK, notice}, {c("UPDATE 1")}},
			[]string{"", ""}, "got UPDATE done rows=1 [C]"},
		{"notices among rows", fe{q("select value from counter")},
			[]be{{rowd("value", 23), data("7")}, {notice}, {data("8"), data("9")}, {notify}, {data("1")}, {c("SELECT 4")}},
			[]string{"TD", "", "DD", "", "D", ""}, "got SELECT done rows=4 [DC]"},
		{"an error behind a notice", fe{q("select value from counter")},
			[]be{{rowd("value", 23), data("7"), notice}, {bad("57014")}},
			[]string{"", ""}, "got SELECT failed rows=0 err=57014 [E]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], tt.ask)), 0)
			for i, msgs := range tt.steps {
				pl.play(encode(t, []any{msgs}), 0)
				if held := pl.covers(wire.Mark{Kind: wire.Reply, Start: pl.clear[1], End: pl.pos[1]}); held != tt.held[i] {
					t.Errorf("step %d: withheld %q, want %q", i, held, tt.held[i])
				}
			}
			if got := strings.Split(pl.text(), "\n")[1]; got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
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

// A large message does not leave its buffer behind.
func TestBuffersShrink(t *testing.T) {
	pl := newPlayer(t, newTracker()).play(encode(t, started), 0)
	pl.play([]turn{{true, enc(t, fe{q("select '" + strings.Repeat("x", 500_000) + "'")})}}, 1000)
	if n := cap(pl.tracker.client.buf); n > keepBuffer {
		t.Errorf("%d bytes are kept", n)
	}
}

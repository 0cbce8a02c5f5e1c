package pgwire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

type (
	fe []pgproto3.FrontendMessage
	be []pgproto3.BackendMessage
)

// A turn is what one side sends before the other does.
type turn struct {
	client bool
	bytes  []byte
}

// encode makes turns of fe, be, and []byte (the client's).
func encode(t testing.TB, script []any) []turn {
	t.Helper()
	var out []turn
	for _, s := range script {
		u := turn{client: true}
		var err error
		switch s := s.(type) {
		case fe:
			for _, m := range s {
				if u.bytes, err = m.Encode(u.bytes); err != nil {
					t.Fatal(err)
				}
			}
		case be:
			u.client = false
			for _, m := range s {
				if u.bytes, err = m.Encode(u.bytes); err != nil {
					t.Fatal(err)
				}
			}
		case []byte:
			u.bytes = s
		}
		out = append(out, u)
	}
	return out
}

var started = []any{
	fe{&pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: map[string]string{"user": "u", "application_name": "svc"}}},
	be{&pgproto3.AuthenticationOk{}, &pgproto3.ParameterStatus{Name: "a", Value: "b"}, &pgproto3.BackendKeyData{ProcessID: 4711, SecretKey: []byte{1, 2, 3, 4}}, z('I')},
}

// Messages, in short.
func q(sql string) pgproto3.FrontendMessage { return &pgproto3.Query{String: sql} }
func p(name, sql string, oids ...uint32) pgproto3.FrontendMessage {
	return &pgproto3.Parse{Name: name, Query: sql, ParameterOIDs: oids}
}
func b(portal, stmt string, params ...string) *pgproto3.Bind {
	m := &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: stmt}
	for _, s := range params {
		m.Parameters = append(m.Parameters, []byte(s))
	}
	return m
}
func bin(m *pgproto3.Bind) *pgproto3.Bind {
	m.ParameterFormatCodes, m.ResultFormatCodes = []int16{1}, []int16{1}
	return m
}
func ds(name string) pgproto3.FrontendMessage {
	return &pgproto3.Describe{ObjectType: 'S', Name: name}
}
func dp(name string) pgproto3.FrontendMessage {
	return &pgproto3.Describe{ObjectType: 'P', Name: name}
}
func e(portal string) pgproto3.FrontendMessage { return &pgproto3.Execute{Portal: portal} }
func cs(name string) pgproto3.FrontendMessage  { return &pgproto3.Close{ObjectType: 'S', Name: name} }
func cp(name string) pgproto3.FrontendMessage  { return &pgproto3.Close{ObjectType: 'P', Name: name} }

func z(status byte) pgproto3.BackendMessage { return &pgproto3.ReadyForQuery{TxStatus: status} }
func c(tag string) pgproto3.BackendMessage {
	return &pgproto3.CommandComplete{CommandTag: []byte(tag)}
}
func bad(code string) pgproto3.BackendMessage {
	return &pgproto3.ErrorResponse{Severity: "ERROR", Code: code, Message: "no"}
}
func rowd(fields ...any) pgproto3.BackendMessage { // name, oid, ...
	m := &pgproto3.RowDescription{}
	for i := 0; i < len(fields); i += 2 {
		m.Fields = append(m.Fields, pgproto3.FieldDescription{Name: []byte(fields[i].(string)), TableOID: 1, DataTypeOID: uint32(fields[i+1].(int))})
	}
	return m
}
func data(values ...string) pgproto3.BackendMessage {
	m := &pgproto3.DataRow{}
	for _, v := range values {
		m.Values = append(m.Values, []byte(v))
	}
	return m
}
func types(oids ...uint32) pgproto3.BackendMessage {
	return &pgproto3.ParameterDescription{ParameterOIDs: oids}
}

var (
	syn     = &pgproto3.Sync{}
	flush   = &pgproto3.Flush{}
	parsed  = &pgproto3.ParseComplete{}
	boundOK = &pgproto3.BindComplete{}
	closed  = &pgproto3.CloseComplete{}
	noData  = &pgproto3.NoData{}
	notice  = &pgproto3.NoticeResponse{Severity: "NOTICE", Code: "00000", Message: "x"}
	status  = &pgproto3.ParameterStatus{Name: "a", Value: "b"}
	notify  = &pgproto3.NotificationResponse{PID: 1, Channel: "c"}
)

var hasher = lock.NewHasher([]byte("key"))

func newTracker(wants ...string) *Tracker {
	return NewTracker(Options{Session: 7, Upstream: "main", Hash: hasher, Statements: NewCache(), Wants: func(verb string) bool {
		for _, w := range wants {
			if w == verb {
				return true
			}
		}
		return false
	}})
}

// A player feeds turns to a tracker, and holds it to what every tracker
// promises.
type player struct {
	t       testing.TB
	tracker *Tracker
	marks   []wire.Mark
	pos     [2]int64      // client, upstream
	clear   [2]int64      //
	frames  [2][]boundary //
	held    int64
	seq     uint64
	skips   bool // what the tracker says it will not look at is not fed
	skipped int64
}

type boundary struct {
	at  int64
	typ byte
}

func newPlayer(t testing.TB, tracker *Tracker) *player { return &player{t: t, tracker: tracker} }

func (pl *player) feed(client bool, chunk []byte) {
	side := 1
	f := pl.tracker.Upstream
	if client {
		side, f = 0, pl.tracker.Client
	}
	n := len(pl.marks)
	var clear int64
	pl.marks, clear = f(chunk, pl.marks)
	pl.pos[side] += int64(len(chunk))
	if clear < pl.clear[side] || clear > pl.pos[side] || pl.pos[side]-clear > wire.MaxHeld {
		pl.t.Fatalf("clear went from %d to %d with %d bytes seen", pl.clear[side], clear, pl.pos[side])
	}
	pl.clear[side] = clear
	pl.held = max(pl.held, pl.pos[side]-clear)
	for _, m := range pl.marks[n:] {
		if m.Kind == wire.Request {
			pl.seq++
			m.Op.Seq = pl.seq
		}
		if m.Start > m.End || m.End > pl.pos[side] || m.Start < 0 {
			pl.t.Fatalf("mark at [%d, %d) with %d bytes seen", m.Start, m.End, pl.pos[side])
		}
	}
}

// play feeds turns, each in pieces of n bytes; 0: in one.
func (pl *player) play(turns []turn, n int) *player {
	for _, u := range turns {
		pl.frame(u)
		for rest := u.bytes; len(rest) > 0; {
			k := len(rest)
			if n > 0 {
				k = min(n, k)
			}
			if m := pl.skip(u.client, k); m > 0 {
				rest = rest[m:]
				continue
			}
			chunk := append([]byte(nil), rest[:k]...)
			pl.feed(u.client, chunk)
			for i := range chunk {
				chunk[i] = 0xee // nobody may have kept it
			}
			rest = rest[k:]
		}
	}
	return pl
}

// skip passes over at most k bytes, if they are not to be fed.
func (pl *player) skip(client bool, k int) int {
	if !pl.skips {
		return 0
	}
	n := int(min(pl.tracker.Rest(client), int64(k)))
	side := 1
	if client {
		side = 0
	}
	if withheld := pl.clear[side] != pl.pos[side]; n == 0 || withheld && pl.tracker.phase == opaque {
		return 0 // what was withheld goes on with the next chunk
	} else if withheld {
		pl.t.Fatalf("would skip with %d bytes withheld", pl.pos[side]-pl.clear[side])
	}
	pl.tracker.Skip(client, int64(n))
	pl.pos[side] += int64(n)
	pl.clear[side] = pl.pos[side]
	pl.skipped += int64(n)
	return n
}

// frame notes where the messages of a turn begin.
func (pl *player) frame(u turn) {
	side := 1
	if u.client {
		side = 0
	}
	at := pl.pos[side]
	for rest := u.bytes; len(rest) >= 5; {
		typ, size := rest[0], 1+int(rest[1])<<24+int(rest[2])<<16+int(rest[3])<<8+int(rest[4])
		if typ == 0 {
			typ, size = '.', int(rest[2])<<8+int(rest[3])
		}
		if size <= 0 || size > len(rest) {
			break
		}
		pl.frames[side] = append(pl.frames[side], boundary{at, typ})
		at += int64(size)
		rest = rest[size:]
	}
}

// covers names the messages inside a mark.
func (pl *player) covers(m wire.Mark) string {
	side := 1
	if m.Kind == wire.Request || m.Kind == wire.Answer {
		side = 0
	}
	var out []byte
	for _, f := range pl.frames[side] {
		if f.at >= m.Start && f.at < m.End {
			out = append(out, f.typ)
		}
	}
	return string(out)
}

func (pl *player) describe(m wire.Mark) string {
	switch m.Kind {
	case wire.Answer:
		return fmt.Sprintf("answer %s", m.Bytes)
	case wire.Called, wire.Answered:
		return map[wire.Kind]string{wire.Called: "call", wire.Answered: "told"}[m.Kind]
	case wire.Blind:
		return "blind " + strings.TrimPrefix(m.Reason, fmt.Sprintf("at byte %d: ", m.Start)) // the offset is told, and is not of interest here
	}
	op := m.Op
	var b strings.Builder
	b.WriteString(map[wire.Kind]string{wire.Request: "ask ", wire.Reply: "got ", wire.Settle: "end "}[m.Kind])
	b.WriteString(op.Verb)
	if op.Key != "" {
		b.WriteString(" " + op.Key)
	}
	switch m.Kind {
	case wire.Request:
		if op.SQL != nil && op.SQL.Table != "" {
			b.WriteString(" " + op.SQL.Table)
		}
		fmt.Fprintf(&b, " %s tx%d", op.Kind, op.Tx)
		if op.Implicit {
			b.WriteString("i")
		}
		for _, w := range []struct {
			is   bool
			word string
		}{{op.Span == lock.SessionSpan, "session"}, {op.Shared, "shared"}, {op.All, "all"}, {op.Snapshot, "snapshot"}} {
			if w.is {
				b.WriteString(" " + w.word)
			}
		}
		if op.Savepoint {
			b.WriteString(" savepoint")
		}
		if len(op.Tables) > 0 {
			fmt.Fprintf(&b, " tables=%s", strings.Join(op.Tables, ","))
		}
	case wire.Reply:
		fmt.Fprintf(&b, " %s rows=%d", op.Outcome, op.Rows)
		if op.Since != 0 {
			fmt.Fprintf(&b, " since=%d", op.Since)
		}
		if op.Depth > 0 {
			fmt.Fprintf(&b, " depth=%d", op.Depth)
		}
		if op.Err != "" {
			b.WriteString(" err=" + op.Err)
		}
		for _, c := range op.Row {
			fmt.Fprintf(&b, " %s=%s", c.Column, show(c.Value))
		}
	case wire.Settle:
		fmt.Fprintf(&b, " %s", op.Outcome)
	}
	fmt.Fprintf(&b, " [%s]", pl.covers(m))
	return b.String()
}

func show(v lock.Value) string {
	switch {
	case v.IsInt:
		return fmt.Sprint(v.Int)
	case v.Known():
		return "#" + v.Hash[:4]
	}
	return "?"
}

// text writes all marks down, one a line, with their ops as they are now.
func (pl *player) text() string {
	var out []string
	for _, m := range pl.marks {
		out = append(out, pl.describe(m))
	}
	return strings.Join(out, "\n")
}

func lines(s string) string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

package history

import (
	"encoding/hex"
	"time"
	"unicode/utf8"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A line is any line of a history, with only the part that its type names.
type line struct {
	Type string `json:"type"`
	*Header
}

type opLine struct {
	Type     string        `json:"type"`
	Seq      uint64        `json:"seq"`
	ReplySeq uint64        `json:"reply_seq,omitempty"`
	Session  uint64        `json:"session"`
	Actor    string        `json:"actor,omitempty"`
	Upstream string        `json:"upstream,omitempty"`
	Proto    lock.Protocol `json:"proto"`
	Kind     lock.Kind     `json:"kind"`
	Verb     string        `json:"verb"`

	DB       int           `json:"db,omitempty"`
	Key      string        `json:"key,omitempty"`
	NX       bool          `json:"nx,omitempty"`
	Guarded  bool          `json:"guarded,omitempty"`
	Guessed  bool          `json:"guessed,omitempty"`
	KeyHex   string        `json:"key_hex,omitempty"` // instead of key, when that is not text
	Token    string        `json:"token,omitempty"`
	Number   bool          `json:"token_number,omitempty"` // the token is a number (which one is not told)
	TTL      time.Duration `json:"ttl_ns,omitempty"`
	Until    int64         `json:"until_ms,omitempty"`
	Evidence lock.Evidence `json:"evidence,omitempty"`
	Shared   bool          `json:"shared,omitempty"`
	Member   bool          `json:"member,omitempty"`
	Depth    int           `json:"depth,omitempty"`
	All      bool          `json:"all,omitempty"`
	Span     lock.Span     `json:"span,omitempty"`
	FenceKey string        `json:"fence_key,omitempty"`
	Fence    *int64        `json:"fence,omitempty"`
	Racy     bool          `json:"racy,omitempty"`
	Coarse   bool          `json:"coarse,omitempty"`

	SQL       *statement `json:"sql,omitempty"`
	Path      string     `json:"path,omitempty"`
	Tx        uint64     `json:"tx,omitempty"`
	Snapshot  bool       `json:"snapshot,omitempty"`
	Implicit  bool       `json:"implicit,omitempty"`
	Savepoint bool       `json:"savepoint,omitempty"`
	Since     uint64     `json:"since,omitempty"`
	Tables    []string   `json:"tables,omitempty"`
	Rows      int64      `json:"rows,omitempty"`
	Row       []cell     `json:"row,omitempty"`
	Err       string     `json:"err,omitempty"`

	Outcome lock.Outcome `json:"outcome,omitempty"`
	A       lock.Instant `json:"a,omitempty"`
	F       lock.Instant `json:"f,omitempty"`
	R       lock.Instant `json:"r,omitempty"`
	D       lock.Instant `json:"d,omitempty"`
	Z       lock.Instant `json:"z,omitempty"`
	Term    *term        `json:"term,omitempty"`
}

type term struct {
	ID         lock.TermID   `json:"id"`
	Confidence float64       `json:"confidence"`
	Also       []lock.TermID `json:"also,omitempty"`
	Within     []lock.TermID `json:"within,omitempty"`
}

type statement struct {
	Table     string   `json:"table"`
	Also      []string `json:"also,omitempty"`
	Cascade   bool     `json:"cascade,omitempty"`
	Set       []assign `json:"set,omitempty"`
	Where     []cond   `json:"where,omitempty"`
	Columns   []string `json:"columns,omitempty"`
	Returning bool     `json:"returning,omitempty"`
	ForUpdate bool     `json:"for_update,omitempty"`
	Upsert    bool     `json:"upsert,omitempty"`
	Trace     string   `json:"trace,omitempty"`
	Opaque    bool     `json:"opaque,omitempty"`
	Aside     []string `json:"aside,omitempty"`
	Lease     bool     `json:"lease,omitempty"`
}

type assign struct {
	Column string      `json:"column"`
	Value  *lock.Value `json:"value,omitempty"`
	Delta  *int64      `json:"delta,omitempty"`
}

type cond struct {
	Column string      `json:"column"`
	Op     string      `json:"op"`
	Value  *lock.Value `json:"value,omitempty"`
}

type cell struct {
	Column string      `json:"column"`
	Value  *lock.Value `json:"value,omitempty"`
}

func known(v *lock.Value) lock.Value {
	if v == nil {
		return lock.Value{}
	}
	return *v
}

func number(n int64, has bool) *int64 {
	if !has {
		return nil
	}
	return &n
}

func encode(op *lock.Op, keep kept) opLine {
	l := opLine{
		Type: "op", Seq: op.Seq, ReplySeq: op.ReplySeq, Session: op.Session, Actor: op.Actor, Upstream: op.Upstream,
		Proto: op.Proto, Kind: op.Kind, Verb: op.Verb,
		DB: op.DB, Key: op.Key, NX: op.NX, Guarded: op.Guarded, Guessed: op.Guessed, Racy: op.Racy, Token: op.Token.Hash, Number: op.Token.IsInt, TTL: op.TTL,
		Until: op.Until, Evidence: op.Evidence, Shared: op.Shared, Member: op.Member, Depth: op.Depth, All: op.All, Span: op.Span,
		FenceKey: op.FenceKey, Fence: number(op.Fence, op.HasFence), Coarse: op.Coarse,
		Path: op.Path, Tx: op.Tx, Snapshot: op.Snapshot, Implicit: op.Implicit, Savepoint: op.Savepoint, Since: op.Since, Tables: op.Tables, Rows: op.Rows, Err: op.Err,
		Outcome: op.Outcome, A: op.A, F: op.F, R: op.R, D: op.D, Z: op.Z,
	}
	if !utf8.ValidString(op.Key) {
		l.Key, l.KeyHex = "", hex.EncodeToString([]byte(op.Key))
	}
	if op.Term.ID != 0 {
		l.Term = &term{op.Term.ID, op.Term.Confidence, op.Term.Also, op.Term.Within}
	}
	if op.SQL != nil {
		l.SQL = encodeStatement(op.SQL, keep)
	}
	for _, c := range op.Row {
		l.Row = append(l.Row, cell{c.Column, keep.assigned(c.Column, c.Value)})
	}
	return l
}

func encodeStatement(s *lock.Statement, keep kept) *statement {
	out := &statement{Table: s.Table, Also: s.Also, Cascade: s.Cascade, Columns: s.Columns, Returning: s.Returning, ForUpdate: s.ForUpdate, Upsert: s.Upsert, Trace: s.Trace, Opaque: s.Opaque, Aside: s.Aside, Lease: s.Lease}
	for _, a := range s.Set {
		out.Set = append(out.Set, assign{a.Column, keep.assigned(a.Column, a.Value), number(a.Delta, a.HasDelta)})
	}
	for _, c := range s.Where {
		out.Where = append(out.Where, cond{c.Column, c.Op, keep.value(c.Column, c.Value)})
	}
	return out
}

func (l opLine) op() *lock.Op {
	op := &lock.Op{
		Seq: l.Seq, ReplySeq: l.ReplySeq, Session: l.Session, Actor: l.Actor, Upstream: l.Upstream,
		Proto: l.Proto, Kind: l.Kind, Verb: l.Verb,
		DB: l.DB, Key: l.Key, NX: l.NX, Guarded: l.Guarded, Guessed: l.Guessed, Racy: l.Racy, Token: lock.Value{Hash: l.Token, IsInt: l.Number}, TTL: l.TTL,
		Until: l.Until, Evidence: l.Evidence, Shared: l.Shared, Member: l.Member, Depth: l.Depth, All: l.All, Span: l.Span,
		FenceKey: l.FenceKey, Coarse: l.Coarse,
		Path: l.Path, Tx: l.Tx, Snapshot: l.Snapshot, Implicit: l.Implicit, Savepoint: l.Savepoint, Since: l.Since, Tables: l.Tables, Rows: l.Rows, Err: l.Err,
		Outcome: l.Outcome, A: l.A, F: l.F, R: l.R, D: l.D, Z: l.Z,
	}
	if b, err := hex.DecodeString(l.KeyHex); err == nil && l.KeyHex != "" {
		op.Key = string(b)
	}
	if l.Fence != nil {
		op.Fence, op.HasFence = *l.Fence, true
	}
	if l.Term != nil {
		op.Term = lock.Attribution{ID: l.Term.ID, Confidence: l.Term.Confidence, Also: l.Term.Also, Within: l.Term.Within}
	}
	if l.SQL != nil {
		op.SQL = l.SQL.decode()
	}
	for _, c := range l.Row {
		op.Row = append(op.Row, lock.Cell{Column: c.Column, Value: known(c.Value)})
	}
	return op
}

func (s *statement) decode() *lock.Statement {
	out := &lock.Statement{Table: s.Table, Also: s.Also, Cascade: s.Cascade, Columns: s.Columns, Returning: s.Returning, ForUpdate: s.ForUpdate, Upsert: s.Upsert, Trace: s.Trace, Opaque: s.Opaque, Aside: s.Aside, Lease: s.Lease}
	for _, a := range s.Set {
		d := lock.Assign{Column: a.Column, Value: known(a.Value)}
		if a.Delta != nil {
			d.Delta, d.HasDelta = *a.Delta, true
		}
		out.Set = append(out.Set, d)
	}
	for _, c := range s.Where {
		out.Where = append(out.Where, lock.Cond{Column: c.Column, Op: c.Op, Value: known(c.Value)})
	}
	return out
}

package check

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A script is a history in a few words, for testdata. One line is one op,
// "ACTOR WHAT ... TIME", in any order; times are in ms.
//
//	lease 500                          of the grants that follow
//	counter counter.value 7 8          an invariant, its start and its end; likewise fence, monotone
//	declare lock:c counter.fence       a declaration (purpose=efficiency may follow)
//	gap 300 2 why
//	clock 5-6 offset=3 run=x data=y    a look at the server's clock, and who answered
//	tally counter 0 5 0                rows that the server counted: inserted, updated, deleted
//	bypass lock:c DEL 300              of a lock's key, past the proxies
//	read-back                          integers are as in a history that was read back
//	end A 900                          all of A's sessions; @1: that of Postgres without @N
//	want LF104 PROVEN harm x1          one verdict; none at all without such a line; hazard, of one that else is good
//	want deficit 1, want overlaps 2 ...figures
//
//	A acquire lock:c=tok 10-11         granted, or "refused", or "unread" (its answer was not understood); no-ttl, ttl=9, shared, member, verb=EVAL, until=1000
//	A store lock:c=tok 10-11
//	A renew lock:c=tok 10-11           or not-held; without =tok: unguarded; xx: SET XX
//	A release lock:c=tok 10-11         likewise; guess: of a script that was not seen; rule: no client's, since a rule assumes it
//	A lock advisory:42 10-11           of Postgres: or refused, shared; row:counter:1 tx1
//	A unlock advisory:42 10-11         or not-held
//	A incr fence=3 10-11
//	A select counter[id=1] value=7 20-21          for-update, snapshot
//	A update counter[id=1,fence<3] value:=8 fence:=3 30-31     rows=0, value+=1, ->value=7, aside=fences.fence
//	A insert counter id:=1 value:=0 5-6
//	A delete counter[id=1] 5-6
//	A merge counter opaque 5-6
//	A begin tx1 20-21, A commit tx1 40-41, A rollback tx1 40-41 (savepoint)
//
// A statement with txN is part of that transaction. TIME is F-R, A:F-R, or F-?
// for one without an answer, or A-never for one that was not forwarded; /D or /- after it is when the reply was delivered.
// path=x is the search path of its session, if not the default. @N puts the op on the actor's N-th connection.
type script struct {
	in    Input
	hash  *lock.Hasher
	lease time.Duration
	wants []string
	label map[string]uint64
	kept  bool
}

func newScript() *script {
	return &script{hash: lock.NewHasher([]byte("script")), lease: 500 * time.Millisecond, label: map[string]uint64{}}
}

func readScript(path string) (*script, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := newScript()
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		text, _, _ := strings.Cut(in.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if err := s.line(fields); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if s.kept {
		s.readBack()
	}
	return s, in.Err()
}

// readBack makes of the integers what a history keeps of them.
func (s *script) readBack() {
	keep := func(v *lock.Value) {
		if v.IsInt {
			*v = lock.Value{Hash: v.Hash, Rel: v.Int + 1000, IsRel: true}
		}
	}
	for _, op := range s.in.Ops {
		for i := range op.Row {
			keep(&op.Row[i].Value)
		}
		if op.SQL != nil {
			for i := range op.SQL.Set {
				keep(&op.SQL.Set[i].Value)
			}
		}
	}
}

func (s *script) v(text string) lock.Value { return s.hash.Of([]byte(text)) }

func msOf(text string) lock.Instant {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("%q is no time", text))
	}
	return lock.Instant(n * float64(time.Millisecond))
}

func (s *script) line(f []string) error {
	switch f[0] {
	case "lease":
		s.lease = msOf(f[1]).Sub(0)
	case "counter", "fence", "monotone":
		table, column, _ := strings.Cut(f[1], ".")
		inv := Invariant{Name: f[0], Kind: f[0], Query: "SELECT " + column + " FROM " + table + " WHERE id = 1", Table: table, Column: column}
		if len(f) > 3 {
			inv.Start, _ = strconv.ParseInt(f[2], 10, 64)
			inv.End, _ = strconv.ParseInt(f[3], 10, 64)
			inv.HasStart, inv.HasEnd = true, true
		}
		s.in.Invariants = append(s.in.Invariants, inv)
	case "declare":
		d := lock.Declaration{Key: f[1], Declared: true}
		d.Table, d.FenceColumn, _ = strings.Cut(f[2], ".")
		if len(f) > 3 {
			_, d.Purpose, _ = strings.Cut(f[3], "=")
			d.Declared = d.Purpose != "efficiency"
			if kind, ok := strings.CutPrefix(f[3], "kind="); ok {
				d.Kind, d.Purpose, d.Declared = lock.Sort(kind), "", true
			}
		}
		s.in.Declarations = append(s.in.Declarations, d)
	case "gap":
		s.in.Gaps = append(s.in.Gaps, Gap{At: msOf(f[1]), Lost: 1, Why: strings.Join(f[2:], " ")})
	case "clock":
		s.clock(f[1:])
	case "tally":
		t := Tally{Table: f[1]}
		for i, n := range []*int64{&t.Inserted, &t.Updated, &t.Deleted} {
			*n, _ = strconv.ParseInt(f[i+2], 10, 64)
		}
		s.in.Tallies = append(s.in.Tallies, t)
	case "bypass":
		s.in.Bypasses = append(s.in.Bypasses, Bypass{Key: f[1], Verb: f[2], At: msOf(f[3]), Address: "10.0.0.9:5"})
	case "read-back":
		s.kept = true
	case "end":
		for n := range uint64(10) {
			if len(f) > 3 && f[3] != "@"+strconv.FormatUint(n, 10) {
				continue
			}
			s.in.Ends = append(s.in.Ends, End{Session: s.session(f[1]) + n, At: msOf(f[2])})
		}
	case "want":
		s.wants = append(s.wants, strings.Join(f[1:], " "))
	default:
		return s.op(f)
	}
	return nil
}

func (s *script) clock(f []string) {
	from, to, _ := strings.Cut(f[0], "-")
	k := Clock{From: msOf(from), To: msOf(to)}
	for _, w := range f[1:] {
		switch name, value, _ := strings.Cut(w, "="); name {
		case "offset":
			k.Offset = msOf(value).Sub(0)
		case "run":
			k.Run = value
		case "data":
			k.Data = value
		}
	}
	s.in.Clocks = append(s.in.Clocks, k)
}

func (s *script) session(actor string) uint64 {
	if s.label[actor] == 0 {
		s.label[actor] = uint64(10 * (len(s.label) + 1))
	}
	return s.label[actor]
}

func (s *script) op(f []string) error {
	op := &lock.Op{Actor: f[0], Session: s.session(f[0]), Outcome: lock.Done, Proto: lock.Postgres, Implicit: true, Rows: 1}
	if f[0] == "-" {
		op.Actor = ""
	}
	if err := s.kind(op, f[1], f[2]); err != nil {
		return err
	}
	for _, word := range f[2:] {
		if err := s.word(op, word); err != nil {
			return err
		}
	}
	if op.SQL == nil && op.Proto == lock.Postgres && op.Tx == 0 {
		return fmt.Errorf("%s without a transaction", f[1])
	}
	if op.F == 0 && op.A == 0 {
		return fmt.Errorf("no time in %v", f)
	}
	s.in.Ops = append(s.in.Ops, op)
	return nil
}

func (s *script) kind(op *lock.Op, what, arg string) error {
	redis := map[string]lock.Kind{"acquire": lock.Acquire, "store": lock.Store, "renew": lock.Renew, "release": lock.Release, "incr": lock.Fence}
	sql := map[string]string{"select": "SELECT", "update": "UPDATE", "insert": "INSERT", "delete": "DELETE", "merge": "MERGE"}
	tx := map[string]lock.Kind{"begin": lock.Begin, "commit": lock.Commit, "rollback": lock.Rollback}
	if k, ok := redis[what]; ok {
		op.Proto, op.Kind, op.Implicit, op.Rows, op.Verb = lock.Redis, k, false, 0, strings.ToUpper(what)
		key, token, has := strings.Cut(arg, "=")
		op.Key, op.Guarded = key, has
		switch k {
		case lock.Fence:
			op.FenceKey, op.HasFence, op.Guarded = key, true, false
			op.Fence, _ = strconv.ParseInt(token, 10, 64)
		case lock.Acquire, lock.Store:
			op.Guarded, op.NX, op.TTL = false, k == lock.Acquire, s.lease
			if op.Outcome = lock.Done; k == lock.Acquire {
				op.Outcome = lock.Granted
			}
			op.Token = s.v(token)
		default:
			if op.TTL = 0; k == lock.Renew {
				op.TTL = s.lease
			}
			if has {
				op.Token = s.v(token)
			}
		}
		return nil
	}
	op.Session++
	if what == "lock" || what == "unlock" {
		op.Kind, op.Key, op.Span, op.Verb, op.Outcome, op.Tx = lock.Acquire, arg, lock.SessionSpan, "PG_ADVISORY_LOCK", lock.Granted, 1
		if what == "unlock" {
			op.Kind, op.Outcome, op.Verb = lock.Release, lock.Done, "PG_ADVISORY_UNLOCK"
		} else if strings.HasPrefix(arg, "row:") {
			op.Span, op.Verb = lock.TxSpan, "FORUPDATE"
		}
		return nil
	}
	if k, ok := tx[what]; ok {
		op.Kind, op.Implicit, op.Verb = k, false, strings.ToUpper(what)
		return nil
	}
	verb, ok := sql[what]
	if !ok {
		return fmt.Errorf("%q is no op", what)
	}
	op.Verb, op.Kind = verb, lock.Write
	if what == "select" {
		op.Kind = lock.Read
	}
	table, where, _ := strings.Cut(strings.TrimSuffix(arg, "]"), "[")
	op.SQL = &lock.Statement{Table: table}
	for _, cond := range strings.FieldsFunc(where, func(r rune) bool { return r == ',' }) {
		op.SQL.Where = append(op.SQL.Where, s.cond(cond))
	}
	return nil
}

func (s *script) cond(text string) lock.Cond {
	for _, o := range []string{"<=", ">=", "<>", "<", ">", "="} {
		if column, value, ok := strings.Cut(text, o); ok {
			return lock.Cond{Column: column, Op: o, Value: s.v(value)}
		}
	}
	return lock.Cond{Column: text, Op: "="}
}

func (s *script) word(op *lock.Op, w string) error {
	column, value, pair := strings.Cut(w, "=")
	switch {
	case strings.HasPrefix(w, "verb="):
		op.Verb = value
	case strings.HasPrefix(w, "path="):
		op.Path = value
	case strings.HasPrefix(w, "err="):
		op.Outcome, op.Err, op.Rows = lock.Failed, value, 0
	case strings.HasPrefix(w, "ttl="):
		op.TTL = msOf(value).Sub(0)
	case strings.HasPrefix(w, "until="):
		op.Until, _ = strconv.ParseInt(value, 10, 64)
	case strings.Contains(w, "[") || op.Proto == lock.Redis && w[0] != '@' && !isTime(w) && pair:
	case isTime(w):
		s.time(op, w)
	case w == "refused":
		op.Outcome = lock.Refused
	case w == "not-held":
		op.Outcome = lock.NotHeld
	case w == "unread":
		op.Outcome = lock.Unknown
	case w == "rule":
		op.Evidence = lock.FromRule
	case w == "shown":
		op.Evidence = lock.FromMonitor
	case w == "guess":
		op.Guessed, op.Guarded = true, false
	case w == "xx": // a renewal by SET XX: it stores its token, and compares none
		op.Guarded = false
	case w == "shared":
		op.Shared = true
	case w == "member":
		op.Member = true
	case w == "no-ttl":
		op.TTL = 0
	case w == "snapshot":
		op.Snapshot = true
	case w == "for-update":
		op.SQL.ForUpdate = true
	case w == "opaque":
		op.SQL.Opaque = true
	case w == "savepoint":
		op.Savepoint = true
	case w == "rolled-back":
		op.Outcome = lock.RolledBack
	case strings.HasPrefix(w, "since="): // counting requests and replies from 1
		op.Since, _ = strconv.ParseUint(value, 10, 64)
	case strings.HasPrefix(w, "aside="):
		op.SQL.Opaque, op.SQL.Aside = true, strings.Split(value, ",")
	case strings.HasPrefix(w, "rows="):
		op.Rows, _ = strconv.ParseInt(value, 10, 64)
	case strings.HasPrefix(w, "tx"):
		op.Tx, _ = strconv.ParseUint(w[2:], 10, 64)
		op.Implicit = false
	case strings.HasPrefix(w, "@"):
		n, _ := strconv.ParseUint(w[1:], 10, 64)
		op.Session += n
	case strings.HasPrefix(w, "->"):
		op.SQL.Returning = true
		op.SQL.Columns = append(op.SQL.Columns, column[2:])
		op.Row = append(op.Row, lock.Cell{Column: column[2:], Value: s.v(value)})
	case strings.Contains(w, ":="):
		op.SQL.Set = append(op.SQL.Set, lock.Assign{Column: strings.TrimSuffix(column, ":"), Value: s.v(value)})
	case strings.Contains(w, "+="):
		n, _ := strconv.ParseInt(value, 10, 64)
		op.SQL.Set = append(op.SQL.Set, lock.Assign{Column: strings.TrimSuffix(column, "+"), Delta: n, HasDelta: true})
	case pair && op.Kind == lock.Read:
		op.SQL.Columns = append(op.SQL.Columns, column)
		op.Row = append(op.Row, lock.Cell{Column: column, Value: s.v(value)})
	case pair:
		return fmt.Errorf("%q is not understood", w)
	}
	return nil
}

func isTime(w string) bool {
	return w[0] >= '0' && w[0] <= '9' && strings.Contains(w, "-")
}

func (s *script) time(op *lock.Op, w string) {
	w, d, delivered := strings.Cut(w, "/")
	a, rest, has := strings.Cut(w, ":")
	if !has {
		rest, a = a, ""
	}
	from, to, _ := strings.Cut(rest, "-")
	op.F = msOf(from)
	if to == "never" {
		op.A, op.F, op.Outcome, op.Err, op.Rows, op.Row = op.F, 0, lock.Failed, "not-sent", 0, nil
		return
	}
	if op.A = op.F; a != "" {
		op.A = msOf(a)
	}
	if to == "?" {
		op.Outcome, op.Rows, op.Row = lock.Unknown, 0, nil
		return
	}
	op.R = msOf(to)
	if op.D = op.R; delivered {
		if op.D = 0; d != "-" {
			op.D = msOf(d)
		}
	}
}

// summary is a result in the words of want lines.
func summary(r Result) []string {
	var out []string
	for _, v := range r.Verdicts {
		harm := ""
		if v.Harm {
			harm = " harm"
		}
		if _, class := about(v.Code); class == Good && v.Class != Good {
			harm = " " + string(v.Class)
		}
		out = append(out, fmt.Sprintf("%s %s%s x%d", v.Code, v.Level, harm, v.Count))
	}
	slices.Sort(out)
	return out
}

func figures(r Result) map[string]int64 {
	f := map[string]int64{"overlaps": int64(r.Facts.Overlap), "ended-while-held": int64(r.Facts.EndedWhileHeld), "unattributed": int64(r.Facts.Unattributed),
		"actors": int64(r.Facts.Actors), "forgotten": int64(r.Facts.Forgotten), "guessed": int64(r.Facts.Guessed), "believed": int64(r.Facts.Believed)}
	for _, v := range r.Verdicts {
		f["train"] += int64(v.Train)
	}
	if len(r.Counters) > 0 {
		c := r.Counters[0]
		f["deficit"], f["acknowledged"], f["stale"], f["victims"], f["unknown"] = c.NetDeficit, c.Acknowledged, int64(c.StaleBase), int64(c.Victims), c.Unknown
	}
	return f
}

func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no golden histories", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".txt"), func(t *testing.T) { golden(t, path) })
	}
}

func golden(t *testing.T, path string) {
	s, err := readScript(path)
	if err != nil {
		t.Fatal(err)
	}
	r := Judge(s.in)
	var want []string
	for _, w := range s.wants {
		name, value, _ := strings.Cut(w, " ")
		if strings.HasPrefix(w, "LF") {
			want = append(want, w)
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if got, ok := figures(r)[name]; !ok || err != nil || got != n {
			t.Errorf("%s is %d, want %s", name, got, value)
		}
	}
	slices.Sort(want)
	if got := summary(r); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
		for _, v := range r.Verdicts {
			t.Log(v.Code, v.Level, v.Proof)
		}
	}
	good := strings.Contains(path, "/good/")
	if harm := slices.ContainsFunc(r.Verdicts, func(v Verdict) bool { return v.Harm && v.Level == Proven }); harm == good {
		t.Errorf("proven harm: %v", harm)
	}
}

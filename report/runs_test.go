package report

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// The runs that the tests report on. Each is made anew, so that a test may
// change its own.

const ms = lock.Instant(time.Millisecond)

func counterLock() check.LockFact {
	return check.LockFact{Lock: "lock:counter", Grants: 321, Refusals: 4210,
		TTLs: []time.Duration{500 * time.Millisecond}, MedianHeld: 23456 * time.Microsecond}
}

func counterTable() check.TableFact {
	return check.TableFact{Table: "counter", Columns: []string{"value", "fence"}, Reads: 321, Writes: 321, Lock: "lock:counter"}
}

func counterFacts() check.Facts {
	return check.Facts{Numbers: check.Numbers{Ops: 1605, Grants: 321, Refusals: 4210, Sections: 321, Writes: 321, Reads: 321},
		Locks: []check.LockFact{counterLock()}, Tables: []check.TableFact{counterTable()}}
}

func counterFigure(acknowledged, change int64) check.Counter {
	return check.Counter{Name: "counter", Query: "SELECT value FROM counter WHERE id = 1", Table: "counter", Column: "value",
		Acknowledged: acknowledged, End: change, Change: change, NetDeficit: acknowledged - change, Known: true}
}

func verdict(code string, level check.Level, harm bool, count int, proof string) check.Verdict {
	c, _ := lookup(code)
	return check.Verdict{Code: code, Name: c.Name, Class: check.Class(c.Class), Level: level, Harm: harm,
		Lock: "lock:counter", Table: "counter", Count: count, Proof: proof}
}

func injection(id uint64, rule string, at lock.Instant, section bool) history.Injection {
	return history.Injection{ID: id, Rule: rule, Effect: "freeze", Phase: "after", Matched: "pg:SELECT(counter)",
		Actor: "A1", Scope: "process", For: 800 * time.Millisecond, Op: 40 * id, At: at, Confirmed: at + 2*ms,
		Ended: at + 803*ms, Outcome: "landed", Section: section}
}

// quiet is a run without rules in which nothing happened: it passes.
func quiet() Run {
	return Run{Result: check.Result{Facts: counterFacts(), Counters: []check.Counter{counterFigure(321, 321)}},
		Watching: true, Command: []string{"./worker"}, CommandRan: true, Elapsed: 10 * time.Second,
		Started: time.Date(2026, 5, 4, 3, 2, 1, 500, time.UTC)}
}

// armed is a run with one rule that did nothing yet.
func armed() Run {
	r := quiet()
	r.Watching = false
	r.Seed = 42
	r.Rules = []RuleUse{{Text: "--freeze-after read(counter)#1-6=ttl+300ms", Seen: 6, Fired: 6}}
	r.Repeat = "lockfaultd run --seed 42 --freeze-after 'read(counter)#1-6=ttl+300ms' " +
		"--counter 'SELECT value FROM counter WHERE id = 1' -- sh -c './worker & ./worker & ./worker & wait'"
	for i := range uint64(6) {
		r.Injections = append(r.Injections, injection(i+1, r.Rules[0].Text, lock.Instant(i)*1000*ms+100*ms, true))
	}
	return r
}

// exercised is armed with leases that ended while held, and no harm.
func exercisedRun() Run {
	r := armed()
	r.Result.Facts.EndedWhileHeld = 6
	return r
}

const lostProof = "Let T1 be the term of A1 (grant 3 of lock:counter) and T2 that of A2 (grant 4). " +
	"A2 read counter.value before A1 wrote it, since its read was answered at 1.204 s and A1's UPDATE was sent at 1.311 s; so T2 < T1. " +
	"However A1 wrote from the value that it had read before A2 wrote, so T1 < T2: a contradiction."

// lost is the run of the six aimed freezes.
func lost() Run {
	r := exercisedRun()
	for i := range 6 {
		r.Result.Verdicts = append(r.Result.Verdicts,
			verdict("LF101", check.Proven, false, 0, fmt.Sprintf("A1's lease ended by %d.612 s and it wrote at %d.905 s.", i, i)),
			verdict("LF104", check.Proven, true, 2, lostProof))
	}
	for i := range 2 {
		o := check.Overlap{Lock: "lock:counter", A: lock.TermID(3 + i), B: lock.TermID(4 + i), From: 650 * ms, To: 905 * ms}
		r.Result.Facts.Overlaps = append(r.Result.Facts.Overlaps, o)
		r.Result.Verdicts = append(r.Result.Verdicts, verdict("LF102", check.Proven, false, 1, "A1 and A2 were both in their section from 0.650 s to 0.905 s."))
	}
	r.Result.Facts.Overlaps[1].To = lock.Never
	c := counterFigure(321, 315)
	c.StaleBase, c.Victims, c.Unknown, c.UnknownHigh = 6, 12, 1, 1
	r.Result.Counters = []check.Counter{c}
	r.Files = []string{"lf-out/history.jsonl", "lf-out/report.json"}
	return r
}

// fenced is the same with a fence that refused the stale writes.
func fenced() Run {
	r := exercisedRun()
	r.Result.Facts.Rejected = 6
	for range 6 {
		r.Result.Verdicts = append(r.Result.Verdicts,
			verdict("LF201", check.Proven, false, 1, "A1's UPDATE under fence 3 changed no row, since fence 4 had been accepted before."))
	}
	return r
}

// short is a run whose pauses were shorter than its lease.
func short() Run {
	r := armed()
	r.Result.Facts.Locks[0].TTLs = []time.Duration{2 * time.Second}
	return r
}

// hostile has names that a terminal, a shell and XML would each take amiss.
func hostile() Run {
	r := lost()
	key := "lock:\x1b[31mred\x00<&\"']]>\xff\n" + string(make([]byte, 3)) + "x"
	for i := range r.Result.Verdicts {
		r.Result.Verdicts[i].Lock = key
		r.Result.Verdicts[i].Proof += " Under " + key
	}
	r.Result.Facts.Locks[0].Lock = key
	r.Rules[0].Text = "--freeze-after read(" + key + ")=ttl"
	for i := range r.Injections {
		r.Injections[i].Rule = r.Rules[0].Text
	}
	r.Internal = errors.New("write " + key + ": disk full")
	return r
}

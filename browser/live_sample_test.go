package browser

import (
	"fmt"
	"time"

	"github.com/lockfaultd/lockfaultd/live"
)

func ptr[T any](v T) *T { return &v }

// busy is what lockfaultd might see in a lively minute.
func busy(now time.Time) live.Snapshot {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	in := func(d time.Duration) time.Time { return now.Add(d) }
	ms := time.Millisecond
	s := live.Snapshot{
		Now: now, Name: "lockfaultd", Version: "1.0.0", Since: ago(26 * time.Hour), Control: true,
		Sources: []live.Source{
			{Name: "postgres", Address: "127.0.0.1:15432 → db.staging:5432", Up: true, At: now},
			{Name: "redis", Address: "127.0.0.1:16379 → cache.staging:6379", Up: true, At: now},
		},
		Locks: []live.Lock{
			{Name: "lock:counter", Held: true, Holder: "worker-1", Since: ago(1120 * ms), TTL: 800, EndsFrom: ago(321 * ms), EndsTo: ago(312 * ms), Overrun: true, Waiters: 1, Fence: ptr(int64(41)), Margin: ptr(212.0)},
			{Name: "lock:counter", Held: true, Holder: "worker-2", Since: ago(180 * ms), TTL: 800, EndsFrom: in(611 * ms), EndsTo: in(625 * ms), Waiters: 1, Fence: ptr(int64(42))},
			{Name: "lock:invoice:2026-11", Held: true, Holder: "billing", Since: ago(4 * time.Second), TTL: 30000, EndsFrom: in(25900 * ms), EndsTo: in(26200 * ms), Margin: ptr(27110.0)},
			{Name: "lock:nightly-import", Held: true, Holder: "importer-7f9c4d", Since: ago(13 * time.Minute)},
			{Name: "lock:orders:18823", Held: true, Holder: "worker-3", Since: ago(8600 * ms), TTL: 10000, EndsFrom: in(1200 * ms), EndsTo: in(1900 * ms), Waiters: 3, Fence: ptr(int64(9007199)), Margin: ptr(640.0)},
			{Name: "lock:report", Held: false},
			{Name: "pg:advisory:(42,7)", Held: true, Holder: "billing", Since: ago(2 * time.Second), TTL: 5000},
		},
		Actors: []live.Actor{
			{Label: "billing", State: live.Running, Sessions: 4, PID: 20411, Holds: []string{"lock:invoice:2026-11", "pg:advisory:(42,7)"}},
			{Label: "importer-7f9c4d", State: live.Running, Sessions: 1, PID: 20466, Holds: []string{"lock:nightly-import"}},
			{Label: "worker-1", State: live.Frozen, Until: in(480 * ms), By: "pause", Sessions: 2, PID: 20380, Holds: []string{"lock:counter"}},
			{Label: "worker-2", State: live.Running, Sessions: 2, PID: 20381, Holds: []string{"lock:counter"}},
			{Label: "worker-3", State: live.Stalled, Until: in(900 * ms), By: "slow-grant", Sessions: 2, PID: 20382, Holds: []string{"lock:orders:18823"}},
		},
		Rules: []live.Rule{
			{Name: "pause", Text: "--freeze-before 'write(counter)#*/20=ttl+20%,cooldown=5s'", Armed: true, Until: in(7*time.Minute + 12*time.Second), Seen: 412, Fired: 20, Barred: 3, Why: "barred: cooldown"},
			{Name: "slow-grant", Text: "--stall-after 'SETNX(lock:orders:*)=800ms'", Armed: true, Left: ptr(4), Seen: 96, Fired: 6},
			{Name: "reset", Text: "--reset-before 'commit#3'", Seen: 0, Fired: 0},
			{Name: "rule-4", Text: "--lose-key 'acquire(lock:counter)#1'", Seen: 1, Fired: 1, Why: "spent: it was armed for once"},
		},
		Gaps:   1,
		Unseen: []live.Gap{{At: ago(41 * time.Second), To: ago(39 * time.Second), Lost: 1204, Why: "the disk took the history more slowly than it came"}},
	}
	s.Marks = minute(now)
	return s
}

// minute is a timeline with each kind of mark.
func minute(now time.Time) []live.Mark {
	var marks []live.Mark
	at := func(ms int) time.Time {
		return now.Truncate(100 * time.Millisecond).Add(-time.Duration(ms) * time.Millisecond)
	}
	step := int(now.UnixMilli() / 100 % 10000)
	for i := range 50 {
		from := 60000 - i*1200 - step%12*100
		worker := fmt.Sprintf("worker-%d", 1+i%3)
		if i%16 == 7 {
			marks = append(marks, live.Mark{At: at(from), To: at(from - 2100), Kind: live.MarkSection, Lock: "lock:counter", Actor: "worker-2", Text: "fence 33"},
				live.Mark{At: at(from - 300), To: at(from - 1500), Kind: live.MarkFreeze, Actor: "worker-2", Text: "pause"},
				live.Mark{At: at(from - 1620), Kind: live.MarkRejected, Lock: "lock:counter", Actor: "worker-2", Text: "counter: UPDATE 0"})
			continue
		}
		marks = append(marks, live.Mark{At: at(from), To: at(from - 640), Kind: live.MarkSection, Lock: "lock:counter", Actor: worker},
			live.Mark{At: at(from - 420), Kind: live.MarkWrite, Lock: "lock:counter", Actor: worker, Text: "counter"})
		if i%5 == 2 {
			marks = append(marks, live.Mark{At: at(from - 150), Kind: live.MarkRefusal, Lock: "lock:counter", Actor: fmt.Sprintf("worker-%d", 1+(i+1)%3)})
		}
	}
	return append(marks,
		live.Mark{At: at(41000), To: at(39000), Kind: live.MarkGap, Text: "the disk took the history more slowly than it came"},
		live.Mark{At: at(52000), To: at(47200), Kind: live.MarkSection, Lock: "lock:invoice:2026-10", Actor: "billing"},
		live.Mark{At: at(30000), To: at(22000), Kind: live.MarkSection, Lock: "lock:invoice:2026-11", Actor: "billing"},
		live.Mark{At: at(26000), Kind: live.MarkInjection, Actor: "billing", Text: "reset"},
		live.Mark{At: at(57000), To: at(53000), Kind: live.MarkRefusal, Lock: "lock:invoice:2026-10", Actor: "importer-7f9c4d", Text: "214 times"},
		live.Mark{At: at(28000), To: at(24000), Kind: live.MarkWrite, Actor: "billing", Text: "38 times"},
		live.Mark{At: at(34500), Kind: live.MarkVerdict, Lock: "lock:counter", Text: "LF101 lease-overrun"},
		live.Mark{At: at(14500), Kind: live.MarkVerdict, Lock: "lock:counter", Text: "LF104 lost-update"},
		live.Mark{At: at(4000), Open: true, Kind: live.MarkSection, Lock: "lock:invoice:2026-11", Actor: "billing"},
		live.Mark{At: at(59000), Open: true, Kind: live.MarkSection, Lock: "lock:nightly-import", Actor: "importer-7f9c4d"},
		live.Mark{At: at(9000), To: at(8100), Kind: live.MarkStall, Actor: "worker-3", Text: "slow-grant"},
		live.Mark{At: at(1100), Open: true, Kind: live.MarkStall, Actor: "worker-3", Text: "slow-grant"},
		live.Mark{At: at(900), Open: true, Kind: live.MarkFreeze, Actor: "worker-1", Text: "pause"},
	)
}

// judged is what probe might have found of it.
func judged(now time.Time) live.Snapshot {
	ago := func(d time.Duration) time.Time { return now.Truncate(time.Second).Add(-d) }
	s := busy(now)
	s.Name, s.Control, s.Rules = "probe", false, nil
	s.Sources = []live.Source{
		{Name: "daemon", Address: "http://127.0.0.1:8474", Up: true, At: now, Text: "12 ms behind"},
		{Name: "postgres", Address: "db.staging:5432", Up: false, At: ago(9 * time.Second), Text: "connection refused"},
		{Name: "redis", Address: "cache.staging:6379", Up: true, At: now},
	}
	s.Verdicts = []live.Verdict{
		{At: ago(14 * time.Second), Code: "LF104", Name: "lost-update", Level: live.Proven, Class: live.Harm, Harm: true, Lock: "lock:counter", Table: "counter", Count: 1, Proof: "worker-1 read 106 at 3.101 s and wrote 107 at 4.322 s; worker-2 read 106 at 3.902 s and wrote 107 at 4.017 s. The update of worker-2 is lost."},
		{At: ago(34 * time.Second), Code: "LF101", Name: "lease-overrun", Level: live.Proven, Class: live.Hazard, Lock: "lock:counter", Count: 3, Proof: "worker-2 wrote 312 ms after its lease had certainly ended."},
		{At: ago(50 * time.Second), Code: "LF201", Name: "fence-rejected", Level: live.Proven, Class: live.Good, Lock: "lock:counter", Table: "counter", Count: 12, Proof: "UPDATE counter answered 0 rows: its fence 32 was lower than 33."},
		{At: ago(4 * time.Minute), Code: "LF305", Name: "double-grant", Level: live.Likely, Class: live.Declared, Lock: "lock:report", Count: 1, Proof: "The record has a gap between the two grants."},
		{At: ago(9 * time.Minute), Code: "LF402", Name: "blind-spot", Level: live.Possible, Class: live.Inconclusive, Table: "audit", Count: 1, Proof: "The table's own counts say that somebody wrote past the proxy."},
	}
	s.Invariants = []live.Invariant{
		{Name: "counter", Kind: "acked", State: live.Broken, Value: "1041", At: ago(0), Text: "expected 1042 to 1044"},
		{Name: "ledger", Kind: "sum", State: live.Holds, Value: "18 200 = 18 200", At: ago(0)},
		{Name: "orphans", Kind: "zero", State: live.Unknown, At: ago(9 * time.Second), Text: "connection refused"},
		{Name: "fence", Kind: "fence", State: live.Holds, Value: "42", At: ago(0)},
	}
	return s
}

// hostile has markup and control characters wherever a name may come from the wire.
func hostile(now time.Time) live.Snapshot {
	const evil = "<script>window.hurt=1</script><img src=x onerror=\"window.hurt=1\">"
	const odd = "a\u202eb\x00\x1b[31m\nc"
	s := judged(now)
	s.Control = true
	s.Name, s.Version = "probe"+evil, evil
	s.Sources = append(s.Sources, live.Source{Name: evil, Address: odd, Text: evil})
	s.Locks = append(s.Locks, live.Lock{Name: evil, Held: true, Holder: evil, Since: now, TTL: 1000, EndsFrom: now.Add(time.Second), EndsTo: now.Add(time.Second)}, live.Lock{Name: odd}, live.Lock{Name: "__proto__"})
	s.Actors = append(s.Actors, live.Actor{Label: evil, State: evil, By: evil, Holds: []string{evil, odd}})
	s.Rules = append(s.Rules, live.Rule{Name: evil, Text: evil, Armed: true, Why: evil}, live.Rule{Name: "../../v1/stop?x#y", Text: odd})
	s.Verdicts = append(s.Verdicts, live.Verdict{At: now, Code: evil, Name: evil, Level: evil, Class: evil, Lock: evil, Table: odd, Proof: evil})
	s.Invariants = append(s.Invariants, live.Invariant{Name: evil, Kind: evil, State: evil, Value: evil, Text: evil})
	s.Marks = append(s.Marks, live.Mark{At: now, Kind: evil, Actor: evil, Lock: evil, Text: evil}, live.Mark{At: now, Kind: live.MarkSection, Actor: "constructor", Lock: odd, Open: true})
	s.Unseen = append(s.Unseen, live.Gap{At: now, Why: evil})
	return s
}

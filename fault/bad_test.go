package fault

import (
	"errors"
	"strings"
	"testing"
)

// bad lists rules that must be refused, with the words in which they are. A
// flag other than stall-after stands before a space.
var bad = []struct{ rule, want string }{
	// Events.
	{"", `--stall-after: "": column 1: expected an event such as acquire, write or SETNX, found the end`},
	{"=800ms", `--stall-after: =800ms: column 1: expected an event such as acquire, write or SETNX, found '='`},
	{"setnx=800ms", `--stall-after: setnx=800ms: column 1: unknown event "setnx", the nearest known one is SETNX`},
	{"Acquire=800ms", `--stall-after: Acquire=800ms: column 1: unknown event "Acquire", the nearest known one is acquire`},
	{"WRITE=800ms", `--stall-after: WRITE=800ms: column 1: unknown event "WRITE", the nearest known one is write`},
	{"UPDAT(counter)=800ms", `--stall-after: UPDAT(counter)=800ms: column 1: unknown event "UPDAT", the nearest known one is UPDATE`},
	{"aquire=800ms", `--stall-after: aquire=800ms: column 1: unknown event "aquire", the nearest known one is acquire`},
	{"lock=800ms", `--stall-after: lock=800ms: column 1: unknown event "lock", the nearest known one is LOCK`},
	{"mysql:UPDATE=800ms", `--stall-after: mysql:UPDATE=800ms: column 1: unknown protocol "mysql", expected redis: or pg:`},
	{":UPDATE=800ms", `--stall-after: :UPDATE=800ms: column 1: unknown protocol "", expected redis: or pg:`},
	{"redis:UPDATE=800ms", `--stall-after: redis:UPDATE=800ms: column 7: redis has no event UPDATE, which is one of pg only`},
	{"redis:write=800ms", `--stall-after: redis:write=800ms: column 7: redis has no event write, which is one of pg only`},
	{"pg:SETNX=800ms", `--stall-after: pg:SETNX=800ms: column 4: pg has no event SETNX, which is one of redis only`},
	{"redis:tick(1s)=800ms", `--stall-after: redis:tick(1s)=800ms: column 7: tick is the clock's, expected no protocol before it`},
	{"redis:=800ms", `--stall-after: redis:=800ms: column 7: expected an event such as acquire, write or SETNX, found '='`},
	{"COPY=800ms", `--stall-after: COPY=800ms: column 1: COPY is both a Redis command and an SQL statement, expected redis:COPY or pg:COPY`},
	{" SETNX=800ms", `--stall-after: " SETNX=800ms": column 1: expected an event such as acquire, write or SETNX, found ' '`},
	{"SETNX =800ms", `--stall-after: SETNX =800ms: column 6: expected "(", "#", "@" or "=", found ' '`},

	// Globs.
	{"write(=800ms", `--stall-after: write(=800ms: column 6: "(" is never closed, expected ")" (a parenthesis in a name is written \( or \))`},
	{"write()=800ms", `--stall-after: write()=800ms: column 7: expected the name of a key or table, or no parentheses for every one`},
	{"write(a(b)=800ms", `--stall-after: write(a(b)=800ms: column 6: "(" is never closed, expected ")" (a parenthesis in a name is written \( or \))`},
	{`write(a\)=800ms`, `--stall-after: write(a\)=800ms: column 6: "(" is never closed, expected ")" (a parenthesis in a name is written \( or \))`},
	{"write(a))=800ms", `--stall-after: write(a))=800ms: column 9: expected "#", "@" or "=", found ')'`},
	{"BEGIN(counter)=800ms", `--stall-after: BEGIN(counter)=800ms: column 6: BEGIN names neither a key nor a table, expected no parentheses`},
	{"redis:SELECT(0)=800ms", `--stall-after: redis:SELECT(0)=800ms: column 13: SELECT names neither a key nor a table, expected no parentheses`},
	{"acquire#1(lock:*)=800ms", `--stall-after: acquire#1(lock:*)=800ms: column 10: expected "@" or "=", found '('`},

	// Selectors.
	{"write#=800ms", `--stall-after: write#=800ms: column 7: expected a number, a range such as 1-6, or */20 after #, found '='`},
	{"write#0=800ms", `--stall-after: write#0=800ms: column 7: events are counted from 1, expected 1 or more`},
	{"write#6-1=800ms", `--stall-after: write#6-1=800ms: column 9: the range ends at 1 before it begins at 6, expected 6 or more`},
	{"write#0-3=800ms", `--stall-after: write#0-3=800ms: column 7: events are counted from 1, expected 1 or more`},
	{"write#1-=800ms", `--stall-after: write#1-=800ms: column 9: expected the range's end, found '='`},
	{"write#*=800ms", `--stall-after: write#*=800ms: column 8: expected "/" and a number, as in #*/20, found '='`},
	{"write#*20=800ms", `--stall-after: write#*20=800ms: column 8: expected "/" and a number, as in #*/20, found '2'`},
	{"write#*/0=800ms", `--stall-after: write#*/0=800ms: column 9: events are counted from 1, expected 1 or more`},
	{"write#-1=800ms", `--stall-after: write#-1=800ms: column 7: expected a number, a range such as 1-6, or */20 after #, found '-'`},
	{"write#99999999999999999999=800ms", `--stall-after: write#99999999999999999999=800ms: column 7: 99999999999999999999 is too large, expected at most 1000000000`},
	{"write#1#2=800ms", `--stall-after: write#1#2=800ms: column 8: expected "@" or "=", found '#'`},
	{"write@=800ms", `--stall-after: write@=800ms: column 7: expected a percentage such as 5%, found '='`},
	{"write@5=800ms", `--stall-after: write@5=800ms: column 8: expected "%" after the number, found '='`},
	{"write@0%=800ms", `--stall-after: write@0%=800ms: column 7: a chance of 0% is out of range, expected more than 0% and at most 100%`},
	{"write@101%=800ms", `--stall-after: write@101%=800ms: column 7: a chance of 101% is out of range, expected more than 0% and at most 100%`},
	{"write@1.2.3%=800ms", `--stall-after: write@1.2.3%=800ms: column 7: expected a percentage such as 5%, found "1.2.3"`},
	{"write@5%#3=800ms", `--stall-after: write@5%#3=800ms: column 9: expected "=", found '#'`},

	// Effects.
	{"SETNX", `--stall-after: SETNX: column 6: the effect is missing, expected "=" and a duration such as =800ms`},
	{"SETNX,max=3", `--stall-after: SETNX,max=3: column 6: the effect is missing, expected "=" and a duration such as =800ms`},
	{"SETNX=", `--stall-after: SETNX=: column 7: expected a duration such as 800ms, or ttl with + - or * after it, found the end`},
	{"SETNX=800", `--stall-after: SETNX=800: column 10: expected a unit after 800: ns, us, ms, s, m or h`},
	{"SETNX=0", `--stall-after: SETNX=0: column 8: expected a unit after 0: ns, us, ms, s, m or h`},
	{"SETNX=-1s", `--stall-after: SETNX=-1s: column 7: a negative duration, expected a duration such as 800ms, or ttl with + - or * after it`},
	{"SETNX=1x", `--stall-after: SETNX=1x: column 7: expected a duration such as 800ms, or ttl with + - or * after it, found "1x"`},
	{"SETNX=9999999h", `--stall-after: SETNX=9999999h: column 7: expected a duration such as 800ms, or ttl with + - or * after it, found "9999999h"`},
	{"SETNX=99999999999h", `--stall-after: SETNX=99999999999h: column 7: expected a duration such as 800ms, or ttl with + - or * after it, found "99999999999h"`},
	{"SETNX=9999h", `--stall-after: SETNX=9999h: column 7: 9999h is too long, expected at most 8784h0m0s`},
	{"SETNX=1s=2s", `--stall-after: SETNX=1s=2s: column 9: expected "," or the end after the effect, found '='`},
	{"SETNX=800ms 900ms", `--stall-after: SETNX=800ms 900ms: column 12: expected "," or the end after the effect, found ' '`},
	{"SETNX=TTL", `--stall-after: SETNX=TTL: column 7: expected a duration such as 800ms, or ttl with + - or * after it, found "TTL"`},
	{"SETNX=ttl/2", `--stall-after: SETNX=ttl/2: column 10: expected "," or the end after the effect, found '/'`},
	{"SETNX=ttl*", `--stall-after: SETNX=ttl*: column 11: expected a factor such as 1.5, found the end`},
	{"SETNX=ttl*0", `--stall-after: SETNX=ttl*0: column 11: a factor of 0 is out of range, expected more than 0 and at most 1000`},
	{"SETNX=ttl*2000", `--stall-after: SETNX=ttl*2000: column 11: a factor of 2000 is out of range, expected more than 0 and at most 1000`},
	{"SETNX=ttl+", `--stall-after: SETNX=ttl+: column 11: expected a duration such as 300ms, or a percentage such as 20%, found the end`},
	{"SETNX=ttl+20", `--stall-after: SETNX=ttl+20: column 13: expected a unit after 20: ns, us, ms, s, m or h`},
	{"SETNX=ttl+-1s", `--stall-after: SETNX=ttl+-1s: column 11: a negative duration, expected a duration such as 300ms, or a percentage such as 20%`},
	{"SETNX=ttl+200000%", `--stall-after: SETNX=ttl+200000%: column 11: 200000% is out of range, expected at most 100000%`},
	{"SETNX=ttl+1s+2s", `--stall-after: SETNX=ttl+1s+2s: column 13: expected "," or the end after the effect, found '+'`},
	{"refused=ttl", `--stall-after: refused=ttl: column 9: a refused acquire has no lease, so ttl is unknown: expected a duration such as 800ms`},
	{"freeze-before refused=500ms", `--freeze-before: refused=500ms: column 1: a refusal is known only once the server has answered: expected --freeze-after`},
	{"stall-before acquire=ttl+1s", `--stall-before: acquire=ttl+1s: column 9: before an acquire there is no grant, so ttl is unknown: expected a duration such as 800ms, or --stall-after`},
	{"stall-before MSETNX=ttl", `--stall-before: MSETNX=ttl: column 8: before an acquire there is no grant, so ttl is unknown: expected a duration such as 800ms, or --stall-after`},
	{"stall-before SETNX=ttl", `--stall-before: SETNX=ttl: column 7: before an acquire there is no grant, so ttl is unknown: expected a duration such as 800ms, or --stall-after`},
	{"freeze-after tick(1s)=ttl", `--freeze-after: tick(1s)=ttl: column 10: a tick belongs to no lease, so ttl is unknown: expected a duration such as 800ms`},

	// Ticks.
	{"tick=800ms", `--stall-after: tick=800ms: column 5: expected a period in parentheses, such as tick(1.5s), found '='`},
	{"tick()=800ms", `--stall-after: tick()=800ms: column 6: expected a period such as 1.5s, found ')'`},
	{"tick(0s)=800ms", `--stall-after: tick(0s)=800ms: column 6: a period of 0s is too short, expected at least 1ms`},
	{"tick(-1s)=800ms", `--stall-after: tick(-1s)=800ms: column 6: a negative duration, expected a period such as 1.5s`},
	{"tick(1s=800ms", `--stall-after: tick(1s=800ms: column 8: expected ")" after the period, found '='`},
	{"tick(1s)@5%=800ms", `--stall-after: tick(1s)@5%=800ms: column 9: tick takes no "@", expected "#", "=" or nothing`},
	{"tick(1s)", `--stall-after: tick(1s): column 9: the effect is missing, expected "=" and a duration such as =800ms`},
	{"tick(1s)(counter)=800ms", `--stall-after: tick(1s)(counter)=800ms: column 9: expected "#" or "=", found '('`},

	// Keys.
	{"SETNX=800ms,", `--stall-after: SETNX=800ms,: column 13: expected one of scope, per, max, cooldown, timeout, name, found the end`},
	{"SETNX=800ms,max", `--stall-after: SETNX=800ms,max: column 16: expected "=" after max, found the end`},
	{"SETNX=800ms,max=", `--stall-after: SETNX=800ms,max=: column 17: expected the most injections, a number, found the end`},
	{"SETNX=800ms,max=0", `--stall-after: SETNX=800ms,max=0: column 17: max=0 would never fire, expected 1 or more`},
	{"SETNX=800ms,max=-1", `--stall-after: SETNX=800ms,max=-1: column 17: expected the most injections, a number, found '-'`},
	{"SETNX=800ms,max=1,max=2", `--stall-after: SETNX=800ms,max=1,max=2: column 19: max is given twice, expected it once`},
	{"SETNX=800ms,cooldown=-1s", `--stall-after: SETNX=800ms,cooldown=-1s: column 22: a negative duration, expected a duration such as 10s`},
	{"SETNX=800ms,cooldown=10", `--stall-after: SETNX=800ms,cooldown=10: column 24: expected a unit after 10: ns, us, ms, s, m or h`},
	{"write#2=800ms,per=name", `--stall-after: write#2=800ms,per=name: column 19: unknown per=name, expected per=section`},
	{"write=800ms,per=section", `--stall-after: write=800ms,per=section: column 13: per=section is superfluous: it says what # counts, expected a selector such as #2`},
	{"write#2@5%=800ms,per=section", `--stall-after: write#2@5%=800ms,per=section: column 18: what is drawn is drawn for each name, expected the rule without per=section`},
	{"refused#2=800ms,per=section", `--stall-after: refused#2=800ms,per=section: column 17: such an event is in no section, expected the rule without per=section`},
	{"freeze-before acquire#2=1s,per=section", `--freeze-before: acquire#2=1s,per=section: column 14: such an event is in no section, expected the rule without per=section`},
	{"freeze-before SETNX#1=1s,per=section", `--freeze-before: SETNX#1=1s,per=section: column 12: such an event is in no section, expected the rule without per=section`},
	{"stall-before MSETNX#1=1s,per=section", `--stall-before: MSETNX#1=1s,per=section: column 13: such an event is in no section, expected the rule without per=section`},
	{"reset-after SETNX#1,per=section", `--reset-after: SETNX#1,per=section: column 9: such an event is in no section, expected the rule without per=section`},
	{"tick(1s)#2=800ms,per=section", `--stall-after: tick(1s)#2=800ms,per=section: column 18: such an event is in no section, expected the rule without per=section`},
	{"SETNX=800ms,colldown=10s", `--stall-after: SETNX=800ms,colldown=10s: column 13: unknown key "colldown", the nearest known one is cooldown`},
	{"SETNX=800ms,timeout=5s", `--stall-after: SETNX=800ms,timeout=5s: column 13: timeout is superfluous: it ends a gate (until:), expected the rule without it`},
	{"SETNX=800ms,timeout=x", `--stall-after: SETNX=800ms,timeout=x: column 21: expected a duration such as 5s, found "x"`},
	{"SETNX=800ms,mode=fast", `--stall-after: SETNX=800ms,mode=fast: column 18: not yet: mode is not built, expected the rule without it`},
	{"SETNX=800ms,name=", `--stall-after: SETNX=800ms,name=: column 18: expected a name of letters, digits and _ - . : /, found the end`},
	{"SETNX=800ms,name=a b", `--stall-after: SETNX=800ms,name=a b: column 19: expected a name of letters, digits and _ - . : /, found ' '`},
	{"SETNX=800ms,scope=", `--stall-after: SETNX=800ms,scope=: column 19: unknown scope "", expected conn or process`},
	{"SETNX=800ms,scope=thread", `--stall-after: SETNX=800ms,scope=thread: column 19: unknown scope "thread", expected conn or process`},
	{"SETNX=800ms,scope=tree", `--stall-after: SETNX=800ms,scope=tree: column 19: not yet: scope=tree is not built for a stall, expected conn or process`},
	{"SETNX=800ms,scope=cgroup", `--stall-after: SETNX=800ms,scope=cgroup: column 19: not yet: scope=cgroup is not built for a stall, expected conn or process`},
	{"freeze-after SETNX=800ms,scope=conn", `--freeze-after: SETNX=800ms,scope=conn: column 19: only a process can be frozen, not a connection: expected scope=process or scope=cgroup, or --stall-after`},
	{"freeze-after SETNX=800ms,scope=trees", `--freeze-after: SETNX=800ms,scope=trees: column 19: unknown scope "trees", expected process, tree or cgroup`},
	{"tick(1s)=800ms,scope=conn", `--stall-after: tick(1s)=800ms,scope=conn: column 22: a tick has no connection, expected scope=process`},
	{"tick(1s)=800ms,scope=thread", `--stall-after: tick(1s)=800ms,scope=thread: column 22: unknown scope "thread", expected process`},

	// Gates.
	{"freeze-before write=until:", `--freeze-before: write=until:: column 13: expected a condition such as next-write, found the end`},
	{"freeze-before write=until:next-wrte", `--freeze-before: write=until:next-wrte: column 13: unknown condition "next-wrte", the nearest known one is next-write`},
	{"freeze-before write=until:signal:", `--freeze-before: write=until:signal:: column 20: expected the signal's name, found the end`},
	{"freeze-before write=until:next-write+", `--freeze-before: write=until:next-write+: column 24: expected a condition such as next-write, found the end`},
	{"freeze-before write=until:next-write+next-write", `--freeze-before: write=until:next-write+next-write: column 24: next-write is given twice, expected it once`},
	{"stall-before acquire=until:lease-expired", `--stall-before: acquire=until:lease-expired: column 9: there is no lease yet that could expire: expected other conditions, or --stall-after acquire`},
	{"freeze-after release=until:next-acquire+lease-expired", `--freeze-after: release=until:next-acquire+lease-expired: column 9: after a release there is no lease any more that could expire: expected other conditions, or --freeze-before release`},
	{"hold-reply release=until:lease-expired", `--hold-reply: release=until:lease-expired: column 9: after a release there is no lease any more that could expire: expected other conditions, or --hold release`},
	{"freeze-before tick(1s)=until:next-write", `--freeze-before: tick(1s)=until:next-write: column 10: a tick holds no op, so there is no lock that a gate could listen to: expected a duration such as 800ms`},
	{"freeze-before write=until:next-write,timeout=0s", `--freeze-before: write=until:next-write,timeout=0s: column 32: timeout=0s would wait for nothing, expected more`},

	// Flags that say all, and those of one connection.
	{"drop-reply write=800ms", `--drop-reply: write=800ms: column 7: the effect is superfluous: a drop-reply takes no time, expected the rule without it`},
	{"reset-before write=ttl", `--reset-before: write=ttl: column 7: the effect is superfluous: a reset-before takes no time, expected the rule without it`},
	{"drop-reply write!", `--drop-reply: write!: column 6: expected "(", "#", "@" or ",", found '!'`},
	{"drop-reply write(a)#1!", `--drop-reply: write(a)#1!: column 11: expected "@" or ",", found '!'`},
	{"drop-reply write@5%!", `--drop-reply: write@5%!: column 9: expected ",", found '!'`},
	{"drop-reply write,timeout=1s", `--drop-reply: write,timeout=1s: column 7: timeout is superfluous: it ends a gate (until:), expected the rule without it`},
	{"drop-reply write,scope=process", `--drop-reply: write,scope=process: column 13: a drop-reply is of one connection, expected the rule without scope=process`},
	{"hold write=1s,scope=process", `--hold: write=1s,scope=process: column 16: a hold is of one connection, expected the rule without scope=process`},
	{"hold-reply tick(1s)=1s", `--hold-reply: tick(1s)=1s: column 1: a tick holds no message that a hold-reply could be about: expected an event such as acquire or write`},
	{"hold write", `--hold: write: column 6: the effect is missing, expected "=" and a duration such as =800ms`},
	{"hold refused=1s", `--hold: refused=1s: column 1: a refusal is known only once the server has answered: expected --hold-reply`},
	{"hold acquire=ttl", `--hold: acquire=ttl: column 9: before an acquire there is no grant, so ttl is unknown: expected a duration such as 800ms, or --hold-reply`},
	{"hold acquire=until:lease-expired", `--hold: acquire=until:lease-expired: column 9: there is no lease yet that could expire: expected other conditions, or --hold-reply acquire`},
	{"reset-before refused", `--reset-before: refused: column 1: a refusal is known only once the server has answered: expected --drop-reply`},
	{"reset-after refused", `--reset-after: refused: column 1: a refusal is known only once the server has answered: expected --drop-reply`},
	{"lose-key acquire=1s", `--lose-key: acquire=1s: column 9: the effect is superfluous: a lose-key takes no time, expected the rule without it`},
	{"lose-key pg:acquire", `--lose-key: pg:acquire: column 1: a lock of Postgres is no key: expected an event of Redis, or --kill-backend`},
	{"lose-key release", `--lose-key: release: column 1: a release has given the lock back, so there is none to lose: expected an event before it such as acquire or write`},
	{"lose-key tick(1s)", `--lose-key: tick(1s): column 1: a tick holds no message that a lose-key could be about: expected an event such as acquire or write`},
	{"lose-key write,scope=process", `--lose-key: write,scope=process: column 13: a lose-key is of one connection, expected the rule without scope=process`},
	{"kill-backend redis:acquire", `--kill-backend: redis:acquire: column 1: a lock of Redis is no connection's: expected an event of Postgres, or --lose-key`},
	{"kill-backend SETNX", `--kill-backend: SETNX: column 1: a lock of Redis is no connection's: expected an event of Postgres, or --lose-key`},
	{"kill-backend release", `--kill-backend: release: column 1: a release has given the lock back, so there is none to lose: expected an event before it such as acquire or write`},
	{"kill-backend refused", `--kill-backend: refused: column 1: one who was refused has no lock that could be lost: expected acquire`},

	// Unknown ones.
	{"stal-after SETNX=800ms", `--stal-after: no such rule flag, expected one like --stall-after`},

	// What a terminal should not be shown as it is.
	{"SETNX\x1b[31m=800ms", `--stall-after: "SETNX\x1b[31m=800ms": column 6: expected "(", "#", "@" or "=", found '\x1b'`},
	{"écrire=800ms", `--stall-after: écrire=800ms: column 1: expected an event such as acquire, write or SETNX, found 'é'`},
	{"write(é)=8", `--stall-after: write(é)=8: column 11: expected a unit after 8: ns, us, ms, s, m or h`},
}

func split(rule string) (flag, text string) {
	for _, f := range append(Flags(), Flag{Name: "stal-after"}) {
		if rest, ok := strings.CutPrefix(rule, f.Name+" "); ok {
			return f.Name, rest
		}
	}
	return "stall-after", rule
}

func TestBadRules(t *testing.T) {
	if len(bad) < 40 {
		t.Fatalf("%d bad rules, want 40 or more", len(bad))
	}
	for _, b := range bad {
		flag, text := split(b.rule)
		r, err := Parse(flag, text)
		if err == nil {
			t.Errorf("%q: parsed as %q, want %s", b.rule, r, b.want)
			continue
		}
		if err.Error() != b.want {
			t.Errorf("%q:\n got %s\nwant %s", b.rule, err, b.want)
		}
		var e *Error
		if !errors.As(err, &e) || e.Flag != flag || e.Text != text || e.Offset > len(text) {
			t.Errorf("%q: %#v", b.rule, err)
		}
		if r != (Rule{}) {
			t.Errorf("%q: a rule besides the error", b.rule)
		}
	}
}

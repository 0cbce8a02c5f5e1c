package fault

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockfaultd/lockfaultd/internal/nearest"
	"github.com/lockfaultd/lockfaultd/lock"
)

const ms = time.Millisecond

func TestGoodRules(t *testing.T) {
	for _, g := range []struct {
		flag, text string
		want       Rule
		canonical  string // "" when it is the text
	}{
		{"stall-after", "SETNX=800ms",
			Rule{At: After, Do: Stall, Proto: lock.Redis, Event: "SETNX", For: Length{Fixed: 800 * ms}, Scope: ScopeConn}, ""},
		{"freeze-before", "UPDATE(counter)#*/20=800ms",
			Rule{At: Before, Do: Freeze, Proto: lock.Postgres, Event: "UPDATE", Glob: "counter", Select: Selector{Every: 20}, For: Length{Fixed: 800 * ms}, Scope: ScopeProcess}, ""},
		{"freeze-after", "read(counter)#1-6=ttl+300ms",
			Rule{At: After, Do: Freeze, Proto: lock.Postgres, Event: "read", Glob: "counter", Select: Selector{From: 1, To: 6}, For: Length{TTL: true, Fixed: 300 * ms}, Scope: ScopeProcess}, ""},
		{"freeze-after", "tick(1.5s)#1-6=800ms",
			Rule{At: After, Do: Freeze, Event: tick, Period: 1500 * ms, Select: Selector{From: 1, To: 6}, For: Length{Fixed: 800 * ms}, Scope: ScopeProcess}, ""},
		{"freeze-before", "tick(90s)=1s,scope=cgroup",
			Rule{At: Before, Do: Freeze, Event: tick, Period: 90 * time.Second, For: Length{Fixed: time.Second}, Scope: ScopeCgroup}, "tick(1m30s)=1s,scope=cgroup"},
		{"freeze-before", "tick(1s)=1s,scope=tree",
			Rule{At: Before, Do: Freeze, Event: tick, Period: time.Second, For: Length{Fixed: time.Second}, Scope: ScopeTree}, ""},
		{"stall-after", "tick(1s)=1s",
			Rule{At: After, Do: Stall, Event: tick, Period: time.Second, For: Length{Fixed: time.Second}, Scope: ScopeProcess}, ""},
		{"freeze-after", "acquire=ttl+20%",
			Rule{At: After, Do: Freeze, Event: "acquire", For: Length{TTL: true, Percent: 20}, Scope: ScopeProcess}, ""},
		{"freeze-after", "acquire(lock:billing:*)@0.5%=ttl-200ms,max=6,cooldown=10m",
			Rule{At: After, Do: Freeze, Event: "acquire", Glob: "lock:billing:*", Chance: 0.5, For: Length{TTL: true, Fixed: -200 * ms}, Scope: ScopeProcess, Max: 6, Cooldown: 10 * time.Minute},
			"acquire(lock:billing:*)@0.5%=ttl-200ms,max=6,cooldown=10m0s"},
		{"stall-before", "release(lock:a)#3@50%=ttl*1.5,name=late.release,scope=process",
			Rule{At: Before, Do: Stall, Event: "release", Glob: "lock:a", Select: Selector{From: 3, To: 3}, Chance: 50, For: Length{TTL: true, Times: 1.5}, Scope: ScopeProcess, Name: "late.release"},
			"release(lock:a)#3@50%=ttl*1.5,scope=process,name=late.release"},
		{"stall-after", "refused=0s",
			Rule{At: After, Do: Stall, Event: "refused", Scope: ScopeConn}, ""},
		{"stall-after", "commit=ttl-10%",
			Rule{At: After, Do: Stall, Proto: lock.Postgres, Event: "commit", For: Length{TTL: true, Percent: -10}, Scope: ScopeConn}, ""},
		{"stall-after", "SET=ttl",
			Rule{At: After, Do: Stall, Proto: lock.Redis, Event: "SET", For: Length{TTL: true}, Scope: ScopeConn}, ""},
		{"stall-before", "SELECT=1s",
			Rule{At: Before, Do: Stall, Proto: lock.Postgres, Event: "SELECT", For: Length{Fixed: time.Second}, Scope: ScopeConn}, ""},
		{"stall-before", "redis:SELECT=1s",
			Rule{At: Before, Do: Stall, Proto: lock.Redis, Event: "SELECT", For: Length{Fixed: time.Second}, Scope: ScopeConn}, ""},
		{"stall-before", "pg:SET=1s",
			Rule{At: Before, Do: Stall, Proto: lock.Postgres, Event: "SET", For: Length{Fixed: time.Second}, Scope: ScopeConn}, ""},
		{"stall-before", "pg:COPY(jobs)=1s",
			Rule{At: Before, Do: Stall, Proto: lock.Postgres, Event: "COPY", Glob: "jobs", For: Length{Fixed: time.Second}, Scope: ScopeConn}, ""},
		{"stall-before", "redis:acquire=1s,scope=conn",
			Rule{At: Before, Do: Stall, Proto: lock.Redis, Event: "acquire", For: Length{Fixed: time.Second}, Scope: ScopeConn}, "redis:acquire=1s"},
		{"stall-before", "pg:write=1s",
			Rule{At: Before, Do: Stall, Proto: lock.Postgres, Event: "write", For: Length{Fixed: time.Second}, Scope: ScopeConn}, "write=1s"},
		{"stall-before", `DEL(a(b)\)\*c,=#@)#7-7=1500us`,
			Rule{At: Before, Do: Stall, Proto: lock.Redis, Event: "DEL", Glob: `a(b)\)\*c,=#@`, Select: Selector{From: 7, To: 7}, For: Length{Fixed: 1500 * time.Microsecond}, Scope: ScopeConn},
			`DEL(a(b)\)\*c,=#@)#7=1.5ms`},
		{"hold", "renew#1=until:lease-expired+next-acquire,scope=conn",
			Rule{At: Before, Do: Hold, Event: "renew", Select: Selector{From: 1, To: 1}, Until: "lease-expired+next-acquire", Scope: ScopeConn}, "renew#1=until:lease-expired+next-acquire"},
		{"hold-reply", "acquire(lock:*)=ttl+300ms",
			Rule{At: After, Do: Hold, Event: "acquire", Glob: "lock:*", For: Length{TTL: true, Fixed: 300 * ms}, Scope: ScopeConn}, ""},
		{"drop-reply", "refused",
			Rule{At: After, Do: Drop, Event: "refused", Scope: ScopeConn}, ""},
		{"drop-reply", "commit(counter)#*/20@5%,max=3,cooldown=1s,name=lost",
			Rule{At: After, Do: Drop, Proto: lock.Postgres, Event: "commit", Glob: "counter", Select: Selector{Every: 20}, Chance: 5, Scope: ScopeConn, Max: 3, Cooldown: time.Second, Name: "lost"}, ""},
		{"freeze-before", "write(counter)#2=ttl,max=1,per=section",
			Rule{At: Before, Do: Freeze, Proto: lock.Postgres, Event: "write", Glob: "counter", Select: Selector{From: 2, To: 2}, PerSection: true, For: Length{TTL: true}, Scope: ScopeProcess, Max: 1}, "write(counter)#2=ttl,per=section,max=1"},
		{"reset-before", "SETNX#1",
			Rule{At: Before, Do: Reset, Proto: lock.Redis, Event: "SETNX", Select: Selector{From: 1, To: 1}, Scope: ScopeConn}, ""},
		{"lose-key", "write(counter)#1",
			Rule{At: After, Do: Lose, Proto: lock.Postgres, Event: "write", Glob: "counter", Select: Selector{From: 1, To: 1}, Scope: ScopeConn}, ""},
		{"lose-key", "acquire,max=1",
			Rule{At: After, Do: Lose, Event: "acquire", Scope: ScopeConn, Max: 1}, ""},
		{"kill-backend", "acquire(advisory:*)#2",
			Rule{At: After, Do: Kill, Event: "acquire", Glob: "advisory:*", Select: Selector{From: 2, To: 2}, Scope: ScopeConn}, ""},
		{"reset-after", "write",
			Rule{At: After, Do: Reset, Proto: lock.Postgres, Event: "write", Scope: ScopeConn}, ""},
		{"stall-after", "COMMIT(counter)#1=ttl+0s",
			Rule{At: After, Do: Stall, Proto: lock.Postgres, Event: "COMMIT", Glob: "counter", Select: Selector{From: 1, To: 1}, For: Length{TTL: true}, Scope: ScopeConn}, "COMMIT(counter)#1=ttl"},
	} {
		got, err := Parse(g.flag, g.text)
		if err != nil {
			t.Error(err)
			continue
		}
		g.want.Text = "--" + g.flag + " " + g.text
		if got != g.want {
			t.Errorf("%s:\n got %#v\nwant %#v", g.text, got, g.want)
		}
		if g.canonical == "" {
			g.canonical = g.text
		}
		if got.String() != g.canonical || got.Flag() != g.flag {
			t.Errorf("%s: String %s, Flag %s", g.text, got, got.Flag())
		}
	}
}

// again parses a rule's own text and forgets how each was typed.
func again(t interface{ Fatalf(string, ...any) }, r Rule) {
	back, err := Parse(r.Flag(), r.String())
	if err != nil {
		t.Fatalf("String does not parse: %v", err)
	}
	back.Text, r.Text = "", ""
	if back != r {
		t.Fatalf("String %s means another rule:\n got %#v\nwant %#v", r, back, r)
	}
}

func TestStringParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := rapid.SampledFrom(Flags()).Draw(t, "flag")
		text := genRule(flag.Do).Draw(t, "text")
		r, err := Parse(flag.Name, text)
		if err != nil {
			if strings.Contains(err.Error(), "no grant") || strings.Contains(err.Error(), "ttl is unknown") ||
				strings.Contains(err.Error(), "a refusal is known only") || strings.Contains(err.Error(), "that could be lost") ||
				strings.Contains(err.Error(), "to lose") || strings.Contains(err.Error(), "no key") || strings.Contains(err.Error(), "no connection") || strings.Contains(err.Error(), "per=section") {
				t.Skip("refused for its meaning")
			}
			t.Fatalf("%v", err)
		}
		again(t, r)
	})
}

// genRule writes rules by the grammar, each production on its own.
func genRule(do Act) *rapid.Generator[string] {
	pick := func(s ...string) *rapid.Generator[string] { return rapid.SampledFrom(s) }
	dur := rapid.Custom(func(t *rapid.T) string {
		d := rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "d")
		return time.Duration(d).String()
	})
	number := rapid.Custom(func(t *rapid.T) string {
		return decimal(rapid.Float64Range(0.001, 100).Draw(t, "f"))
	})
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.SampledFrom(append(classes(), "SETNX", "SET", "UPDATE", "SELECT", "COMMIT", "redis:SET", "pg:acquire", "redis:GET")).Draw(t, "event")
		s += pick("", "(counter)", "(lock:*)", `(a(b(c))\(*\\)`, "(=,@#)", "(public.counter)").Draw(t, "glob")
		s += pick("", "#1", "#2-9", "#*/20").Draw(t, "sel")
		if rapid.Bool().Draw(t, "chance") {
			s += "@" + number.Draw(t, "p") + "%"
		}
		effect := "=" + pick(dur.Draw(t, "for"), "ttl", "ttl*"+number.Draw(t, "times"), "ttl+"+dur.Draw(t, "more"),
			"ttl-"+dur.Draw(t, "less"), "ttl+"+number.Draw(t, "percent")+"%", "ttl-"+number.Draw(t, "lessp")+"%").Draw(t, "effect")
		if do.Lasts() {
			s += effect
		}
		keys := []string{"max=3", "per=section", "cooldown=" + dur.Draw(t, "cool"), "name=a-b.c"}
		if do == Stall || do == Freeze {
			keys = append(keys, "scope=process")
		}
		for _, key := range rapid.Permutation(keys).Draw(t, "keys") {
			if rapid.Bool().Draw(t, "key") {
				s += "," + key
			}
		}
		return s
	})
}

func FuzzParse(f *testing.F) {
	for _, b := range bad {
		flag, text := split(b.rule)
		f.Add(flag, text)
	}
	f.Add("stall-after", "SETNX=800ms")
	f.Add("freeze-after", `acquire(lock:\(*)#1-6@0.5%=ttl*1.5,max=6,cooldown=10m,scope=cgroup,name=x`)
	f.Add("freeze-after", "tick(1.5s)#*/2=800ms")
	f.Fuzz(func(t *testing.T, flag, text string) {
		r, err := Parse(flag, text)
		if err == nil {
			again(t, r)
			return
		}
		// A refusal names the place, or it is the flag that is refused.
		var e *Error
		if !errors.As(err, &e) || e.Offset > len(text) || e.Offset >= 0 && !strings.Contains(err.Error(), ": column ") || e.Offset < 0 && built(flag) {
			t.Errorf("%q: an error without its place: %v", text, err)
		}
		if s := err.Error(); strings.ContainsAny(strings.ReplaceAll(s, flag, ""), "\x00\n\x1b") {
			t.Errorf("an error that a terminal should not be shown: %q", s)
		}
	})
}

func built(flag string) bool {
	return slices.ContainsFunc(Flags(), func(f Flag) bool { return f.Name == flag })
}

func TestLengthIsClamped(t *testing.T) {
	for _, c := range []struct {
		text string
		ttl  time.Duration
		want time.Duration
	}{
		{"ttl", 500 * ms, 500 * ms},
		{"ttl*1.5", 500 * ms, 750 * ms},
		{"ttl+20%", 500 * ms, 600 * ms},
		{"ttl-20%", 500 * ms, 400 * ms},
		{"ttl-150%", 500 * ms, 0},
		{"ttl+300ms", 500 * ms, 800 * ms},
		{"ttl-1s", 500 * ms, 0},
		{"ttl*1000", 1<<63 - 1, longest},
		{"800ms", 500 * ms, 800 * ms},
	} {
		r, err := Parse("stall-after", "write="+c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.For.Of(c.ttl); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.text, c.ttl, got, c.want)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		glob, name string
		want       bool
	}{
		{"lock:counter", "lock:counter", true},
		{"lock:counter", "lock:counter2", false},
		{"lock:*", "lock:", true},
		{"lock:*", "loc", false},
		{"*:counter", "a:b:counter", true},
		{"*a*b*", "xxaxxabxx", true},
		{"*ab", "aab", true},
		{"*ab", "aba", false},
		{`a\*b`, "a*b", true},
		{`a\*b`, "axb", false},
		{`\(a\)`, "(a)", true},
		{`a\\b`, `a\b`, true},
		{"*", "", true},
		{"a?", "ab", false},
		{"a", "", false},
		{"é*", "écrire", true},
	} {
		if got := globMatch(c.glob, c.name); got != c.want {
			t.Errorf("%s on %s: %t", c.glob, c.name, got)
		}
	}
}

func TestEscapeKeepsMeaning(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune(`ab()*\é`)), 1, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		glob, name := text.Draw(t, "glob"), text.Draw(t, "name")
		r, err := Parse("stall-before", "DEL("+Escape(glob)+")=1s")
		if err != nil {
			t.Fatal(err)
		}
		if globMatch(r.Glob, name) != globMatch(glob, name) {
			t.Fatalf("%q and its escaped form %q part on %q", glob, r.Glob, name)
		}
		r, err = Parse("stall-before", "DEL("+Literal(name)+")=1s")
		if err != nil || !globMatch(r.Glob, name) || globMatch(r.Glob, glob) != (glob == name) {
			t.Fatalf("Literal(%q) is %q: %v", name, r.Glob, err)
		}
	})
}

// Every event that the tables list must compile, and name its nearest well.
func TestEveryEventCompiles(t *testing.T) {
	for proto, verbs := range map[lock.Protocol][]string{lock.Redis: redisVerbs(), lock.Postgres: pgVerbs(), "": classes()} {
		for _, v := range verbs {
			text := v + "=1s"
			if proto != "" {
				text = string(proto) + ":" + text
			}
			at := "stall-after"
			r, err := Parse(at, text)
			if err != nil || proto != "" && r.Proto != proto {
				t.Errorf("%s: %+v, %v", text, r, err)
				continue
			}
			again(t, r)
			if nearest.Word(strings.ToLower(v), known()) != v && proto != "" && !isClass(strings.ToLower(v)) {
				t.Errorf("nearest to %s is %s", strings.ToLower(v), nearest.Word(strings.ToLower(v), known()))
			}
		}
	}
}

package report

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

func lockOf(key string, grants int, ttls ...time.Duration) check.LockFact {
	return check.LockFact{Lock: key, Grants: grants, TTLs: ttls}
}

func TestSuggest(t *testing.T) {
	half := 500 * time.Millisecond
	for _, c := range []struct {
		name  string
		facts check.Facts
		want  []string
	}{
		{"counter", counterFacts(), []string{
			"--freeze-before 'write(counter)#*/20=ttl+300ms'",
			"--stall-after 'acquire(lock:counter)#1-3=ttl+20%'",
			"--freeze-after 'read(counter)#1-6=ttl+300ms'",
		}},
		{"nothing seen", check.Facts{}, nil},
		{"only refusals", check.Facts{Locks: []check.LockFact{lockOf("l", 0, half)}}, nil},
		{"only a marker", check.Facts{Locks: []check.LockFact{{Lock: "once", Grants: 3, Marker: true}}}, nil},
		{"only an unprintable key", check.Facts{Locks: []check.LockFact{lockOf("l\x00", 3, half)}}, nil},
		{"no table", check.Facts{Locks: []check.LockFact{lockOf("l", 3, 2*time.Second)}}, []string{
			"--stall-after 'acquire(l)#1-3=ttl+20%'",
			"--freeze-after 'tick(1.5s)#1-6=2.3s'",
			"--freeze-before 'release(l)#1-3=ttl+20%'",
		}},
		{"no lifetime", check.Facts{Locks: []check.LockFact{lockOf("l", 3, 0)}}, []string{
			"--stall-after 'acquire(l)#1-3=800ms'",
			"--freeze-after 'tick(1.5s)#1-6=800ms'",
			"--freeze-before 'release(l)#1-3=800ms'",
		}},
		{"no lifetime, and a table", check.Facts{Locks: []check.LockFact{lockOf("advisory:4711:7", 3, 0)},
			Tables: []check.TableFact{{Table: "x", Writes: 2, Reads: 2}}}, []string{
			"--freeze-before 'write(x)#*/20=800ms'",
			"--stall-after 'acquire(advisory:4711:7)#1-3=800ms'",
			"--freeze-after 'read(x)#1-6=800ms'",
		}},
		{"a table under a lock without a lifetime, beside one that has one", check.Facts{
			Locks:  []check.LockFact{lockOf("a", 9, 2*half), lockOf("advisory:1", 3, 0)},
			Tables: []check.TableFact{{Table: "x", Writes: 2, Lock: "advisory:1"}, {Table: "y", Reads: 2, Lock: "a"}}}, []string{
			"--freeze-before 'write(x)#*/20=800ms'",
			"--stall-after 'acquire(a)#1-3=ttl+20%'",
			"--freeze-after 'read(y)#1-6=ttl+300ms'",
		}},
		{"a row by its hash", check.Facts{Locks: []check.LockFact{lockOf("lease:job_lease:50672fb86d19feb2", 3, half)}}, []string{
			"--stall-after 'acquire(lease:job_lease:*)#1-3=ttl+20%'",
			"--freeze-after 'tick(1.5s)#1-6=800ms'",
			"--freeze-before 'release(lease:job_lease:*)#1-3=ttl+20%'",
		}},
		{"a key of Redis that is named alike", check.Facts{Locks: []check.LockFact{lockOf("lease:job:7", 3, half)}}, []string{
			"--stall-after 'acquire(lease:job:7)#1-3=ttl+20%'",
			"--freeze-after 'tick(1.5s)#1-6=800ms'",
			"--freeze-before 'release(lease:job:7)#1-3=ttl+20%'",
		}},
		{"names that the grammar and the shell read", check.Facts{
			Locks:  []check.LockFact{lockOf("bob's(*)", 3, half)},
			Tables: []check.TableFact{{Table: `a\b`, Writes: 1}},
		}, []string{
			`--freeze-before 'write(a\\b)#*/20=ttl+300ms'`,
			`--stall-after 'acquire(bob'\''s\(\*\))#1-3=ttl+20%'`,
			`--freeze-after 'tick(1.5s)#1-6=800ms'`,
		}},
		{"the busiest, in another database", check.Facts{
			Locks:  []check.LockFact{lockOf("a", 1, half), lockOf("b db 3", 2, half)},
			Tables: []check.TableFact{{Table: "x", Writes: 1, Reads: 9}, {Table: "y", Writes: 2}},
		}, []string{
			"--freeze-before 'write(y)#*/20=ttl+300ms'",
			"--stall-after 'acquire(b)#1-3=ttl+20%'",
			"--freeze-after 'read(x)#1-6=ttl+300ms'",
		}},
		{"a family of locks", check.Facts{Locks: []check.LockFact{
			lockOf("lock:order:1", 1, half), lockOf("lock:order:2", 1, half), lockOf("lock:order:3", 1, half)}}, []string{
			"--stall-after 'acquire(lock:order:*)#1-3=ttl+20%'",
			"--freeze-after 'tick(1.5s)#1-6=800ms'",
			"--freeze-before 'release(lock:order:*)#1-3=ttl+20%'",
		}},
	} {
		if got := Suggest(c.facts); !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// A shell gives the rule as it is meant, whatever is in a name.
func TestSuggestionsSurviveAShell(t *testing.T) {
	key := "it's $HOME `id` \"x\" (a) *"
	rules := Suggest(check.Facts{Locks: []check.LockFact{lockOf(key, 1, time.Second)}})
	out, err := exec.Command("sh", "-c", "printf '%s\n' "+rules[0]).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "--stall-after\nacquire(it's $HOME `id` \"x\" \\(a\\) \\*)#1-3=ttl+20%\n"
	if string(out) != want {
		t.Errorf("the shell read %q, want %q", out, want)
	}
}

// A command broken over lines is the same command to a shell.
func TestRepeatSurvivesAShell(t *testing.T) {
	command := `printf '%s\n' --freeze-before 'write(t)#*/20=ttl+300ms' --counter 'SELECT value FROM counter  WHERE id = 1' ` +
		`"a \" b" it\'s\ one -- sh -c 'one long command that does not fit with the others on one line, so it must go below'`
	var b strings.Builder
	p := &page{w: &b}
	p.shell("", command)
	if strings.Count(b.String(), "\n") < 2 {
		t.Fatalf("not broken: %s", b.String())
	}
	want, err := exec.Command("sh", "-c", command).Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command("sh", "-c", b.String()).Output()
	if err != nil || string(got) != string(want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"a b", []string{"a b"}},
		{"abcde fghij k", []string{"abcde", "fghij", "k"}},
		{"abcdefghijklmno p", []string{"abcdef", "ghijkl", "mno p"}},
		{"ééé ééé", []string{"ééé", "ééé"}},
	} {
		if got := wrap(c.text, 6); !slices.Equal(got, c.want) {
			t.Errorf("wrap(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

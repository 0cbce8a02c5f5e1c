package main

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
)

// scriptedClient has this binary be a client whose locks are scripts that the
// server knows, which it calls by their digests.
const scriptedClient = "scripted-client"

// sections is how often it takes its lock.
const sections = 60

// The scripts of the lock. Nobody sees them while lockfaultd stands before the
// server.
var lockScripts = map[string]string{
	"acquire": `if redis.call("exists", KEYS[1]) == 1 then return 0 end redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2]) return 1`,
	"renew":   `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) end return 0`,
	"release": `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`,
}

// A wire is a connection to a Redis.
type wire struct {
	c  net.Conn
	in *bufio.Reader
}

func wired(address string) (*wire, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &wire{c, bufio.NewReader(c)}, nil
}

// ask sends a command and returns the first line of its reply.
func (w *wire) ask(words ...string) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := w.c.Write(b.Bytes()); err != nil {
		return "", err
	}
	line, err := w.in.ReadString('\n')
	return strings.TrimSpace(line), err
}

// scripted takes a lock, is refused it on a second connection, renews it and
// gives it back, again and again.
func scripted(redisURL string) error {
	u, err := url.Parse(redisURL)
	if err != nil {
		return err
	}
	var holder, other *wire
	if holder, err = wired(u.Host); err != nil {
		return err
	}
	if other, err = wired(u.Host); err != nil {
		return err
	}
	if password := os.Getenv(clientPassword); password != "" {
		for _, w := range []*wire{holder, other} {
			if got, err := w.ask("AUTH", password); err != nil || got != "+OK" || os.Getenv(witnessPassword)+os.Getenv(witnessUser) != "" {
				return fmt.Errorf("log in: %s, %w; the witness's password is %q", got, err, os.Getenv(witnessPassword))
			}
		}
	}
	for i := range sections {
		token := fmt.Sprintf("token-of-section-%d", i)
		for _, step := range []struct {
			w    *wire
			want string
			call []string
		}{
			{holder, ":1", []string{"acquire", token, "30000"}},
			{other, ":0", []string{"acquire", "token-of-another", "30000"}},
			{holder, ":1", []string{"renew", token, "40000"}},
			{holder, ":1", []string{"release", token}},
		} {
			sum := sha1.Sum([]byte(lockScripts[step.call[0]]))
			got, err := step.w.ask(append([]string{"EVALSHA", hex.EncodeToString(sum[:]), "1", "lock:scripted"}, step.call[1:]...)...)
			if err != nil || got != step.want {
				return fmt.Errorf("%v: %s, %w", step.call, got, err)
			}
		}
	}
	return nil
}

// A run sees locks that are scripts which were there before it, by the witness
// that it is told to have.
func TestRunSeesScriptsThatWereThereBefore(t *testing.T) {
	for _, how := range []lock.Evidence{lock.FromMonitor, lock.FromProbe, "none", "auto"} {
		t.Run(string(how), func(t *testing.T) {
			server := testbed.Redis(t)
			w, err := wired(server.Addr())
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range lockScripts {
				if _, err := w.ask("SCRIPT", "LOAD", text); err != nil {
					t.Fatal(err)
				}
			}
			w.c.Close()
			t.Setenv("REDIS_URL", "redis://"+server.Addr()+"/0")
			t.Setenv("DATABASE_URL", "")
			out := t.TempDir()
			var said, told testbed.Log
			if code := Main([]string{"lockfaultd", "run", "--witness", string(how), "--out", out, "--", os.Args[0], scriptedClient}, &told, &said); code != 0 && code != 11 { // one of which the witness was late is a blind spot
				t.Fatalf("exit status %d\n%s%s", code, told.String(), said.String())
			}
			expectSections(t, how, readHistory(t, filepath.Join(out, "history.jsonl")))
			if strings.Contains(said.String(), "witness") {
				t.Errorf("said: %s", said.String())
			}
		})
	}
}

// clientPassword is the variable with a password that the scripted client alone
// knows.
const clientPassword = "SCRIPTED_CLIENT_PASSWORD"

// enough is what docs/witnesses.md says that a user for witnesses alone needs.
func enough(t *testing.T) []string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/witnesses.md")
	if err != nil {
		t.Fatal(err)
	}
	_, line, ok := strings.Cut(string(doc), "ACL SETUSER lockfaultd on >PASSWORD ")
	line, _, _ = strings.Cut(line, "\n")
	if !ok {
		t.Fatal("docs/witnesses.md has no user for witnesses")
	}
	return strings.Fields(line)
}

// Where clients log in with what only they know, witnesses have a login of their
// own, of a user that may do no more than they need.
func TestWitnessLogsInByItself(t *testing.T) {
	for _, how := range []lock.Evidence{lock.FromMonitor, lock.FromProbe} {
		t.Run(string(how), func(t *testing.T) {
			server := testbed.Redis(t)
			w, err := wired(server.Addr())
			if err != nil {
				t.Fatal(err)
			}
			setup := [][]string{
				append([]string{"ACL", "SETUSER", "lockfaultd", "on", ">sesame-witness"}, enough(t)...),
				{"CONFIG", "SET", "requirepass", "sesame-client"},
			}
			for _, text := range lockScripts {
				setup = append([][]string{{"SCRIPT", "LOAD", text}}, setup...)
			}
			for _, command := range setup {
				if got, err := w.ask(command...); err != nil || got[0] == '-' {
					t.Fatalf("%q: %s, %v", command, got, err)
				}
			}
			w.c.Close()
			t.Setenv("REDIS_URL", "redis://"+server.Addr()+"/0")
			t.Setenv("DATABASE_URL", "")
			t.Setenv(clientPassword, "sesame-client")
			run := func(user, password string) (*history.History, string) {
				t.Setenv(witnessUser, user)
				t.Setenv(witnessPassword, password)
				out := t.TempDir()
				said, err := os.Create(filepath.Join(out, "said")) // the command writes there too
				if err != nil {
					t.Fatal(err)
				}
				defer said.Close()
				code := Main([]string{"lockfaultd", "run", "--witness", string(how), "--out", out, "--", os.Args[0], scriptedClient}, said, said)
				text, err := os.ReadFile(said.Name())
				if err != nil || code != 0 && code != 11 {
					t.Fatalf("exit status %d, %v\n%s", code, err, text)
				}
				return readHistory(t, filepath.Join(out, "history.jsonl")), string(text)
			}
			h, said := run("lockfaultd", "sesame-witness")
			expectSections(t, how, h)
			if strings.Contains(said, "refused by") || strings.Contains(said, "sesame") {
				t.Errorf("said: %s", said)
			}
			if _, said := run("", ""); !strings.Contains(said, "a witness is refused by the server") {
				t.Errorf("without a login, said: %s", said)
			}
		})
	}
}

func readHistory(t *testing.T, file string) *history.History {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := history.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// expectSections wants what the client has done, as far as a witness was there in
// time, and nothing else by its evidence.
func expectSections(t *testing.T, how lock.Evidence, h *history.History) {
	t.Helper()
	count := map[string]int{}
	for _, op := range h.Ops {
		count[fmt.Sprintf("%s %s by %s", op.Kind, op.Outcome, op.Evidence)]++
	}
	if how == "none" {
		if count["acquire granted by monitor"]+count["acquire granted by probe"] > 0 || len(h.Clocks) > 0 {
			t.Errorf("without a witness: %v, %d looks at the clock", count, len(h.Clocks))
		}
		return
	}
	if how == "auto" {
		how = lock.FromMonitor
	}
	if len(h.Clocks) < 2 {
		t.Errorf("%d looks at the clock", len(h.Clocks))
	}
	want := []string{"acquire granted", "acquire refused", "renew done", "release done"}
	var told []*lock.Op // a witness may be late where the machine is busy
	first := uint64(math.MaxUint64)
	for _, op := range h.Ops {
		if op.Evidence != how {
			continue
		}
		if told = append(told, op); op.Outcome == lock.Granted {
			first = min(first, op.Seq)
		}
	}
	seen := 0
	var wrong []lock.Op
	for _, op := range told {
		switch {
		case slices.Contains(want, fmt.Sprintf("%s %s", op.Kind, op.Outcome)):
			seen++
		case op.Outcome == lock.Failed: // a guess that was taken back
		case op.Seq > first: // until then nobody knows what the script is for
			wrong = append(wrong, *op)
		}
	}
	for _, w := range want {
		if n := count[w+" by "+string(how)]; n == 0 || n > sections {
			t.Errorf("%d times %s, %d sections", n, w, sections)
		}
	}
	// The first look at a script that was refused may not know what it is for.
	if len(wrong) > 0 || seen < len(told)-2 || seen < 3*sections {
		t.Errorf("%d of %d calls were seen rightly, %d told, and wrongly %+v: %v", seen, 4*sections, len(told), wrong, count)
	}
}

// The number of an advisory lock that a statement computes is that which pg_locks
// shows, and a run counts the rows that anybody has written to what matters.
func TestRunSeesComputedAdvisoryLocksAndCountsRows(t *testing.T) {
	server := testbed.Postgres(t)
	program := needed(t, "psql", "Debian: postgresql-client")
	psql := func(sql string) string {
		out, err := exec.Command(program, "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-c", sql, server.URL()).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	psql("CREATE TABLE job (id int PRIMARY KEY, done int); INSERT INTO job VALUES (1, 0)")
	number := psql("SELECT hashtext('job')::bigint")
	t.Setenv("REDIS_URL", "")
	t.Setenv("DATABASE_URL", server.URL())
	t.Setenv("DIRECT_URL", server.URL())
	// A statement of its own each, since only then is there a reply to hold.
	script := `echo "SELECT pg_advisory_lock(hashtext('job')); UPDATE job SET done = done + 1 WHERE id = 1; SELECT pg_advisory_unlock(hashtext('job'));" |
		psql -X -q -v ON_ERROR_STOP=1 "$DATABASE_URL" && psql -X -q -c "UPDATE job SET done = 7 WHERE id = 1" "$DIRECT_URL"`
	want := []string{"acquire advisory:" + number + " granted pg_locks", "release advisory:" + number + " done pg_locks"}
	// A witness may be late where the machine is busy.
	for try := 1; ; try++ {
		out := t.TempDir()
		var told testbed.Log
		code := Main([]string{"lockfaultd", "run", "--out", out, "--lock", "advisory:*=job", "--", "sh", "-c", script}, &told, &told)
		h := readHistory(t, filepath.Join(out, "history.jsonl"))
		if code != 11 || !strings.Contains(told.String(), "someone") {
			t.Errorf("exit status %d, and nobody is said to have written past the proxy:\n%s", code, told.String())
		}
		if want := []history.Tally{{Upstream: "postgres", Table: "job", Updated: 2}}; !slices.Equal(h.Tallies, want) {
			t.Errorf("tallies %+v, want %+v", h.Tallies, want)
		}
		seen := locksOf(h)
		if slices.Equal(seen, want) {
			return
		}
		if try == 5 {
			t.Fatalf("ops %v, want %v", seen, want)
		}
	}
}

// locksOf says what became of the locks of a history.
func locksOf(h *history.History) (seen []string) {
	for _, op := range h.Ops {
		if op.Kind == lock.Acquire || op.Kind == lock.Release {
			seen = append(seen, fmt.Sprintf("%s %s %s %s", op.Kind, op.Key, op.Outcome, op.Evidence))
		}
	}
	return seen
}

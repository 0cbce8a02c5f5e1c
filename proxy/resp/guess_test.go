package resp

import (
	"strings"
	"sync"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

const (
	pyToken    = "ce8e6618ec1711f1941302fc00000001" // uuid1().hex
	base64Of16 = "jTHh0mZbS2CIS4BJpgIW1A=="         // redsync
	urlBase64  = "0xbBgXWqCwEOOQCL-z7fyQ"           // redislock, 22 bytes
)

// What libraries send when a server has their scripts: one key, and the
// arguments as given. The reply is the one of success.
func TestGuessedCalls(t *testing.T) {
	tests := []struct {
		name  string
		args  []string
		reply string
		want  string // behind the key; T is the first argument as a token
	}{
		{"redis-py release", []string{pyToken}, ":1", "release guarded guessed T done"},
		{"redis-py extend", []string{pyToken, "1000", "0"}, ":1", "renew guarded guessed T done"},
		{"redis-py extend, replacing", []string{pyToken, "1000", "1"}, ":1", "renew guarded guessed T ttl=1s done"},
		{"redis-py reacquire", []string{pyToken, "500"}, ":1", "renew guarded guessed T ttl=500ms done"},
		{"redsync unlock", []string{base64Of16}, ":1", "release guarded guessed T done"},
		{"redsync extend", []string{base64Of16, "8000"}, ":1", "renew guarded guessed T ttl=8s done"},
		{"redislock release", []string{urlBase64 + "metadata"}, ":1", "release guarded guessed T done"},
		{"redislock refresh", []string{urlBase64, "250"}, ":1", "renew guarded guessed T ttl=250ms done"},
		{"redislock TTL", []string{urlBase64}, ":7999", "release guarded guessed T failed"},
		{"redislock obtain", []string{urlBase64, "22", "8000"}, "+OK", "renew guarded guessed T done"},

		{"set again", []string{pyToken, "8000"}, "+OK", "renew guarded guessed T ttl=8s done"},
		{"no time", []string{pyToken, "0"}, ":1", "renew guarded guessed T done"},
		{"an empty mode", []string{pyToken, "500", ""}, ":1", "renew guarded guessed T done"},
		{"a token with digits and one letter", []string{"1234567a"}, ":1", "release guarded guessed T done"},
		{"a token with signs", []string{"12345678-1234-1234-1234-123456789012"}, ":1", "release guarded guessed T done"},

		{"no argument", nil, ":1", ""},
		{"a short token", []string{"1234abc"}, ":1", ""},
		{"an empty token", []string{""}, ":1", ""},
		{"a number", []string{"1700000000"}, ":1", ""},
		{"a negative number", []string{"-1700000000"}, ":1", ""},
		{"a number with a fraction", []string{"1700000000.25", "60"}, ":1", ""},
		{"a token too long to keep", []string{strings.Repeat("x", maxArg+1)}, ":1", ""},
		{"Redisson", []string{"30000", "b983c153-7421-469a-addb-44fb92259a1b:1"}, ":1", ""},
		{"no number", []string{pyToken, "soon"}, ":1", ""},
		{"an empty number", []string{pyToken, ""}, ":1", ""},
		{"a negative number behind", []string{pyToken, "-5"}, ":1", ""},
		{"a fraction", []string{pyToken, "0.5"}, ":1", ""},
		{"a long number", []string{pyToken, "123456789012345678901"}, ":1", ""},
		{"many arguments", []string{pyToken, "500", "1", "x"}, ":1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			words := append([]string{"EVALSHA", sha(tt.name), "1", "k"}, tt.args...)
			want := ""
			if tt.want != "" {
				kind, rest, _ := strings.Cut(tt.want, " ")
				want = strings.Replace("EVALSHA "+kind+` db0 "k" `+rest, "T", tok(tt.args[0]), 1)
			}
			requests := []string{cmd(words...)}
			if len(requests[0]) < 200 {
				requests = append(requests, strings.Join(words[:4], " ")+quoted(tt.args)+"\r\n")
			}
			for _, request := range requests {
				tr := newTracker()
				if got := strings.Join(exchange(t, tr, request, tt.reply+"\r\n"), "|"); got != want {
					t.Errorf("%q: got  %s\nwant %s", request, got, want)
				}
				if !tr.queue.empty() {
					t.Error("its reply was not counted")
				}
			}
		})
	}
}

func quoted(args []string) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString(` "` + a + `"`)
	}
	return b.String()
}

func TestNoGuess(t *testing.T) {
	digest := sha("x")
	for name, request := range map[string]string{
		"two keys":        cmd("EVALSHA", digest, "2", "k", pyToken),
		"three keys":      cmd("EVALSHA", digest, "3", "k", "k2", pyToken, "500"),
		"no key":          cmd("EVALSHA", digest, "0", "k", pyToken),
		"many keys":       cmd("EVALSHA", digest, "10", "k", pyToken),
		"a count oddly":   cmd("EVALSHA", digest, "+1", "k", pyToken),
		"no count":        cmd("EVALSHA", digest, "x", "k", pyToken),
		"short digest":    cmd("EVALSHA", digest[1:], "1", "k", pyToken),
		"odd digest":      cmd("EVALSHA", digest[1:]+"g", "1", "k", pyToken),
		"long digest":     cmd("EVALSHA", strings.Repeat("a", maxArg+1), "1", "k", pyToken),
		"long key":        cmd("EVALSHA", digest, "1", strings.Repeat("k", maxArg+1), pyToken),
		"read only":       cmd("EVALSHA_RO", digest, "1", "k", pyToken),
		"function":        cmd("FCALL", "f", "1", "k", pyToken),
		"text":            cmd("EVAL", "return 1", "1", "k", pyToken),
		"a digest's text": cmd("EVAL", digest, "1", "k", pyToken),
		"too long a text": cmd("EVAL", strings.Repeat("x", maxArg+1), "1", "k", pyToken),
	} {
		play(t, newTracker(), ">"+request+nx, "<:1\r\n:1\r\n", "="+nxOp(`db0 "k"`)+" granted")
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// A verb that a rule names is an op whatever its arguments; a guess, where it
// can be one.
func TestWantedGuess(t *testing.T) {
	for _, tt := range []struct{ request, want string }{
		{words("EVALSHA " + sha("x") + " 1 k " + pyToken), `EVALSHA release db0 "k" guarded guessed ` + tok(pyToken) + " done"},
		{words("EVALSHA " + sha("x") + " 1 k short"), `EVALSHA other db0 "k" done`},
		{words("EVALSHA " + sha("x") + " 1 k " + pyToken + " soon"), `EVALSHA other db0 "k" done`},
		{words("EVALSHA " + sha("x") + " 2 k l " + pyToken), `EVALSHA other db0 "k" done`},
		{words("EVALSHA x 1 k " + pyToken), `EVALSHA other db0 "k" done`},
		{words("EVALSHA " + sha("x") + " 1 " + strings.Repeat("k", maxArg+1) + " " + pyToken), `EVALSHA other db0 "" done`},
	} {
		if got := strings.Join(exchange(t, newTracker("EVALSHA"), tt.request, ":1\r\n"), "|"); got != tt.want {
			t.Errorf("%q: got  %s\nwant %s", tt.request, got, tt.want)
		}
	}
}

func TestGuessedReplies(t *testing.T) {
	replies := map[string][2]lock.Outcome{ // of a release and of a renewal
		":1":             {lock.Done, lock.Done},
		":2":             {lock.Failed, lock.Done},
		"#t":             {lock.Done, lock.Done},
		"+OK":            {lock.Done, lock.Done},
		"$2\r\nOK":       {lock.Done, lock.Done},
		"$1\r\n1":        {lock.Done, lock.Done},
		":0":             {lock.NotHeld, lock.NotHeld},
		":-1":            {lock.NotHeld, lock.NotHeld},
		":-3":            {lock.NotHeld, lock.NotHeld},
		"$-1":            {lock.NotHeld, lock.NotHeld},
		"*-1":            {lock.NotHeld, lock.NotHeld},
		"_":              {lock.NotHeld, lock.NotHeld},
		"#f":             {lock.NotHeld, lock.NotHeld},
		"$4\r\nheld":     {lock.Unknown, lock.Unknown},
		"*1\r\n:1":       {lock.Unknown, lock.Unknown},
		"%1\r\n+a\r\n:1": {lock.Unknown, lock.Unknown},
	}
	for reply, want := range replies {
		for i, tail := range []string{"", " 500"} {
			checkGuess(t, tail, reply, string(want[i]))
		}
	}
	for reply, word := range map[string]string{"-NOSCRIPT No matching script.": "NOSCRIPT", "-ERR x": "ERR", "!9\r\nREADONLY ": "READONLY"} {
		checkGuess(t, "", reply, "failed err="+word)
		checkGuess(t, " 500", reply, "failed err="+word)
	}
}

func checkGuess(t *testing.T, tail, reply, want string) {
	t.Helper()
	got := exchange(t, newTracker(), words("EVALSHA "+sha("x")+" 1 k "+pyToken+tail), reply+"\r\n")
	if len(got) != 1 || !strings.HasSuffix(got[0], " "+want) {
		t.Errorf("%q, answered %q: got %q, want %s", tail, reply, got, want)
	}
}

func TestGuessInATransaction(t *testing.T) {
	op := `EVALSHA release db0 "k" guarded guessed ` + tok(pyToken)
	play(t, newTracker(), ">"+words("MULTI")+words("GET a")+words("EVALSHA "+sha("x")+" 1 k "+pyToken)+words("EXEC"), "="+op,
		"<+OK\r\n+QUEUED\r\n+QUEUED\r\n", "=", "<*2\r\n$-1\r\n:1\r\n", "="+op+" done")
}

// Once the text is known, it and not the arguments says what a call does.
func TestGuessingEndsWhenTheTextIsSeen(t *testing.T) {
	const remaining = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pttl", KEYS[1]) else return -3 end`
	guess := `EVALSHA release db0 "k" guarded guessed ` + tok(pyToken) + " done"
	for _, tt := range []struct{ name, text, learn, want string }{
		{"by EVAL", compareAndDelete, "EVAL", `EVALSHA release db0 "k" guarded ` + tok(pyToken) + " done"},
		{"by SCRIPT LOAD", compareAndDelete, "LOAD", `EVALSHA release db0 "k" guarded ` + tok(pyToken) + " done"},
		{"as no op", remaining, "LOAD", ""},
		{"as a renewal", `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], 9) end`, "EVAL",
			`EVALSHA renew db0 "k" guarded ` + tok(pyToken) + " ttl=9ms done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opt := testOptions()
			other, tr := NewTracker(opt), NewTracker(opt)
			call := cmd("EVALSHA", sha(tt.text), "1", "k", pyToken)
			if got := strings.Join(exchange(t, tr, call, ":1\r\n"), "|"); got != guess {
				t.Errorf("before: got  %s\nwant %s", got, guess)
			}
			if tt.learn == "EVAL" {
				exchange(t, other, cmd("EVAL", tt.text, "1", "j", pyToken), ":0\r\n")
			} else {
				exchange(t, other, cmd("SCRIPT", "LOAD", tt.text), "$40\r\n"+sha(tt.text)+"\r\n")
			}
			if got := strings.Join(exchange(t, tr, call, ":1\r\n"), "|"); got != tt.want {
				t.Errorf("after: got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A guess is withheld until an argument, or its size, rules it out.
func TestWithheldWhileItMayBeAGuess(t *testing.T) {
	head := func(argc string) string { return "*" + argc + "\r\n$7\r\nEVALSHA\r\n$40\r\n" + sha("unknown") + "\r\n" }
	const key, token = "$1\r\n1\r\n$1\r\nk\r\n", "$32\r\n" + pyToken + "\r\n"
	for _, tt := range []struct {
		part string
		held bool
	}{
		{head("5"), true},
		{head("5") + key, true},
		{head("5") + key + token[:len(token)-1], true},
		{head("7") + key + token + "$3\r\n500\r\n$1\r\n", true},
		{head("4"), false},
		{head("8"), false},
		{"*5\r\n$7\r\nEVALSHA\r\n$39\r\n" + sha("unknown")[1:] + "\r\n", false},
		{head("5") + "$1\r\n2\r\n", false},
		{head("5") + "$2\r\n", false},
		{head("5") + "$1\r\n1\r\n$16385\r\n", false},
		{head("5") + key + "$7\r\n", false},
		{head("5") + key + "$16385\r\n", false},
		{head("6") + key + "$8\r\n12345678\r\n", false},
		{head("6") + key + token + "$0\r\n", false},
		{head("6") + key + token + "$21\r\n", false},
		{head("7") + key + token + "$3\r\n5.0\r\n", false},
		{head("7") + key + token + "$3\r\n500\r\n$16385\r\n", false},
	} {
		for _, cut := range []cutter{uncut, bytewise} {
			tr := newTracker()
			var clear int64
			for rest := []byte(tt.part); len(rest) > 0; {
				n := cut(len(rest))
				_, clear = tr.Client(rest[:n], nil)
				rest = rest[n:]
			}
			want := int64(len(tt.part))
			if tt.held {
				want = 0
			}
			if clear != want {
				t.Errorf("%q: clear %d, want %d", tt.part, clear, want)
			}
		}
	}
}

func TestClientNameIsReadByOthers(t *testing.T) {
	tr := newTracker()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if name := tr.ClientName(); name != "" && name != "one" {
					t.Errorf("name %q", name)
					return
				}
			}
		}
	})
	for range 1000 {
		exchange(t, tr, words("CLIENT SETNAME one"), "+OK\r\n")
		exchange(t, tr, words("RESET"), "+RESET\r\n")
	}
	close(stop)
	wg.Wait()
}

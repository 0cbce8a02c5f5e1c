package resp

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// told has a call go over a tracker: what it was taken for, and what it came to once
// a witness had told.
func told(t *testing.T, tr *Tracker, request, reply string, tell *Effect) (asked, out []string) {
	t.Helper()
	marks, clear := tr.Client([]byte(request), nil)
	checkMarks(t, marks, clear)
	for _, m := range marks {
		if m.Kind == wire.Request {
			asked = append(asked, describe(m.Op))
		}
	}
	marks, clear = tr.Upstream([]byte(reply), nil)
	checkMarks(t, marks, clear)
	for _, m := range marks {
		switch m.Kind {
		case wire.Answered:
			c := m.Call.(*Call)
			if tell != nil {
				c.Tell(*tell)
			}
			for _, op := range c.Resolve(true) {
				out = append(out, describe(op)+" "+string(op.Evidence))
			}
		case wire.Reply:
			out = append(out, describe(m.Op)+" "+string(m.Op.Evidence))
		}
	}
	return asked, out
}

func shown(ops ...lock.Op) *Effect {
	for i := range ops {
		ops[i].Evidence = lock.FromMonitor
	}
	return &Effect{Ops: ops, Evidence: lock.FromMonitor}
}

// What a witness tells completes what the text suggests, or corrects it.
func TestCallsAreResolved(t *testing.T) {
	acquired := lock.Op{Kind: lock.Acquire, Outcome: lock.Granted, Key: "k", NX: true, Token: testHash.Of([]byte("tok")), TTL: 5e8}
	renewed := lock.Op{Kind: lock.Renew, Outcome: lock.Done, Key: "k", Guarded: true, Token: testHash.Of([]byte("tok")), TTL: 5e8}
	released := lock.Op{Kind: lock.Release, Outcome: lock.Done, Key: "k", Guarded: true, Token: testHash.Of([]byte("tok"))}
	unsure := acquired
	unsure.Outcome = lock.Unknown
	fenced := acquired
	fenced.FenceKey, fenced.Fence, fenced.HasFence = "f", 7, true
	counter := fenced
	counter.HasFence = false
	count := lock.Op{Kind: lock.Fence, Outcome: lock.Done, Key: "f", FenceKey: "f", Fence: 7, HasFence: true}
	refused := lock.Op{Kind: lock.Other, Outcome: lock.NotHeld, Key: "k"}
	unknown := strings.Fields("EVALSHA " + sha("unknown") + " 1 k tok 500")
	guessed := strings.Fields("EVALSHA " + sha("guessed") + " 1 k token-of-it")
	byGuess := `EVALSHA release db0 "k" guarded guessed ` + tok("token-of-it")
	tests := []struct {
		name    string
		request []string
		reply   string
		tell    *Effect
		asked   string
		want    string
	}{
		{"never seen", unknown, ":1", shown(acquired), "", `EVALSHA acquire db0 "k" nx T ttl=500ms granted monitor`},
		{"never seen, nor told", unknown, ":1", nil, "", ""},
		{"nothing of a lock", unknown, ":1", shown(), "", ""},
		{"several", unknown, ":1", shown(renewed, released), "", `EVALSHA renew db0 "k" guarded T ttl=500ms done monitor|EVALSHA release db0 "k" guarded T done monitor`},
		{"as its text says", []string{"EVAL", compareAndDelete, "1", "k", "tok"}, ":1", shown(released),
			`EVAL release db0 "k" guarded T`, `EVAL release db0 "k" guarded T done monitor`},
		{"as its text says, not told", []string{"EVAL", compareAndDelete, "1", "k", "tok"}, ":1", nil,
			`EVAL release db0 "k" guarded T`, `EVAL release db0 "k" guarded T done text`},
		{"a reply that misleads", []string{"EVAL", compareAndDelete, "1", "k", "tok"}, ":1", shown(),
			`EVAL release db0 "k" guarded T`, `EVAL release db0 "k" guarded T not-held monitor`},
		{"an acquire that was refused", []string{"EVAL", luaOwnOrFree, "1", "k", "tok", "500"}, ":1", shown(),
			`EVAL acquire db0 "k" nx T ttl=500ms`, `EVAL acquire db0 "k" nx T ttl=500ms refused monitor`},
		{"an acquire that has renewed", []string{"EVAL", luaOwnOrFree, "1", "k", "tok", "500"}, ":1", shown(renewed),
			`EVAL acquire db0 "k" nx T ttl=500ms`, `EVAL renew db0 "k" guarded T ttl=500ms done monitor|EVAL other db0 "k" nx T ttl=500ms done monitor`},
		{"not known by its effect, but by its reply", []string{"EVAL", luaOwnOrFree, "1", "k", "tok", "500"}, ":1", shown(unsure),
			`EVAL acquire db0 "k" nx T ttl=500ms`, `EVAL acquire db0 "k" nx T ttl=500ms granted monitor`},
		{"refused by its reply", []string{"EVAL", luaOwnOrFree, "1", "k", "tok", "500"}, ":0", shown(unsure),
			`EVAL acquire db0 "k" nx T ttl=500ms`, `EVAL acquire db0 "k" nx T ttl=500ms refused monitor`},
		{"an error behind what may be an effect", []string{"EVAL", luaOwnOrFree, "1", "k", "tok", "500"}, "-ERR x", shown(unsure),
			`EVAL acquire db0 "k" nx T ttl=500ms`, `EVAL acquire db0 "k" nx T ttl=500ms unknown err=ERR monitor`},
		{"known by neither", unknown, ":1", shown(unsure), "", `EVALSHA acquire db0 "k" nx T ttl=500ms unknown monitor`},
		{"fence, returned", unknown, "*2\r\n:-1\r\n:7", shown(fenced), "", `EVALSHA acquire db0 "k" nx T ttl=500ms fencekey=f fence=7 granted monitor`},
		{"fence, alone", unknown, ":7", shown(fenced), "", `EVALSHA acquire db0 "k" nx T ttl=500ms fencekey=f fence=7 granted monitor`},
		{"fence, not returned", unknown, ":1", shown(fenced), "", `EVALSHA acquire db0 "k" nx T ttl=500ms granted monitor`},
		{"fence, not known", unknown, "*2\r\n:-1\r\n:9", shown(counter), "", `EVALSHA acquire db0 "k" nx T ttl=500ms fencekey=f fence=9 granted monitor`},
		{"fence, first", unknown, "*2\r\n:9\r\n:-1", shown(counter), "", `EVALSHA acquire db0 "k" nx T ttl=500ms fencekey=f fence=9 granted monitor`},
		{"fence, one of two", unknown, "*2\r\n:9\r\n:8", shown(counter), "", `EVALSHA acquire db0 "k" nx T ttl=500ms granted monitor`},
		{"a counter", unknown, ":7", shown(count), "", `EVALSHA fence db0 "f" fencekey=f fence=7 done monitor`},
		{"a counter, not returned", unknown, "+OK", shown(count), "", ""},
		{"a guess that was refused", guessed, ":0", shown(refused), byGuess, byGuess + " not-held monitor"},
		{"a guess that was refused whatever it answers", guessed, ":7", shown(refused), byGuess, byGuess + " not-held monitor"},
		{"a guess that has failed", guessed, "-ERR x", shown(refused), byGuess,
			`EVALSHA other db0 "k" not-held monitor|` + byGuess + " failed err=ERR arguments"},
		{"a guess that did nothing", guessed, ":1", shown(), byGuess, strings.Replace(byGuess, " guessed", "", 1) + " not-held monitor"},
		{"a guess that has renewed", guessed, ":1", shown(renewed), byGuess,
			`EVALSHA renew db0 "k" guarded T ttl=500ms done monitor|EVALSHA other db0 "k" guarded ` + tok("token-of-it") + " done monitor"},
		{"an error behind an effect", unknown, "-ERR x", shown(released), "", `EVALSHA release db0 "k" guarded T done monitor`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked, out := told(t, newTracker(witnessed), cmd(tt.request...), tt.reply+"\r\n", tt.tell)
			tokens := strings.NewReplacer(" T", " "+tok("tok"))
			if got := strings.Join(asked, "|"); got != tokens.Replace(tt.asked) {
				t.Errorf("asked %s, want %s", got, tokens.Replace(tt.asked))
			}
			if got := strings.Join(out, "|"); got != tokens.Replace(tt.want) {
				t.Errorf("got %s, want %s", got, tokens.Replace(tt.want))
			}
		})
	}
}

// Where a call's marks stand, and what is known of whether it ran.
func TestCallsAreMarked(t *testing.T) {
	unknown := words("EVALSHA " + sha("unknown") + " 1 k tok 500")
	for name, tt := range map[string]struct{ client, server, want string }{
		"alone":              {unknown, ":1\r\n", "called[0,96) EVALSHA; answered[0,4) true"},
		"without a word":     {words("EVAL x 0"), "+OK\r\n", "request[0,28) EVAL; called[0,28) EVAL; answered[0,5) true; reply[0,5) EVAL done"},
		"a function":         {words("FCALL f 1 k"), "+OK\r\n", "called[0,36) FCALL; answered[0,5) true"},
		"not a number":       {words("FCALL f x k"), "-ERR\r\n", ""},
		"too many keys":      {words("FCALL f 2 k"), "-ERR\r\n", ""},
		"not known":          {unknown, "-NOSCRIPT x\r\n", "called[0,96) EVALSHA; answered[0,13) false"},
		"an error":           {unknown, "-BUSY x\r\n", "called[0,96) EVALSHA; answered[0,9) true"},
		"in a transaction":   {lines("MULTI") + unknown + lines("EXEC"), "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n", "called[15,111) EVALSHA; answered[14,22) true"},
		"that is aborted":    {lines("MULTI") + unknown + lines("EXEC"), "+OK\r\n+QUEUED\r\n*-1\r\n", "called[15,111) EVALSHA; answered[14,19) false"},
		"that is discarded":  {lines("MULTI") + unknown + lines("DISCARD"), "+OK\r\n+QUEUED\r\n+OK\r\n", "called[15,111) EVALSHA; answered[14,19) false"},
		"that is refused":    {lines("MULTI") + unknown + lines("EXEC"), "+OK\r\n-ERR x\r\n-EXECABORT x\r\n", "called[15,111) EVALSHA; answered[5,13) true"},
		"not answered":       {lines("CLIENT REPLY SKIP") + unknown + lines("PING"), "+PONG\r\n", "called[37,133) EVALSHA; answered[0,0) true"},
		"a protocol error":   {lines("PING") + unknown, "-ERR Protocol error: x\r\n", "called[14,110) EVALSHA; answered[24,24) false; blind@24"},
		"without a witness":  {"", "", ""},
		"that a rule wants":  {cmd("EVAL", "return 1", "1", "k"), ":1\r\n", `request[0,42) EVAL; called[0,42) EVAL; answered[0,4) true; reply[0,4) EVAL done`},
		"with what it is":    {cmd("EVAL", compareAndDelete, "1", "k", "t"), ":1\r\n", `request[0,134) EVAL; called[0,134) EVAL; answered[0,4) true; reply[0,4) EVAL done`},
		"a library's text":   {words("FUNCTION LOAD x"), "+x\r\n", ""},
		"a read-only script": {cmd("EVAL_RO", "return 1", "1", "k"), ":1\r\n", "called[0,45) EVAL_RO; answered[0,4) true"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker(witnessed, "EVAL")
			marks, clear := tr.Client([]byte(tt.client), nil)
			checkMarks(t, marks, clear)
			replies, clear := tr.Upstream([]byte(tt.server), nil)
			checkMarks(t, replies, clear)
			got := kinds(append(marks, replies...))
			if name == "a protocol error" {
				got, _, _ = strings.Cut(got, " reply at")
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if tr.kept != 0 || tr.due != 0 && !tr.told {
				t.Errorf("%d bytes kept, %d due", tr.kept, tr.due)
			}
		})
	}
}

// What a call has acquired is known as a lock by direct commands.
func TestDirectReleaseOfWhatACallHasTaken(t *testing.T) {
	tr := newTracker(witnessed)
	taken := lock.Op{Kind: lock.Acquire, Outcome: lock.Granted, Key: "k", Member: true, Token: testHash.Of([]byte("tok"))}
	told(t, tr, words("FCALL take 1 k tok"), ":1\r\n", shown(taken))
	if got := replayed(t, tr, "ZREM k tok -> :1"); got != `ZREM release db0 "k" guarded `+tok("tok")+" done member" {
		t.Error(got)
	}
}

// A call whose script did the same each time is an op at its request.
func TestCallsAreToldByTheirRole(t *testing.T) {
	o := testOptions()
	o.Witnessed, o.EffectsOnly = true, true
	tr := NewTracker(o)
	release := lock.Op{Kind: lock.Release, Outcome: lock.Done, Key: "k", Guarded: true, Token: testHash.Of([]byte("tok"))}
	renewal := release
	renewal.Kind = lock.Renew
	request := cmd("EVAL", compareAndDelete, "2", "x", "k", "1", "tok")
	ask := func() (string, string) {
		asked, out := told(t, tr, request, ":1\r\n", shown(release))
		return strings.Join(asked, "|"), strings.Join(out, "|")
	}
	want := `EVAL release db0 "k" guarded ` + tok("tok")
	if asked, out := ask(); asked != "" || out != want+" done monitor" {
		t.Errorf("asked %s, got %s", asked, out)
	}
	o.Scripts.roles.saw(sha(compareAndDelete), lock.Release, 2, 2, false)
	if asked, out := ask(); asked != want || out != want+" done monitor" {
		t.Errorf("asked %s, got %s", asked, out)
	}
	if asked, out := told(t, tr, request, ":1\r\n", nil); strings.Join(asked, "") != want || strings.Join(out, "") != want+" unknown arguments" {
		t.Errorf("asked %s, got %s", asked, out)
	}
	o.Scripts.roles.saw(sha(compareAndDelete), lock.Renew, 2, 2, false)
	if asked, _ := ask(); asked != "" {
		t.Errorf("asked %s of a script that does either", asked)
	}
}

// A text that is not understood says no more than its digest: what its calls did before
// is gone by, so that one of which no witness tells is not missing.
func TestATextThatIsNotUnderstoodIsToldByItsRole(t *testing.T) {
	o := testOptions()
	o.Witnessed = true
	tr := NewTracker(o)
	const text = "local n = KEYS[1] if redis.call('zcard', n) < 1 then redis.call('zadd', n, 1, ARGV[1]) return 1 end return 0"
	if p := classify([]byte(text)); p.effect != noEffect {
		t.Fatal("the text is understood")
	}
	request := cmd("EVAL", text, "1", "k", "tok")
	if asked, out := told(t, tr, request, ":1\r\n", nil); len(asked)+len(out) != 0 {
		t.Errorf("asked %s, got %s", asked, out)
	}
	o.Scripts.roles.saw(sha(text), lock.Acquire, 1, 1, true)
	want := `EVAL acquire db0 "k" nx ` + tok("tok")
	asked, out := told(t, tr, request, ":1\r\n", nil)
	if strings.Join(asked, "|") != want+" member" || strings.Join(out, "|") != want+" unknown member arguments" {
		t.Errorf("asked %s, got %s", asked, out)
	}
	none := cmd("EVAL", "return redis.call('incrbyfloat', KEYS[1], 2)", "1", "k", "tok")
	o.Scripts.roles.saw(sha("return redis.call('incrbyfloat', KEYS[1], 2)"), lock.Acquire, 1, 1, true)
	if asked, _ := told(t, tr, none, ":1\r\n", nil); len(asked) != 0 {
		t.Errorf("asked %s of a text that has nothing of a lock's", asked)
	}
}

// A script that is too long to be kept is known by its sum all the same.
func TestLongScriptsHaveNames(t *testing.T) {
	text := "return 1 -- " + strings.Repeat("x", 40000)
	for name, cut := range map[string]int{"whole": 1 << 20, "in pieces": 77} {
		tr := newTracker(witnessed)
		var got []string
		for b := []byte(cmd("EVAL", text, "1", "k") + cmd("EVAL", "return 2", "0") + cmd("EVAL", text+"y", "0") + cmd("FCALL", "f", "0")); len(b) > 0; {
			n := min(cut, len(b))
			marks, _ := tr.Client(b[:n], nil)
			for _, m := range marks {
				got = append(got, m.Call.(*Call).Script)
			}
			b = b[n:]
		}
		if want := []string{sha(text), sha("return 2"), sha(text + "y"), "/f"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// With effects alone, neither text nor arguments are believed.
func TestEffectsOnly(t *testing.T) {
	o := testOptions()
	o.EffectsOnly = true
	for _, request := range []string{
		cmd("EVAL", compareAndDelete, "1", "k", "tok"), words("EVALSHA " + sha("x") + " 1 k token-of-it 500"), cmd("SCRIPT", "LOAD", compareAndDelete) + words("EVALSHA "+sha(compareAndDelete)+" 1 k token-of-it"),
		cmd("FUNCTION", "LOAD", library) + words("FCALL take 1 k tok 500"),
	} {
		if marks, _ := NewTracker(o).Client([]byte(request), nil); len(marks) > 0 {
			t.Errorf("%q: %s", request, kinds(marks))
		}
	}
}

const library = `#!lua name=locks
	local function drop(keys, args)
		if redis.call('get', keys[1]) == args[1] then return redis.call('del', keys[1]) else return 0 end
	end
	local again = function(k, a)
		local n = 0 for i = 1, 2 do n = n + i end
		if redis.call('get', k[1]) == a[1] then return redis.call('pexpire', k[1], a[2]) end return 0
	end
	redis.register_function('take', function(keys, args) return redis.call('set', keys[1], args[1], 'NX', 'PX', args[2]) end)
	redis.register_function('drop', drop)
	redis.register_function{function_name='again', callback=again, flags={'no-writes'}}`

// Without a witness a function is told by its text, where that was seen.
func TestFunctions(t *testing.T) {
	tr := newTracker()
	tr.Client([]byte(cmd("FUNCTION", "LOAD", "REPLACE", library)), nil)
	tr.Upstream([]byte("$5\r\nlocks\r\n"), nil)
	for request, want := range map[string]string{
		"FCALL take 1 k tok 500":  `FCALL acquire db0 "k" nx T ttl=500ms granted`,
		"FCALL drop 1 k tok":      `FCALL release db0 "k" guarded T done`,
		"FCALL again 1 k tok 500": `FCALL renew db0 "k" guarded T ttl=500ms done`,
		"FCALL other 1 k tok 500": "",
	} {
		if got := strings.Join(exchange(t, tr, words(request), ":1\r\n"), "|"); got != strings.ReplaceAll(want, " T", " "+tok("tok")) {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
}

// The words of calls that wait are kept up to a bound, and of one argument too.
func TestCallsAreBounded(t *testing.T) {
	tr := newTracker(witnessed)
	request := cmd("FCALL", "f", "1", "k", strings.Repeat("x", 8000), strings.Repeat("y", maxArg+1))
	partial, kept := 0, 0
	for range 400 {
		marks, _ := tr.Client([]byte(request), nil)
		c := marks[0].Call.(*Call)
		if c.Partial {
			partial++
			continue
		}
		kept++
		if len(c.Args) != 2 || c.Args[1] != nil || string(c.Keys[0]) != "k" {
			t.Fatalf("%q %q", c.Keys, c.Args)
		}
	}
	if partial == 0 || kept < maxCalls/10000 || tr.kept > maxCalls {
		t.Errorf("%d are partial, %d not, %d bytes", partial, kept, tr.kept)
	}
	checkHeld(t, tr, tr.req.pos)
	tr.Upstream([]byte(strings.Repeat(":1\r\n", 400)), nil)
	if tr.kept != 0 {
		t.Errorf("%d bytes", tr.kept)
	}
}

// What the calls of libraries do comes out the same with and without what their
// texts suggest: a witness corrects that.
func TestCallsOfStories(t *testing.T) {
	for _, effectsOnly := range []bool{true, false} {
		eachStory(t, func(t *testing.T, l *lab, steps []step) {
			l.shadow.Whole()
			o := testOptions()
			o.Witnessed, o.EffectsOnly, o.Scripts = true, effectsOnly, l.scripts
			tr := NewTracker(o)
			for i, s := range steps {
				if s.line != "" {
					l.plain(s.line)
					continue
				}
				words := append(append([]string{"EVAL", s.text, itoa(int64(len(s.keys)))}, s.keys...), s.args...)
				tr.Client([]byte(cmd(words...)), nil)
				reply, shown := l.do(words...)
				marks, _ := tr.Upstream([]byte(reply), nil)
				var e Effect
				var out []string
				for _, m := range marks {
					if m.Kind == wire.Answered {
						e = l.effect(m.Call.(*Call), shown)
						m.Call.(*Call).Tell(e)
						for _, op := range m.Call.Resolve(true) {
							out = append(out, effectOf(op))
						}
					} else if m.Op.Kind != lock.Other {
						out = append(out, effectOf(m.Op))
					}
				}
				want := strings.Split("EVAL "+strings.ReplaceAll(inTokens(s.want), "; ", "; EVAL "), "; ")
				if s.want == "" {
					want = nil
				}
				refusal := func(op string) bool { return !strings.Contains(op, " done") && !strings.Contains(op, " granted") }
				out, want = slices.DeleteFunc(out, refusal), slices.DeleteFunc(want, refusal)
				slices.Sort(out)
				slices.Sort(want)
				if strings.Join(out, "|") != strings.Join(want, "|") {
					t.Errorf("step %d, effects only %v: got\n  %s\nwant\n  %s\nreply %q", i, effectsOnly, strings.Join(out, "\n  "), strings.Join(want, "\n  "), reply)
				}
			}
		})
	}
}

// A call tells whether its text was seen, and whether a transaction has put it
// off.
func TestCallsThatAreKnownOrPutOff(t *testing.T) {
	tr := NewTracker(Options{Session: 1, Hash: testHash, Witnessed: true})
	var calls []*Call
	say := func(request, reply string) {
		marks, _ := tr.Client([]byte(request), nil)
		for _, m := range marks {
			if m.Kind == wire.Called {
				calls = append(calls, m.Call.(*Call))
			}
		}
		tr.Upstream([]byte(reply), nil)
	}
	text := `return redis.call("incr", KEYS[1])`
	say(cmd("EVALSHA", sha(text), "1", "k"), "-NOSCRIPT No matching script.\r\n")
	say(cmd("EVAL", text, "1", "k"), ":1\r\n")
	say(cmd("EVALSHA", sha(text), "1", "k"), ":2\r\n")
	say(cmd("EVAL", `return redis.call("hincrby", KEYS[1], ARGV[1], 1)`, "1", "k", "tok"), ":1\r\n")
	say(cmd("MULTI")+cmd("EVALSHA", sha(text), "1", "k")+cmd("EXEC"), "+OK\r\n+QUEUED\r\n*1\r\n:3\r\n")
	for i, want := range []struct{ known, queued bool }{{false, false}, {true, false}, {true, false}, {false, false}, {true, true}} {
		if c := calls[i]; c.Known != want.known || c.Queued() != want.queued {
			t.Errorf("call %d: known %v, queued %v", i, c.Known, c.Queued())
		}
	}
}

package witness

import (
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

// A desk is a prober with a looker whose questions the test answers.
type desk struct {
	t *testing.T
	p *prober
	w *touching
}

func newDesk(t *testing.T, all bool) *desk {
	o := Options{Hash: testHash, Scripts: resp.NewScripts()}
	say := newNotes((&logged{}).log())
	l := newLooker(Redis{}, testHash, say)
	l.up = true
	p := newProber(l, all, &o, say)
	return &desk{t, p, &touching{p}}
}

// asked reports whether there is a question to the looker.
func (d *desk) asked() bool { return len(d.p.looker.queue) > 0 }

// answer answers the next question: what is at the key, and ends in a minute; ""
// is nothing.
func (d *desk) answer(value string) {
	d.t.Helper()
	if !d.asked() {
		d.t.Fatal("nothing is asked")
	}
	q := <-d.p.looker.queue
	q.at, q.ok = time.Now().UnixMicro(), true
	for _, r := range q.refs {
		st := resp.State{Type: resp.Absent}
		if value != "" {
			st = resp.State{Type: resp.String, Value: testHash.Of([]byte(value)), Ends: time.Now().UnixMilli() + 60000}
		}
		q.sights = append(q.sights, resp.Sight{Ref: r, State: st})
	}
	d.p.looker.finish(q)
}

func (d *desk) before(c wire.Call) {
	d.t.Helper()
	if !d.w.takes(c) {
		d.t.Fatal("the call is not taken")
	}
	d.w.Before(c)
}

// after returns what was told of a call behind which the key has that value.
func (d *desk) after(c wire.Call, value string) string {
	d.t.Helper()
	l := d.w.After(c)
	if l == nil {
		return "no look"
	}
	d.answer(value)
	l.Take()
	return describe(c.Resolve(true))
}

// ran is a call that has run.
func (d *desk) ran(session uint64, words_ ...string) wire.Call {
	d.t.Helper()
	tr := resp.NewTracker(resp.Options{Session: session, Hash: testHash, Witnessed: true, EffectsOnly: true})
	marks, _ := tr.Client(appendCommand(nil, words(words_...)), nil)
	tr.Upstream([]byte(":1\r\n"), nil)
	return marks[len(marks)-1].Call
}

// What others do between the looks is told from what the call did, or nothing is
// told.
func TestOthersBetweenTheLooks(t *testing.T) {
	const released = "release a done 0s probe"
	taken := &lock.Op{Session: 2, Proto: lock.Redis, Kind: lock.Acquire, Key: "a", Token: testHash.Of([]byte("token-of-b"))}
	removed := &lock.Op{Session: 2, Proto: lock.Redis, Kind: lock.Release, Key: "a", Token: testHash.Of([]byte("token-of-a"))}
	for _, tt := range []struct {
		name   string
		early  *lock.Op // is under way before the call
		late   *lock.Op
		after  string
		expect string
	}{
		{"nobody", nil, nil, "", released},
		{"one who finds it free", nil, taken, "token-of-b", released},
		{"one who is already at it", taken, nil, "token-of-b", released},
		{"one who was refused", nil, taken, "", released},
		{"one who removes it", nil, removed, "", ""},
		{"one who is about to remove it", removed, nil, "", ""},
		{"the call itself", nil, &lock.Op{Session: 1, Proto: lock.Redis, Kind: lock.Release, Verb: "EVALSHA", Key: "a"}, "", released},
		{"one sent along with it", nil, &lock.Op{Session: 1, Proto: lock.Redis, Kind: lock.Release, Verb: "DEL", Key: "a"}, "", ""},
		{"one elsewhere", nil, &lock.Op{Session: 2, Proto: lock.Redis, Kind: lock.Release, Key: "b"}, "", released},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t, true)
			if tt.early != nil {
				d.w.Passed(tt.early)
			}
			c := d.ran(1, "EVALSHA", none, "1", "a", "token-of-a")
			d.before(c)
			d.answer("token-of-a")
			if tt.late != nil {
				d.w.Passed(tt.late)
			}
			if got := d.after(c, tt.after); got != tt.expect {
				t.Errorf("got %q, want %q", got, tt.expect)
			}
		})
	}
}

// One that is done does not disturb.
func TestOthersThatAreDone(t *testing.T) {
	d := newDesk(t, true)
	removed := &lock.Op{Session: 2, Proto: lock.Redis, Kind: lock.Release, Key: "a"}
	d.w.Passed(removed)
	d.w.Replied(removed)
	c := d.ran(1, "EVALSHA", none, "1", "a", "token-of-a")
	d.before(c)
	d.answer("token-of-a")
	if got := d.after(c, ""); got != "release a done 0s probe" {
		t.Errorf("got %q", got)
	}
	if len(d.p.under) != 0 || len(d.p.calls) != 0 || len(d.p.line) != 0 {
		t.Errorf("left over: %v, %v, %v", d.p.under, d.p.calls, d.p.line)
	}
}

// Calls on one key are looked at one behind the other; one that was given up, or
// whose session has ended, is not waited for.
func TestCallsOnOneKeyWaitForEachOther(t *testing.T) {
	for name, end := range map[string]func(d *desk, first wire.Call){
		"answered": func(d *desk, first wire.Call) { d.after(first, "token-of-a") },
		"missed":   func(d *desk, first wire.Call) { d.w.Missed(first) },
		"closed":   func(d *desk, _ wire.Call) { d.w.Closed() },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, true)
			first, elsewhere := d.ran(1, "EVALSHA", none, "1", "a", "token-of-a"), d.ran(3, "EVALSHA", none, "1", "b", "token-of-c")
			second := d.ran(2, "EVALSHA", none, "1", "a", "token-of-b")
			d.before(first)
			d.answer("")
			other := &desk{t, d.p, &touching{d.p}}
			other.before(second)
			if d.asked() {
				t.Fatal("the second is looked at while the first is under way")
			}
			other.before(elsewhere)
			d.answer("")
			end(d, first)
			if !d.asked() {
				t.Error("the second is never looked at")
			}
		})
	}
}

// Scripts at whose keys nothing looks like a lock are left alone, those whose text
// is known where only the others are wanted, and those of a transaction.
func TestCallsThatAreLeftAlone(t *testing.T) {
	d := newDesk(t, true)
	for range enough {
		c := d.ran(1, "EVALSHA", none, "1", "count", "5")
		d.before(c)
		d.answer("7")
		d.after(c, "8")
	}
	if d.w.Before(d.ran(1, "EVALSHA", none, "1", "count", "5")) != nil || d.asked() {
		t.Error("a script that counts is looked at for ever")
	}
	d = newDesk(t, false)
	if c := called(t, "EVAL", "return 1", "1", "a"); d.w.takes(c) {
		t.Error("a script whose text is known is looked at")
	}
	if c := d.ran(1, "EVALSHA", none, "1", "a"); !d.w.takes(c) {
		t.Error("a script whose text is not known is not")
	}
}

// What others have done to a call's keys, or are about to, says nothing of the call; that there is a lock it says.
func TestAScriptOfLocksOfWhichNothingCanBeTold(t *testing.T) {
	d := newDesk(t, true)
	for range enough {
		c := d.ran(1, "EVALSHA", none, "1", "a", "token-of-a")
		d.before(c)
		d.answer("token-of-b")
		d.w.Missed(c)
		d.w.After(c)
	}
	if d.before(d.ran(1, "EVALSHA", none, "1", "a", "token-of-a")); !d.asked() {
		t.Error("it is left alone")
	}
}

// A call that goes ahead without a look may have done what is found at its keys
// until it is answered.
func TestCallsWithoutALookSpoilOthers(t *testing.T) {
	for name, run := range map[string]func(d *desk, first, second wire.Call) string{
		"that wait": func(d *desk, first, second wire.Call) string {
			d.before(first)
			d.answer("token-of-a")
			d.before(second)
			d.w.Missed(second)
			return d.after(first, "")
		},
		"that are under way": func(d *desk, first, second wire.Call) string {
			d.before(second)
			d.w.Missed(second)
			<-d.p.looker.queue
			d.before(first)
			d.answer("token-of-a")
			return d.after(first, "")
		},
		"whose look was none": func(d *desk, first, second wire.Call) string {
			d.before(second)
			d.p.looker.finish(<-d.p.looker.queue)
			d.before(first)
			d.answer("token-of-a")
			return d.after(first, "")
		},
		"whose look cannot be asked for": func(d *desk, first, second wire.Call) string {
			d.p.looker.queue = make(chan *question)
			d.before(second)
			d.p.looker.queue = make(chan *question, 1)
			d.before(first)
			d.answer("token-of-a")
			return d.after(first, "")
		},
		"of a script that is left alone": func(d *desk, first, second wire.Call) string {
			d.before(first)
			d.answer("token-of-a")
			d.p.habits = habits{none: &habit{calls: enough}}
			d.before(second)
			return d.after(first, "")
		},
		"of one that is left alone, and under way": func(d *desk, first, second wire.Call) string {
			d.p.habits = habits{none: &habit{calls: enough}}
			d.before(second)
			d.p.habits = nil
			d.before(first)
			d.answer("token-of-a")
			return d.after(first, "")
		},
		"while nobody can look": func(d *desk, first, second wire.Call) string {
			d.p.looker.up = false
			d.before(second)
			d.p.looker.up = true
			d.before(first)
			d.answer("token-of-a")
			return d.after(first, "")
		},
		"that are done": func(d *desk, first, second wire.Call) string {
			d.before(second)
			d.w.Missed(second)
			<-d.p.looker.queue
			d.w.After(second)
			d.before(first)
			d.answer("token-of-a")
			return d.after(first, "")
		},
	} {
		want := map[bool]string{true: "release a done 0s probe"}[name == "that are done"]
		d := newDesk(t, true)
		first, second := d.ran(1, "EVALSHA", none, "1", "a", "token-of-a"), d.ran(2, "EVALSHA", none, "1", "a", "token-of-b")
		if got := run(d, first, second); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if len(d.p.looker.queue) != 0 {
			t.Errorf("%s: more is asked", name)
		}
	}
}

// A call that takes too long gives its keys away: what it does later may be found there by whoever is let ahead of it,
// unless it was answered before.
func TestACallThatTakesTooLongSpoilsOthers(t *testing.T) {
	for answered, want := range map[bool]string{false: "", true: "release a done 0s probe"} {
		d := newDesk(t, true)
		slow, second := d.ran(1, "EVALSHA", none, "1", "a", "token-of-b"), d.ran(2, "EVALSHA", none, "1", "a", "token-of-a")
		d.before(slow)
		d.answer("token-of-a")
		d.p.calls[slow].since = time.Now().Add(-2 * patience)
		var look *proxy.Look
		if answered {
			look = d.w.After(slow)
			<-d.p.looker.queue // which is answered as late
		}
		d.before(second)
		d.answer("token-of-a")
		if got := d.after(second, ""); got != want {
			t.Errorf("it was answered %v: %q is told of the second, want %q", answered, got, want)
		}
		if look != nil && look.Given() {
			t.Error("its look is there")
		}
		if got := d.p.calls[slow]; got == nil || !got.spoilt {
			t.Errorf("of the first is told what the second did: %+v", got)
		}
	}
}

// What a look after a call finds is told however late it comes.
func TestALateLookIsTold(t *testing.T) {
	d := newDesk(t, true)
	c := d.ran(1, "EVALSHA", none, "1", "a", "token-of-a")
	d.before(c)
	d.answer("token-of-a")
	l := d.w.After(c)
	d.w.Missed(c)
	c.Resolve(true)
	later := c.Later(true)
	d.answer("")
	if l.Take(); !later.Known() || len(d.p.calls) != 0 {
		t.Fatalf("it is known: %v, %d calls are left over", later.Known(), len(d.p.calls))
	}
	if got := describe(later.Amend(nil)); got != "release a done 0s probe" {
		t.Errorf("got %q", got)
	}
}

// A lock that a plain command has taken is one to scripts, too: what they are
// refused is seen.
func TestLocksOfPlainCommandsAreKnown(t *testing.T) {
	d := newDesk(t, true)
	d.w.Replied(&lock.Op{Session: 2, Proto: lock.Redis, Kind: lock.Acquire, Key: "a", Outcome: lock.Granted, Token: testHash.Of([]byte("token-of-b"))})
	c := d.ran(1, "EVALSHA", none, "1", "a", "token-of-a")
	d.before(c)
	d.answer("token-of-b")
	if got := d.after(c, "token-of-b"); got != "other a not-held 0s probe" {
		t.Errorf("got %q", got)
	}
}

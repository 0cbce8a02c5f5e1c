package browser

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/lockfaultd/lockfaultd/live"
)

var (
	wide   = screen{width: 1320, height: 900}
	narrow = screen{width: 400, height: 860}
)

func (s screen) inTheDark() screen { s.dark = true; return s }

const (
	shown   = `document.querySelectorAll('#locks li').length > 0`
	focused = `document.activeElement.textContent.trim()`
)

// see opens the page of a fake, and waits until it shows something.
func see(t *testing.T, f *fake, s screen) *tab {
	t.Helper()
	b := open(t, s)
	b.do(chromedp.Navigate(f.URL))
	b.until(shown)
	return b
}

// press types keys, one after the other.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.do(chromedp.KeyEvent(k))
	}
}

// ordered waits until the fake has been told something, and takes that from it.
func (b *tab) ordered(f *fake, want string) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got := f.take(); len(got) > 0 {
			if !slices.Equal(got, []string{want}) {
				b.t.Errorf("it was told %q, want %q", got, want)
			}
			return
		}
	}
	b.t.Fatalf("it was told nothing, want %q", want)
}

func quiet(now time.Time) live.Snapshot {
	return live.Snapshot{Now: now, Name: "lockfaultd", Version: "1.0.0", Control: true, Locks: []live.Lock{{Name: "lock:report"}},
		Sources: []live.Source{{Name: "redis", Address: "127.0.0.1:6379", Up: true}}}
}

func TestLivePageLooks(t *testing.T) {
	for name, s := range map[string]screen{"wide": wide, "wide-dark": wide.inTheDark(), "narrow": narrow, "narrow-dark": narrow.inTheDark()} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, busy)
			b := see(t, f, s)
			for _, look := range []struct {
				name, sign string
				show       func(time.Time) live.Snapshot
			}{
				{"live", `document.querySelectorAll('#rules li').length == 4`, busy},
				{"live-probe", `document.querySelectorAll('#verdicts li').length == 5`, judged},
				{"live-quiet", `document.querySelectorAll('#locks li').length == 1`, quiet},
				{"live-hostile", `document.querySelectorAll('#verdicts li').length == 6`, hostile},
			} {
				f.change(look.show)
				b.until(look.sign)
				b.shot(look.name + "-" + name)
				if over := ask[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
					t.Errorf("%s is %d px wider than the screen", look.name, over)
				}
			}
		})
	}
}

func TestLivePageFromTheKeyboard(t *testing.T) {
	f := serve(t, busy)
	b := see(t, f, wide)

	b.press(kb.Tab)
	if got := ask[string](b, focused); got != "Skip to what is seen" {
		t.Errorf("the first stop is %q", got)
	}
	var stops []string
	for range 9 {
		b.press(kb.Tab)
		stops = append(stops, ask[string](b, `document.activeElement.id || `+focused))
	}
	if got, want := strings.Join(stops, ", "), "pause, help, stop, The same in words, arm-for, pause, slow-grant, reset, rule-4"; got != want {
		t.Errorf("the stops are\n%s, want\n%s", got, want)
	}
	if ask[string](b, `getComputedStyle(document.activeElement).outlineStyle`) != "solid" {
		t.Error("the focus cannot be seen")
	}

	b.press("r")
	if got := ask[string](b, focused); got != "pause" {
		t.Errorf("r leads to %q", got)
	}
	b.press(kb.ArrowDown, kb.ArrowDown, kb.ArrowUp, " ")
	b.ordered(f, "/v1/rules/slow-grant/disarm map[]")
	if got := ask[string](b, focused+` + document.activeElement.getAttribute('aria-pressed')`); got != "slow-granttrue" {
		t.Errorf("after it the focus is on %q", got)
	}
	b.do(chromedp.SetValue(chromedp.ID("arm-for"), "2m"))
	b.press(kb.ArrowDown, " ")
	b.ordered(f, "/v1/rules/reset/arm map[for:2m]")

	b.press("s")
	b.until(`document.activeElement.id == 'stop-no'`)
	b.view("live-stop")
	b.press("\r")
	b.until(`!document.querySelector('dialog[open]')`)
	b.press("s", kb.Escape)
	b.until(`!document.querySelector('dialog[open]')`)
	b.press("s")
	b.until(`document.activeElement.id == 'stop-no'`)
	b.press(kb.Tab, " ")
	b.ordered(f, "/v1/stop map[]")
	b.until(`document.getElementById('said').textContent == 'All faults are stopped.'`)

	b.press("?")
	b.until(`document.getElementById('help-dialog').open`)
	b.view("live-keys")
	b.do(chromedp.Click(chromedp.ID("single-keys")))
	b.press(kb.Escape)
	b.until(`!document.querySelector('dialog[open]')`)
	b.press("s")
	if ask[bool](b, `!!document.querySelector('dialog[open]')`) {
		t.Error("single keys were switched off, and s does something")
	}
	if got := f.take(); len(got) > 0 {
		t.Errorf("it was told %q as well", got)
	}
}

// A switch keeps the focus while the picture changes around it.
func TestLivePageKeepsTheFocus(t *testing.T) {
	f := serve(t, busy)
	b := see(t, f, wide)
	b.press("r", kb.ArrowDown)
	f.change(func(now time.Time) live.Snapshot {
		s := busy(now)
		s.Rules = append([]live.Rule{{Name: "new", Text: "--hold 'renew=1s'"}}, s.Rules[1:]...)
		return s
	})
	b.until(`document.querySelector('#rules .name').textContent == 'new'`)
	if got := ask[string](b, focused); got != "slow-grant" {
		t.Errorf("the focus is on %q", got)
	}
}

func TestLivePageIsNotHurtByNames(t *testing.T) {
	f := serve(t, hostile)
	b := see(t, f, wide)
	b.until(`document.querySelectorAll('#verdicts li').length == 6`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById('words').open = true, undefined`))
	b.until(`document.querySelectorAll('#words-list li').length > 0`)
	for what, expression := range map[string]string{
		"a script ran":       `!!window.hurt`,
		"there is an image":  `document.images.length > 0`,
		"there is a script":  `document.scripts.length > 1 || document.querySelectorAll('body script').length > 0`,
		"a control came in":  `/[\u202e\u0000\u001b]/.test(document.body.textContent)`,
		"a prototype's name": `!document.body.textContent.includes('__proto__')`,
		"nothing of it":      `!document.body.innerText.includes('<script>window.hurt=1</script>')`,
	} {
		if ask[bool](b, expression) {
			t.Error(what)
		}
	}
	b.press("r", kb.ArrowDown, kb.ArrowDown, kb.ArrowDown, kb.ArrowDown, " ")
	b.ordered(f, "/v1/rules/..%2F..%2Fv1%2Fstop%3Fx%23y/arm map[]")
}

func TestLivePageAsksForTheToken(t *testing.T) {
	f := serve(t, busy)
	f.guard("right horse")
	b := open(t, wide)
	b.expect("401")
	b.do(chromedp.Navigate(f.URL))
	b.until(`document.activeElement.id == 'token'`)
	b.view("live-token")
	b.press("wrong horse", "\r")
	b.until(`document.getElementById('token-dialog').open && !document.getElementById('token-wrong').hidden`)
	b.press("right horse", "\r")
	b.until(shown)
	b.press("r", " ")
	b.ordered(f, "/v1/rules/pause/disarm map[]")
	if got := ask[string](b, `location.href + document.cookie + JSON.stringify(localStorage)`); strings.Contains(got, "horse") {
		t.Errorf("the token is in %q", got)
	}
	b.do(chromedp.Reload())
	b.until(shown)
	f.guard("another horse")
	b.until(`document.getElementById('token-dialog').open`)
}

func TestLivePageSaysThatNobodyAnswers(t *testing.T) {
	f := serve(t, busy)
	b := see(t, f, wide)
	b.expect("ERR_CONNECTION_REFUSED")
	b.expect("ERR_CONNECTION_RESET")
	b.expect("ERR_EMPTY_RESPONSE")
	f.hold(true) // no answer is cut in the midst of it
	for f.waiting() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	f.CloseClientConnections()
	f.Close()
	b.until(`document.getElementById('link').dataset.state == 'lost'`)
	b.until(`document.getElementById('trouble').textContent.startsWith('The daemon cannot be reached: no connection.')`)
	b.view("live-lost")
	before := ask[string](b, bars)
	b.frames(20)
	if after := ask[string](b, bars); after != before {
		t.Errorf("bars run although nothing is known: %s, then %s", before, after)
	}
}

func TestLivePageSaysWhatWasRefused(t *testing.T) {
	f := serve(t, busy)
	b := see(t, f, wide)
	b.expect("409")
	f.deny("it would freeze more than --max-frozen <b>1</b>")
	b.press("r", " ")
	b.until(`document.getElementById('trouble').textContent == 'pause was not switched: it would freeze more than --max-frozen <b>1</b>'`)
}

// A lock is not free while the key of a holder that went away keeps others from it.
func TestLivePageShowsWhatWasLeftBehind(t *testing.T) {
	f := serve(t, func(now time.Time) live.Snapshot {
		return live.Snapshot{Now: now, Name: "lockfaultd", Control: true, Locks: []live.Lock{{Name: "lock:a"}, {Name: "lock:b", Held: true, Holder: "A1", Gone: true, Waiters: 1},
			{Name: "lock:c", Waiters: 1, Stranger: true}}}
	})
	b := see(t, f, wide)
	b.until(`document.querySelectorAll('#locks li').length == 3`)
	if got := ask[string](b, `[...document.querySelectorAll('#locks li')].map(li => li.className + ': ' + li.innerText.replace(/\s+/g, ' ')).join('; ')`); !strings.Contains(got, "is-free: lock:a free; is-held: lock:b") || !strings.Contains(got, "held by A1, who is gone") || !strings.Contains(got, "is-held: lock:c 1 waiting") || !strings.Contains(got, "held by somebody unseen") {
		t.Error(got)
	}
}

const bars = `[...document.querySelectorAll('.bar .sure')].map(x => x.style.width).join(' ')`

// Bars run down between two answers, and for who wants no motion they do not.
func TestLivePageRunsBetweenAnswers(t *testing.T) {
	for name, still := range map[string]bool{"moves": false, "stands still": true} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, busy)
			s := wide
			s.still = still
			b := see(t, f, s)
			f.hold(true)
			defer f.hold(false)
			for f.waiting() == 0 { // it asks anew when what was on its way has come
				time.Sleep(10 * time.Millisecond)
			}
			before := ask[string](b, bars)
			if !still {
				b.until(bars + " != " + strconv.Quote(before))
				return
			}
			b.frames(12)
			if after := ask[string](b, bars); after != before {
				t.Errorf("%s, then %s", before, after)
			}
		})
	}
}

func TestLivePageCanBePaused(t *testing.T) {
	f := serve(t, busy)
	b := see(t, f, wide)
	b.press("p")
	b.until(`document.getElementById('link').dataset.state == 'paused'`)
	f.change(quiet)
	asked := f.count()
	for f.count() < asked+2 {
		time.Sleep(50 * time.Millisecond)
	}
	b.frames(2)
	if n := ask[int](b, `document.querySelectorAll('#locks li').length`); n < 2 {
		t.Error("the picture changed while it was paused")
	}
	b.press("p")
	b.until(`document.querySelectorAll('#locks li').length == 1`)
}

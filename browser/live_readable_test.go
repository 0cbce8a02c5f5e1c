package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"

	"github.com/lockfaultd/lockfaultd/live"
)

// pale lists the texts of a page that stand out too little from what is behind them: less than 4.5 to 1.
const pale = `(() => {
	const c = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true}), seen = new Map();
	const rgba = (x) => {
		if (!seen.has(x)) {
			c.clearRect(0, 0, 1, 1); c.fillStyle = x; c.fillRect(0, 0, 1, 1);
			const d = c.getImageData(0, 0, 1, 1).data;
			seen.set(x, [d[0], d[1], d[2], d[3] / 255]);
		}
		return seen.get(x);
	};
	const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
	const behind = (n) => {
		if (!n) return [255, 255, 255, 1];
		const own = rgba(getComputedStyle(n).backgroundColor);
		return own[3] === 1 ? own : over(own, behind(n.parentElement));
	};
	const light = (x) => { const [r, g, b] = x.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const out = [];
	for (const n of document.querySelectorAll("body *")) {
		const text = [...n.childNodes].filter((x) => x.nodeType === 3).map((x) => x.data.trim()).join("");
		if (!text || !n.checkVisibility({visibilityProperty: true}) || n.closest("svg, .unseen, .skip, option")) continue;
		const back = behind(n), front = over(rgba(getComputedStyle(n).color), back), [a, b] = [light(front), light(back)].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5) out.push(ratio.toFixed(2) + ": " + text.slice(0, 40));
	}
	return out;
})()`

func TestLivePageCanBeRead(t *testing.T) {
	for name, s := range map[string]screen{"light": wide, "dark": wide.inTheDark()} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, both)
			b := see(t, f, s)
			b.until(`document.querySelectorAll('#verdicts li').length == 5`)
			b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById('words').open = true, undefined`))
			b.until(`document.querySelectorAll('#words-list li').length > 0`)
			b.until(`document.getAnimations().every(a => a.playState != 'running' || a.effect.getTiming().iterations == Infinity)`) // colours fade in
			for _, x := range ask[[]string](b, pale) {
				t.Error(x)
			}
			b.press("?")
			for _, x := range ask[[]string](b, pale) {
				t.Error(x)
			}
		})
	}
}

// both is what a daemon would show that had everything to show.
func both(now time.Time) live.Snapshot {
	s := judged(now)
	s.Control, s.Rules = true, busy(now).Rules
	return s
}

// What can be operated and what can be listened to has a role, a name and a state.
func TestLivePageCanBeHeard(t *testing.T) {
	f := serve(t, both)
	b := see(t, f, wide)
	b.until(`document.getElementById('verdicts').getAttribute('aria-live') == 'polite'`)
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		t.Fatal(err)
	}
	heard := map[string]int{}
	for _, n := range tree.Nodes {
		if n.Ignored || n.Role == nil || n.Name == nil {
			continue
		}
		role, name := value(n.Role), value(n.Name)
		heard[role+" "+name]++
		switch role {
		case "button", "combobox", "list", "heading", "image", "checkbox", "dialog":
			if name == "" && role != "list" {
				t.Errorf("a %s has no name", role)
			}
		}
	}
	for _, want := range []string{
		"button pause", "button slow-grant", "button Stop all faults", "combobox armed for", "heading Locks", "heading Rules", "heading The last minute",
		"list Verdicts, the newest first", "list What the marks mean", "region Locks", "region Verdicts", "banner ", "main ",
	} {
		if heard[want] == 0 {
			t.Errorf("there is no %s", want)
		}
	}
	if got := ask[string](b, `document.querySelector('#picture title').textContent`); len(got) < 40 {
		t.Errorf("the picture says %q", got)
	}
}

func value(v *accessibility.Value) string {
	var s string
	if v != nil && v.Value != nil {
		s = fmt.Sprint(string(v.Value))
		if len(s) > 1 && s[0] == '"' {
			s = s[1 : len(s)-1]
		}
	}
	return s
}

// Of very much it draws what tells most, and says how much it left out.
func TestLivePageBoundsWhatItDraws(t *testing.T) {
	f := serve(t, func(now time.Time) live.Snapshot {
		s := both(now)
		for i := range 200 {
			s.Locks = append(s.Locks, live.Lock{Name: fmt.Sprintf("lock:%03d", i), Held: i%2 == 0, Holder: "worker-1", TTL: 30000, EndsFrom: now.Add(9 * time.Second), EndsTo: now.Add(10 * time.Second)})
			s.Actors = append(s.Actors, live.Actor{Label: fmt.Sprintf("client-%03d", i), State: live.Running, Sessions: 1})
		}
		at := now.Truncate(50 * time.Millisecond)
		for i := range 2000 - len(s.Marks) {
			s.Marks = append(s.Marks, live.Mark{At: at.Add(-time.Duration(i) * 30 * time.Millisecond), To: at.Add(-time.Duration(i)*30*time.Millisecond + 20*time.Millisecond), Kind: live.MarkSection, Lock: "lock:counter", Actor: fmt.Sprintf("worker-%d", i%5)})
		}
		return s
	})
	b := see(t, f, wide)
	for what, n := range map[string]int{"#locks > li": 12, "#actors > li": 12, "#lanes > div": 8} {
		if got := ask[int](b, "document.querySelectorAll('"+what+"').length"); got != n {
			t.Errorf("%d of %s, want %d", got, what, n)
		}
	}
	if got := ask[string](b, `['locks', 'actors'].map((x) => document.getElementById(x + '-note').textContent).join('; ')`); got != "12 of 206; 1 frozen, 1 stalled, 203 running" {
		t.Errorf("it says %q", got)
	}
	for _, kept := range []string{"lock:counter", "lock:002"} {
		if !ask[bool](b, `document.getElementById('locks').textContent.includes('`+kept+`')`) {
			t.Errorf("%s is not among those shown", kept)
		}
	}
	b.shot("live-full")
	b.do(chromedp.Click(chromedp.ID("locks-more")))
	b.until(`document.querySelectorAll('#locks > li').length == 206 && document.getElementById('locks-more').textContent == 'Show fewer'`)
}

package browser

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/probe/check"
	"github.com/lockfaultd/lockfaultd/report"
	"github.com/lockfaultd/lockfaultd/report/html"
)

// aReport is the page of a history with one lost update, words of it replaced.
func aReport(t *testing.T, words ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "report", "html", "testdata", "lost.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.NewReplacer(words...).Replace(string(text)))
	h, err := history.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r := report.Run{Unplanned: true, Seed: h.Header.Seed, Started: h.Header.Started, Injections: h.Injections, Turns: h.Turns}
	for _, i := range h.Injections {
		r.Rules = append(r.Rules, report.RuleUse{Text: i.Rule, Fired: 1})
	}
	r.Result, err = check.Draw(func(take func(history.Entry) error) error { return history.Scan(bytes.NewReader(text), take) }, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := html.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read opens a report, and fails the test if the page asks for anything else.
func read(t *testing.T, text []byte, s screen) *tab {
	t.Helper()
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if asked = append(asked, r.URL.Path); r.URL.Path != "/report.html" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(text)
	}))
	t.Cleanup(server.Close)
	b := open(t, s)
	b.do(chromedp.Navigate(server.URL + "/report.html"))
	b.until(`document.readyState === 'complete'`)
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(asked, []string{"/report.html"}) {
			t.Errorf("the page asked for %q", asked)
		}
	})
	return b
}

// dim lists what is written in a colour that is hard to read on its background: below 4.5 to 1.
const dim = `(() => {
	const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
	const rgb = c => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
	const light = c => [0, 1, 2].map(i => c[i] / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
	const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255]; };
	const out = [];
	for (const e of document.querySelectorAll('body *')) {
		if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || ['title', 'desc', 'STYLE'].includes(e.tagName)) continue;
		const style = getComputedStyle(e), front = light(rgb(e.ownerSVGElement ? style.fill : style.color)), back = light(behind(e));
		const ratio = (Math.max(front, back) + .05) / (Math.min(front, back) + .05);
		if (ratio < 4.5) out.push(ratio.toFixed(2) + ' ' + e.tagName + '.' + e.getAttribute('class') + ' ' + e.textContent.trim().slice(0, 30));
	}
	return JSON.stringify(out);
})()`

func TestReportIsReadable(t *testing.T) {
	text := aReport(t)
	for name, s := range map[string]screen{
		"wide-light": wide, "wide-dark": wide.inTheDark(), "narrow-light": narrow, "narrow-dark": narrow.inTheDark(),
	} {
		t.Run(name, func(t *testing.T) {
			b := read(t, text, s)
			var hard []string
			if err := json.Unmarshal([]byte(ask[string](b, dim)), &hard); err != nil || len(hard) > 0 {
				t.Errorf("hard to read: %v %q", err, hard)
			}
			if ask[bool](b, `document.documentElement.scrollWidth > innerWidth`) {
				t.Error("it is wider than the screen")
			}
			dark := ask[bool](b, `getComputedStyle(document.body).backgroundColor.match(/\d+/)[0] < 100`)
			if dark != s.dark {
				t.Errorf("dark: %v", dark)
			}
			b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#causes details').open = true`))
			b.shot("report-" + name)
		})
	}
}

// Each section has its heading, each table its heads and each drawing its words: nothing is
// told by the picture alone.
func TestReportIsAccessible(t *testing.T) {
	b := read(t, aReport(t), wide)
	for what, expression := range map[string]string{
		"a heading in each section":      `document.querySelectorAll('section').length === 7 && [...document.querySelectorAll('section')].every(s => s.querySelector('h2') && document.getElementById(s.getAttribute('aria-labelledby')) === s.querySelector('h2'))`,
		"one first heading":              `document.querySelectorAll('h1').length === 1`,
		"heads of columns":               `[...document.querySelectorAll('table')].every(t => t.querySelector('thead th[scope=col]'))`,
		"a title and a description":      `[...document.querySelectorAll('figure svg')].every(s => s.querySelector('title').textContent && s.querySelector('desc').textContent.includes('reads'))`,
		"what the links of it lead to":   `[...document.querySelectorAll('nav a')].every(a => document.querySelector(a.getAttribute('href')))`,
		"no two things of one name":      `new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size === document.querySelectorAll('[id]').length`,
		"a picture of the cause":         `document.querySelectorAll('#causes figure svg text').length > 20`,
		"its lease with a hatched end":   `document.querySelectorAll('#causes figure .unsure').length > 0 && document.querySelectorAll('#causes figure .pause').length > 0`,
		"the same as a table":            `document.querySelectorAll('#causes details tbody tr').length > 8`,
		"no script":                      `document.scripts.length === 0`,
		"nothing that was asked for":     `performance.getEntriesByType('resource').length === 0`,
		"its language":                   `document.documentElement.lang === 'en'`,
		"text of drawings within bounds": `[...document.querySelectorAll('figure svg text')].every(e => { const b = e.getBBox(); return b.x >= 0 && b.x + b.width <= 720 })`,
	} {
		if !ask[bool](b, expression) {
			t.Errorf("it does not have %s", what)
		}
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#causes summary').focus()`))
	b.press("\r")
	b.until(`document.querySelector('#causes details').open`)
}

// Names from the wire that are markup and scripts stay names.
func TestReportOfHostileHistory(t *testing.T) {
	b := read(t, aReport(t, "lock:tickets", `</title></style><script>window.harmed = 1</script>`, "tickets", `t\"><img src=x onerror=\"window.harmed = 2\">`,
		`"A2"`, `"A2'\"></text></svg><svg onload=\"window.harmed = 3\"><a href=\"javascript:window.harmed = 4\">"`), wide)
	if ask[bool](b, `'harmed' in window || document.scripts.length + document.images.length + document.querySelectorAll('svg a, [onload], [onerror]').length > 0`) {
		t.Error("a name was carried out")
	}
	if !ask[bool](b, `document.querySelector('#locks h3 code').textContent === '</title></style><script>window.harmed = 1<'+'/script>'`) {
		t.Errorf("the lock is called %q", ask[string](b, `document.querySelector('#locks h3 code').textContent`))
	}
	if !ask[bool](b, `[...document.querySelectorAll('figure svg text')].some(e => e.textContent.includes("A2'\"></text>"))`) {
		t.Error("the drawing does not name the process")
	}
	b.shot("report-hostile")
}

func TestReportOnPaper(t *testing.T) {
	for name, s := range map[string]screen{"light": wide, "dark": wide.inTheDark()} {
		b := read(t, aReport(t), s)
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		if ask[string](b, `getComputedStyle(document.body).backgroundColor`) != "rgb(255, 255, 255)" {
			t.Errorf("%s: the paper is not white", name)
		}
		if name == "dark" {
			b.shot("report-paper")
		}
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
		pdf, err := chromedp.Call(b.ctx, page.PrintToPDF, page.PrintToPDFParams{PrintBackground: new(true)})
		if err != nil || !bytes.HasPrefix(pdf.Data, []byte("%PDF-")) {
			t.Fatalf("%v: %.20q", err, pdf.Data)
		}
		dir := filepath.Join("..", "out", "browser")
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "report-"+name+".pdf"), pdf.Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

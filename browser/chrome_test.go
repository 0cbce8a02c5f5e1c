package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// patience bounds one test in the browser. It is for one that hangs: no test waits for it.
const patience = 2 * time.Minute

// A screen is what a page is looked at with.
type screen struct {
	width, height int64
	dark, still   bool // still: who looks wants no motion
}

// A tab is a page of a browser of its own.
type tab struct {
	t        *testing.T
	ctx      context.Context
	expected []string        // parts of errors that are no fault
	console  <-chan []string // what was wrong, when the console has said last
}

// last is what the console says when the test is over.
const last = "this test is over"

// open starts a browser; the test fails at its end if the console has had an error that was not expected.
func open(t *testing.T, s screen) *tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no chromium: scripts/need.sh chromium")
		}
		t.Skip("no chromium: scripts/need.sh chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("force-color-profile", "srgb"))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	b.look(s)
	b.console = listen(ctx)
	t.Cleanup(b.check)
	return b
}

// listen gathers warnings, errors and exceptions until the console says last.
func listen(ctx context.Context) <-chan []string {
	said, out := chromedp.Console(ctx), make(chan []string, 1)
	go func() {
		var wrong []string
		for m, err := range said {
			if err != nil {
				wrong = append(wrong, err.Error())
				break
			}
			if m.Text == last {
				break
			}
			switch m.Type {
			case chromedp.ConsoleWarning, chromedp.ConsoleError, chromedp.ConsoleException:
				wrong = append(wrong, m.String()+" "+m.URL)
			}
		}
		out <- wrong
	}()
	return out
}

// call is one command of the browser's protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatalf("%s: %v", command.Method, err)
	}
}

// look sets the size, the scheme and whether motion is wanted.
func (b *tab) look(s screen) {
	b.t.Helper()
	scheme, motion := "light", "no-preference"
	if s.dark {
		scheme = "dark"
	}
	if s.still {
		motion = "reduce"
	}
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height, DeviceScaleFactor: 1})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
	}})
}

// expect allows errors of the console that contain text.
func (b *tab) expect(text string) { b.expected = append(b.expected, text) }

func (b *tab) check() {
	ask[bool](b, `console.log("`+last+`"), true`)
next:
	for _, w := range <-b.console {
		for _, e := range b.expected {
			if strings.Contains(w, e) {
				continue next
			}
		}
		b.t.Errorf("the browser says: %s", w)
	}
}

// do runs actions; the test ends if one fails.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
}

// ask returns what an expression is in the page.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ask[bool](b, "!!("+expression+")") {
			return
		}
	}
	b.view("failed")
	b.t.Fatalf("waited for %s; the page says:\n%s", expression, ask[string](b, `document.body.innerText`))
}

// frames waits until the page has drawn so many more.
func (b *tab) frames(n int) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`window.drawn = 0, requestAnimationFrame(function drawn() { window.drawn++; requestAnimationFrame(drawn) }), undefined`))
	b.until(fmt.Sprintf("window.drawn >= %d", n))
}

// shot keeps a picture of the whole page below out/browser.
func (b *tab) shot(name string) { b.t.Helper(); b.keep(name, chromedp.FullScreenshot(100)) }

// view keeps a picture of what the screen shows.
func (b *tab) view(name string) { b.t.Helper(); b.keep(name, chromedp.CaptureScreenshot()) }

func (b *tab) keep(name string, take chromedp.Action[[]byte]) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, take)
	if err != nil {
		b.t.Fatalf("take a picture: %v", err)
	}
	dir := filepath.Join("..", "out", "browser")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o666); err != nil {
		b.t.Fatal(err)
	}
}

package html

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
	"github.com/lockfaultd/lockfaultd/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// judged is the run that a history of testdata is, with words of it replaced.
func judged(t *testing.T, file string, words ...string) report.Run {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.NewReplacer(words...).Replace(string(text)))
	r := report.Run{Unplanned: true, Repeat: "lockfaultd run --freeze-before 'write(tickets)#5=until:lease-expired+next-write' --seed 295517 -- ./book"}
	first := true
	r.Result, err = check.Draw(func(take func(history.Entry) error) error {
		keep := first
		first = false
		return history.Scan(bytes.NewReader(text), func(e history.Entry) error {
			switch {
			case keep && e.Header != nil:
				r.Seed, r.Started = e.Header.Seed, e.Header.Started
			case keep && e.Injection != nil:
				r.Injections = append(r.Injections, *e.Injection)
				r.Rules = []report.RuleUse{{Text: e.Injection.Rule, Fired: 1}}
			}
			return take(e)
		})
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Elapsed = 995 * time.Millisecond
	return r
}

func written(t *testing.T, r report.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	for name, r := range map[string]report.Run{"lost": judged(t, "lost.jsonl"), "nothing": {}} {
		got := written(t, r)
		if again := written(t, r); again != got {
			t.Errorf("%s: the same run makes another page", name)
		}
		file := filepath.Join("testdata", name+".html")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || string(want) != got {
			t.Errorf("%s: %v; the page is another: go test ./report/html -update, and read it", name, err)
		}
	}
}

// Every drawing is well-formed XML with a title and a description, and its elements are those few.
func TestDrawingsAreWellFormed(t *testing.T) {
	text := written(t, judged(t, "lost.jsonl"))
	drawings := 0
	for _, part := range strings.Split(text, "<figure")[1:] {
		drawings++
		_, part, _ = strings.Cut(part, "</figcaption>")
		svg, _, _ := strings.Cut(part, "</figure>")
		d := xml.NewDecoder(strings.NewReader(svg))
		seen := map[string]int{}
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, svg)
			}
			if e, ok := token.(xml.StartElement); ok {
				seen[e.Name.Local]++
			}
		}
		if seen["title"] == 0 || seen["desc"] != 1 || seen["text"] < 10 || seen["script"]+seen["image"]+seen["a"] > 0 {
			t.Errorf("%v", seen)
		}
	}
	if drawings != 1 {
		t.Errorf("%d drawings", drawings)
	}
}

// What came from the wire stays text, wherever it goes.
func TestHostileNames(t *testing.T) {
	key, table, actor := `</title><script>alert(1)</script>`, `t\"><img src=x onerror=alert(2)>`, `A2'\"></svg><svg onload=alert(3)>`
	r := judged(t, "lost.jsonl", "lock:tickets", key, "tickets", table, `"A2"`, `"`+actor+`"`)
	r.Repeat = "lockfaultd run --seed 1 -- '</code><script>alert(4)</script>'"
	r.Command = []string{"<script>alert(5)</script>", "\u202e<b>"}
	r.Files = []string{"<script>alert(6)</script>"}
	r.Blind = []string{"<script>alert(7)</script>"}
	if !strings.Contains(r.Result.Map[0].Lock, "<script>") {
		t.Fatalf("the history is not hostile: %+v", r.Result.Map)
	}
	text := written(t, r)
	for _, bad := range []string{"<script", "<img", "<svg onload", "\u202e", "javascript:"} {
		if strings.Contains(strings.ToLower(text), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"&lt;script&gt;alert(1)", "&lt;img src=x", `\u202e`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not tell %q", want)
		}
	}
}

// Nothing in a page makes a browser ask for anything.
func TestNoRequests(t *testing.T) {
	text := written(t, judged(t, "lost.jsonl"))
	for _, bad := range []string{"http:", "https:", "//cdn", "@import", "url(http", "src=", "<link rel=\"stylesheet"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(text, "default-src &#39;none&#39;") && !strings.Contains(text, "default-src 'none'") {
		t.Error("it forbids itself nothing")
	}
}

// However much there is to say, a page is bounded, and counts what it leaves out.
func TestAPageIsBounded(t *testing.T) {
	r := judged(t, "lost.jsonl")
	lost := r.Result.Verdicts[0]
	for i := range 400 {
		v := lost
		v.Lock, v.Table = "lock:"+letters(i), fmt.Sprint("t", letters(i))
		v.Proof = strings.Repeat("<&> ", 20_000)
		r.Result.Verdicts = append(r.Result.Verdicts, v)
		r.Injections = append(r.Injections, history.Injection{ID: uint64(i + 2), Rule: strings.Repeat("<", 9000), Outcome: "landed"})
		r.Result.Map = append(r.Result.Map, check.MapEntry{Lock: strings.Repeat("\"", 9000)})
		r.Result.Facts.Locks = append(r.Result.Facts.Locks, check.LockFact{Lock: strings.Repeat("&", 9000)})
	}
	text := written(t, r)
	if len(text) > Limit {
		t.Errorf("%d bytes", len(text))
	}
	if !strings.Contains(text, "root causes not shown") {
		t.Error("it does not say how many causes are not shown")
	}
	if n := strings.Count(text, `<article class="cause"`); n == 0 || n > report.ShownCauses {
		t.Errorf("%d causes", n)
	}
}

func letters(i int) string { return string(rune('a'+i/26)) + string(rune('a'+i%26)) }

func TestTicks(t *testing.T) {
	for _, span := range []lock.Instant{1, 7, 1e3, 1e6, 3e8, 36e11, 1 << 60} {
		if n := len(ticks(0, span)); n < 1 || n > 12 {
			t.Errorf("%d: %d ticks", span, n)
		}
	}
}

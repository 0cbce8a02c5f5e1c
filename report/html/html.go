package html

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lockfaultd/lockfaultd/report"
)

//go:embed report.css report.html.tmpl
var assets embed.FS

// Limit is how long a page is at most, in bytes.
const Limit = 2 << 20

// Bounds of what a page shows of long lists and texts; report.json has all of it.
const (
	shownLocks = 60
	shownLines = 40
	longest    = 6000 // a text, in letters
	longName   = 240  // a lock's key, or a target, in a list
)

// Write writes the report's page. Of a run that would make it longer than Limit less is
// shown, and the rest counted. It returns the writer's first error.
func Write(w io.Writer, r report.Run) error {
	p, err := pageOf(r.View())
	if err != nil {
		return err
	}
	b, err := p.fitted(Limit)
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// parse reads the template, whose texts are cut at so many letters.
func parse(letters int) (*template.Template, error) {
	t, err := template.New("report.html.tmpl").Funcs(template.FuncMap{
		"plain": func(s string) string { return plain(s, letters) },
		"name":  func(s string) string { return plain(s, min(letters, longName)) },
		"prose": prose, "many": many, "percent": percent,
	}).ParseFS(assets, "report.html.tmpl")
	if err != nil {
		return nil, fmt.Errorf("parse page: %w", err)
	}
	return t, nil
}

// A page is what the template is filled with.
type page struct {
	report.View
	Style   template.CSS
	Causes  []cause
	Locks   []string
	Tables  []string
	Map     []report.LockView
	MoreMap int
}

type cause struct {
	report.Cause
	N       int
	Drawing *drawing
}

func pageOf(v report.View) (*page, error) {
	css, err := assets.ReadFile("report.css")
	if err != nil {
		return nil, fmt.Errorf("read style: %w", err)
	}
	p := &page{View: v, Style: template.CSS(css), Locks: v.Locks, Tables: v.Tables, Map: v.Map}
	p.shorten(shownLocks, shownLines)
	for i, c := range v.Causes {
		p.Causes = append(p.Causes, cause{Cause: c, N: i + 1, Drawing: draw(c, i+1)})
	}
	return p, nil
}

// shorten leaves so many locks on the map, and so many lines in other lists.
func (p *page) shorten(locks, lines int) {
	if n := len(p.Map) - locks; n > 0 {
		p.Map, p.MoreMap = p.Map[:locks], p.MoreMap+n
	}
	p.Locks, p.Tables, p.NotSeen, p.Unproven = some(p.Locks, lines), some(p.Tables, lines), some(p.NotSeen, lines), some(p.Unproven, lines)
}

// fitted is the page with as much of all as there is room for: what is too long by far is
// halved until it fits.
func (p *page) fitted(limit int) ([]byte, error) {
	for size := 1; ; size *= 2 {
		t, err := parse(longest / size)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, p); err != nil {
			return nil, fmt.Errorf("fill page: %w", err)
		}
		if b.Len() <= limit || size > longest {
			return b.Bytes(), nil
		}
		n := len(p.Causes)
		keep := (n*3 + 3) / 4
		p.Causes, p.More = p.Causes[:keep], p.More+n-keep
		p.shorten(shownLocks/size, shownLines/size)
	}
}

// some is a list with its first lines, and how many more there are.
func some(list []string, n int) []string {
	if len(list) <= n+1 {
		return list
	}
	return append(list[:n:n], fmt.Sprintf("and %d more", len(list)-n))
}

// plain makes text of the wire one that is seen as it is: what does not print, or turns the
// direction of writing, is spelled out, and what is very long is cut.
func plain(s string, letters int) string {
	var b strings.Builder
	n := 0
	for _, c := range s {
		if n++; n > letters {
			b.WriteString(" …")
			break
		}
		switch {
		case c == '\n' || c == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(c) && c != utf8.RuneError:
			b.WriteRune(c)
		default:
			fmt.Fprintf(&b, "\\u%04x", c)
		}
	}
	return b.String()
}

// prose is text of docs/verdicts.md, where words between backquotes are code.
func prose(s string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(s, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String())
}

func many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// percent is a share for a style, from 0 to 100.
func percent(share float64) string { return fmt.Sprintf("%.1f", 100*max(0, min(1, share))) }

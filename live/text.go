package live

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// plain spells out what a terminal would act on, or what would change how its neighbours are read.
func plain(s string) string {
	if strings.IndexFunc(s, odd) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case odd(r) && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case odd(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func odd(r rune) bool {
	return r == utf8.RuneError || unicode.Is(unicode.C, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// cells is how many places of a terminal a text takes.
func cells(s string) int {
	n := 0
	for _, r := range s {
		n += cellsOf(r)
	}
	return n
}

func cellsOf(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// cut shortens a text to n cells, with a sign that it did.
func cut(s string, n int) string {
	if cells(s) <= n {
		return s
	}
	used := 0
	for i, r := range s {
		if used += cellsOf(r); used > n-1 {
			if n < 1 {
				return ""
			}
			return s[:i] + "…"
		}
	}
	return s
}

// pad makes a text n cells wide.
func pad(s string, n int) string {
	s = cut(s, n)
	return s + strings.Repeat(" ", max(0, n-cells(s)))
}

// spell writes a stretch of time as people read it.
func spell(d time.Duration) string {
	switch a := d.Abs(); {
	case a < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case a < time.Minute:
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	case a < time.Hour && int(d.Seconds())%60 == 0:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case a < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// clock is the time of day, with its date where that is another.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if now.Sub(t).Abs() > 20*time.Hour {
		return t.Format("2006-01-02 15:04:05")
	}
	return t.Format("15:04:05")
}

func many(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// join puts what is not empty beside each other.
func join(facts ...string) string {
	var some []string
	for _, f := range facts {
		if f != "" {
			some = append(some, f)
		}
	}
	return strings.Join(some, ", ")
}

// wrap breaks a text between its words: the first line has room for first cells, the others for rest. A word that is
// longer than a line is broken too.
func wrap(s string, first, rest int) []string {
	lines, room := []string{""}, max(0, first)
	next := func() { lines, room = append(lines, ""), max(2, rest) }
	for _, word := range strings.Fields(s) {
		last := &lines[len(lines)-1]
		if n := cells(word); *last != "" && 1+n <= room {
			*last += " " + word
			room -= 1 + n
			continue
		}
		if *last != "" || cells(word) > room {
			next()
		}
		for cells(word) > room {
			head := fitting(word, room)
			lines[len(lines)-1] = head
			word = word[len(head):]
			next()
		}
		lines[len(lines)-1] = word
		room -= cells(word)
	}
	return lines
}

// fitting is what of a text has room in n cells: one character at least.
func fitting(s string, n int) string {
	for i, r := range s {
		if n -= cellsOf(r); n < 0 && i > 0 {
			return s[:i]
		}
	}
	return s
}

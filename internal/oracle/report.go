package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// hash names a statement without telling it.
func hash(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	return hex.EncodeToString(sum[:8])
}

// readMisses reads the list of known misses: hash, place, kind and reason.
func readMisses(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read misses: %w", err)
	}
	defer f.Close()
	known := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		h, why, ok := strings.Cut(lines.Text(), " ")
		if ok && !strings.HasPrefix(h, "#") {
			known[h] = why
		}
	}
	return known, nil
}

// checkOwn holds what is expected of the statements that are written down
// against the grammar. What it expects of the reader, the product's own test
// checks.
func checkOwn(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read statements: %w", err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		expected, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		list, refused := statements("own", []byte(text+";\n"))
		if len(list) != 1 || refused != 0 {
			return fmt.Errorf("%s: not a statement: %s", path, text)
		}
		words := append(strings.SplitN(expected, " ", 3), "", "")
		kind := strings.TrimPrefix(words[0], "-")
		want := strings.TrimSpace(fmt.Sprintf("%s %s %s", words[0], orNone(class(words[1], kind)), words[2]))
		if got := meaningOf(list[0].tree.Stmt).line(); got != want {
			return fmt.Errorf("%s: %s: is %q, expected %q", path, text, got, want)
		}
		n++
	}
	fmt.Printf("%d statements of our own mean to Postgres what is expected of them\n\n", n)
	return nil
}

// line writes a meaning down as the list of statements does.
func (m *meaning) line() string {
	parts := []string{orNone(m.kind), orNone(m.verb)}
	for _, t := range m.tables {
		if slices.Contains(m.writes, t) {
			t += "!"
		}
		parts = append(parts, t)
	}
	return strings.Join(parts, " ")
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (c *comparison) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-18s %9s %7s\n", "statements", "compared", "missed")
	for _, k := range slices.Sorted(maps.Keys(c.byKind)) {
		fmt.Fprintf(&b, "%-18s %9d %7d\n", k, c.byKind[k], c.missed[k])
	}
	fmt.Fprintf(&b, "%-18s %9d %7d   agreement %.3f %%, %v each\n", "all", len(c.all), c.misses(), 100*c.agreement(), c.each)
	fmt.Fprintf(&b, "\n%d scripts; %d pieces are no statements to the grammar (tests of errors, psql's variables) and were left out\n", c.files, c.refused)
	return b.String()
}

func (c *comparison) misses() int {
	n := 0
	for _, m := range c.missed {
		n += m
	}
	return n
}

func (c *comparison) agreement() float64 {
	return 1 - float64(c.misses())/float64(max(len(c.all), 1))
}

// verdict is nil if all is as it was known to be.
func (c *comparison) verdict(known map[string]string) error {
	var errs []error
	for _, m := range c.missing {
		errs = append(errs, fmt.Errorf("a new miss: %s", m))
	}
	for _, h := range slices.Sorted(maps.Keys(known)) {
		if !c.seen[h] {
			errs = append(errs, fmt.Errorf("no miss any more, take it off the list: %s %s", h, known[h]))
		}
	}
	for _, u := range c.unsplit {
		errs = append(errs, fmt.Errorf("cut otherwise: %s", u))
	}
	if c.panics > 0 {
		errs = append(errs, fmt.Errorf("%d texts cut short panic", c.panics))
	}
	if c.agreement() < enough {
		errs = append(errs, fmt.Errorf("agreement is %.3f %%, expected %.1f", 100*c.agreement(), 100*enough))
	}
	return errors.Join(errs...)
}

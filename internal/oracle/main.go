// Oracle holds what proxy/pgwire reads of SQL against Postgres's own grammar.
//
// It fetches the source of Postgres through apt, once, cuts the scripts of its
// regression tests into statements, and compares for each of them where it
// begins and ends, what it does, and to which tables. The statements that are
// written down in proxy/pgwire/testdata are compared as well. The grammar comes
// as C (libpg_query), so this is a module of its own, and neither the product
// nor its tests need it.
//
// misses.txt lists the statements that are known to be read otherwise, by a
// hash of their text. The check fails if another one is, or one of the list no
// longer, or if less than 99.5 % agree.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
)

// enough is the share of statements that must be read as the grammar has them.
const enough = 0.995

func main() {
	dir := flag.String("dir", "", "directory of .sql files to read instead of Postgres's own")
	list := flag.String("misses", "misses.txt", "the known misses")
	own := flag.String("statements", "../../proxy/pgwire/testdata/statements.txt", "statements with what is expected of them")
	flag.Parse()
	if err := check(*dir, *list, *own); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func check(dir, list, own string) (err error) {
	if dir == "" {
		if dir, err = fetch(); err != nil {
			return err
		}
	}
	known, err := readMisses(list)
	if err != nil {
		return err
	}
	if err := checkOwn(own); err != nil {
		return err
	}
	c, err := collect(dir)
	if err != nil {
		return err
	}
	c.compare(known)
	c.split()
	c.prefixes()
	fmt.Print(c.table())
	return c.verdict(known)
}

// A comparison is of all statements of a directory.
type comparison struct {
	files, refused int
	all            []statement
	byKind         map[string]int
	missed         map[string]int // by kind
	missing        []string       // misses that the list has not
	seen           map[string]bool
	unsplit        []string // files that are cut otherwise
	panics         int
	each           time.Duration
}

func collect(dir string) (*comparison, error) {
	c := &comparison{byKind: map[string]int{}, missed: map[string]int{}, seen: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("find scripts in %s: none (%v)", dir, err)
	}
	for _, f := range files {
		script, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("read script: %w", err)
		}
		list, refused := statements(filepath.Base(f), script)
		c.files, c.refused, c.all = c.files+1, c.refused+refused, append(c.all, list...)
	}
	return c, nil
}

// compare reads each statement alone.
func (c *comparison) compare(known map[string]string) {
	for _, s := range c.all {
		m := meaningOf(s.tree.Stmt)
		c.byKind[m.group()]++
		got := readings(s.text)
		why := m.differs(got)
		if why == "" {
			continue
		}
		c.missed[m.group()]++
		h := hash(s.text)
		if c.seen[h] = true; known[h] == "" {
			c.missing = append(c.missing, fmt.Sprintf("%s %s:%d %s", h, s.file, s.ordinal, why))
		}
	}
	start := time.Now()
	for _, s := range c.all {
		readings(s.text)
	}
	c.each = time.Since(start) / time.Duration(max(len(c.all), 1))
}

// readings is what the product reads, nil if it panics.
func readings(text string) (list []pgwire.Reading) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s%q\n", p, debug.Stack(), text)
			list = nil
		}
	}()
	return pgwire.Read(text)
}

// differs says in what a reading is not the statement's meaning.
func (m *meaning) differs(list []pgwire.Reading) string {
	if len(list) != 1 {
		return fmt.Sprintf("is read as %d statements", len(list))
	}
	r := list[0]
	got := meaning{verb: class(r.Verb, string(r.Kind)), kind: string(r.Kind), tables: r.Tables, writes: r.Writes}
	if got.kind == m.kind && got.verb == m.verb && slices.Equal(got.tables, m.tables) && slices.Equal(got.writes, m.writes) {
		return ""
	}
	return fmt.Sprintf("read as %s, is %s", got.String(), m.String())
}

func (m *meaning) String() string {
	return fmt.Sprintf("%q %s tables %v writes %v", m.kind, m.verb, m.tables, m.writes)
}

// group names a statement's kind in the table that is printed.
func (m *meaning) group() string {
	switch {
	case m.kind != "" && m.verb != "" && m.kind != "read":
		return m.kind + " " + m.verb
	case m.kind != "":
		return m.kind
	case m.verb != "":
		return m.verb
	}
	return "utility"
}

// split reads the statements of each file in texts of many, and checks that
// they are cut where the grammar cuts them.
func (c *comparison) split() {
	const many = 200
	for from := 0; from < len(c.all); from += many {
		part := c.all[from:min(from+many, len(c.all))]
		text := ""
		var ends []int
		for _, s := range part {
			text += s.text
			ends = append(ends, len(text))
			text += ";\n"
		}
		list := readings(text)
		for i, end := range ends {
			if len(list) != len(ends) || list[i].To != end && trimmed(text[list[i].To:end]) {
				c.unsplit = append(c.unsplit, fmt.Sprintf("%s:%d: %d statements, expected %d", part[i].file, part[i].ordinal, len(list), len(ends)))
				break
			}
		}
	}
}

// trimmed reports whether a text holds more than space and comments.
func trimmed(text string) bool { return len(readings(text)) > 0 }

// prefixes reads each statement cut short in some places, for panics only.
func (c *comparison) prefixes() {
	for _, s := range c.all {
		for _, n := range []int{1, 2, 3, 5, 8} {
			text := s.text[:len(s.text)*n/9]
			if len(text) > 0 && readings(text) == nil && pgwire.Read("select 1;"+text) == nil {
				c.panics++
			}
		}
	}
}

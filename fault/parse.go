package fault

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lockfaultd/lockfaultd/internal/nearest"
	"github.com/lockfaultd/lockfaultd/lock"
)

// An Error says why the text of a rule is refused.
type Error struct {
	Flag   string // without dashes
	Text   string // the flag's value
	Offset int    // in Text, in bytes: where the trouble is; -1 when the flag itself is
	Reason string // what was found, and what was expected
}

// Error names the flag, the text, the column (in characters, from 1) and the reason.
func (e *Error) Error() string {
	if e.Offset < 0 {
		return "--" + e.Flag + ": " + e.Reason
	}
	column := utf8.RuneCountInString(e.Text[:e.Offset]) + 1
	return fmt.Sprintf("--%s: %s: column %d: %s", e.Flag, shown(e.Text), column, e.Reason)
}

// shown makes a text fit for one line of a terminal.
func shown(s string) string {
	s = cut(s)
	odd := func(r rune) bool { return !strconv.IsPrint(r) }
	if s == "" || s != strings.TrimSpace(s) || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}

func quoted(s string) string { return strconv.Quote(cut(s)) }

func cut(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// Parse compiles the value of a rule flag, named without its dashes, such as
// "stall-after". Its errors are of type *[Error].
func Parse(flag, text string) (Rule, error) {
	p := &parser{flag: flag, text: text}
	act, at, err := p.parseFlag()
	if err != nil {
		return Rule{}, err
	}
	p.rule = Rule{Do: act, At: at, Text: "--" + flag + " " + text}
	for _, part := range []func() error{p.anchor, p.effect, p.keys, p.sense} {
		if err := part(); err != nil {
			return Rule{}, err
		}
	}
	return p.rule, nil
}

type parser struct {
	flag, text string
	pos        int // of the next byte to read
	rule       Rule

	effectAt int            // where the effect's text begins
	gateAt   int            // where until: stood, if it did
	keyAt    map[string]int // where each key's value began
}

// fail makes the error for the given place in the text.
func (p *parser) fail(at int, format string, args ...any) error {
	return &Error{Flag: p.flag, Text: p.text, Offset: min(at, len(p.text)), Reason: fmt.Sprintf(format, args...)}
}

func (p *parser) parseFlag() (Act, Phase, error) {
	var names []string
	for _, f := range Flags() {
		if f.Name == p.flag {
			return f.Do, f.At, nil
		}
		names = append(names, f.Name)
	}
	return "", "", &Error{Flag: p.flag, Text: p.text, Offset: -1, Reason: "no such rule flag, expected one like --" + nearest.Word(p.flag, names)}
}

// rest is what has not been read.
func (p *parser) rest() string { return p.text[p.pos:] }

// accept reads s if it is next.
func (p *parser) accept(s string) bool {
	if strings.HasPrefix(p.rest(), s) {
		p.pos += len(s)
		return true
	}
	return false
}

// take reads the longest run of the bytes that ok accepts.
func (p *parser) take(ok func(c byte) bool) string {
	from := p.pos
	for p.pos < len(p.text) && ok(p.text[p.pos]) {
		p.pos++
	}
	return p.text[from:p.pos]
}

// found describes what is next, for an error.
func (p *parser) found() string {
	if p.pos >= len(p.text) {
		return "found the end"
	}
	r, _ := utf8.DecodeRuneInString(p.rest())
	return "found " + strconv.QuoteRune(r)
}

func digit(c byte) bool  { return '0' <= c && c <= '9' }
func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func word(c byte) bool   { return letter(c) || digit(c) || c == '_' || c == '-' }

// most bounds every integer of the grammar.
const most = 1_000_000_000

// number reads an integer.
func (p *parser) number(what string) (int, error) {
	at := p.pos
	s := p.take(digit)
	if s == "" {
		return 0, p.fail(at, "expected %s, %s", what, p.found())
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > most {
		return 0, p.fail(at, "%s is too large, expected at most %d", shown(s), most)
	}
	return n, nil
}

// decimal reads a number such as 1.5.
func (p *parser) decimal(what string) (float64, error) {
	at := p.pos
	s := p.take(func(c byte) bool { return digit(c) || c == '.' })
	f, err := strconv.ParseFloat(s, 64)
	if s == "" {
		return 0, p.fail(at, "expected %s, %s", what, p.found())
	}
	if err != nil {
		return 0, p.fail(at, "expected %s, found %s", what, quoted(s))
	}
	return f, nil
}

// duration reads a length of time such as 800ms, 1.5s or 1m30s.
func (p *parser) duration(what string) (time.Duration, error) {
	at := p.pos
	if p.accept("-") {
		return 0, p.fail(at, "a negative duration, expected %s", what)
	}
	s := p.take(func(c byte) bool { return digit(c) || letter(c) || c == '.' || c >= utf8.RuneSelf })
	d, err := time.ParseDuration(s)
	switch {
	case s == "":
		return 0, p.fail(at, "expected %s, %s", what, p.found())
	case err != nil && strings.Trim(s, "0123456789.") == "":
		return 0, p.fail(p.pos, "expected a unit after %s: ns, us, ms, s, m or h", shown(s))
	case err != nil:
		return 0, p.fail(at, "expected %s, found %s", what, quoted(s))
	case s == "0":
		return 0, p.fail(p.pos, "expected a unit after 0: ns, us, ms, s, m or h")
	case d > longest:
		return 0, p.fail(at, "%s is too long, expected at most %s", shown(s), longest)
	}
	return d, nil
}

func (p *parser) anchor() error {
	if err := p.event(); err != nil {
		return err
	}
	if p.rule.Event == tick {
		if err := p.period(); err != nil {
			return err
		}
	} else if err := p.glob(); err != nil {
		return err
	}
	if err := p.selector(); err != nil {
		return err
	}
	return p.chance()
}

// event reads the protocol's prefix and the event's name.
func (p *parser) event() error {
	at := p.pos
	name := p.take(word)
	if p.accept(":") {
		p.rule.Proto = lock.Protocol(name)
		if p.rule.Proto != lock.Redis && p.rule.Proto != lock.Postgres {
			return p.fail(at, "unknown protocol %s, expected redis: or pg:", quoted(name))
		}
		at = p.pos
		name = p.take(word)
	}
	if name == "" {
		return p.fail(at, "expected an event such as acquire, write or SETNX, %s", p.found())
	}
	p.rule.Event = name
	return p.meaning(at)
}

// meaning settles which protocol's event the name is.
func (p *parser) meaning(at int) error {
	name, proto := p.rule.Event, p.rule.Proto
	switch {
	case name == tick && proto != "":
		return p.fail(at, "tick is the clock's, expected no protocol before it")
	case name == tick:
		return nil
	case !isClass(name) && !isVerb("", name):
		return p.fail(at, "unknown event %s, the nearest known one is %s", quoted(name), nearest.Word(name, known()))
	case proto == "":
		p.rule.Proto = defaultProto(name)
		if p.rule.Proto == "" && !isClass(name) {
			return p.fail(at, "%s is both a Redis command and an SQL statement, expected redis:%[1]s or pg:%[1]s", name)
		}
	case isClass(name) && defaultProto(name) != "" && proto != defaultProto(name),
		!isClass(name) && !isVerb(proto, name):
		return p.fail(at, "%s has no event %s, which is one of %s only", proto, name, other(proto))
	}
	return nil
}

func other(p lock.Protocol) lock.Protocol {
	if p == lock.Redis {
		return lock.Postgres
	}
	return lock.Redis
}

// period reads what makes a tick.
func (p *parser) period() (err error) {
	if !p.accept("(") {
		return p.fail(p.pos, "expected a period in parentheses, such as tick(1.5s), %s", p.found())
	}
	at := p.pos
	p.rule.Period, err = p.duration("a period such as 1.5s")
	if err != nil {
		return err
	}
	if p.rule.Period < time.Millisecond {
		return p.fail(at, "a period of %s is too short, expected at least 1ms", p.rule.Period)
	}
	if !p.accept(")") {
		return p.fail(p.pos, `expected ")" after the period, %s`, p.found())
	}
	return nil
}

// glob reads balanced text in parentheses.
func (p *parser) glob() error {
	open := p.pos
	if !p.accept("(") {
		return nil
	}
	if !takesName(p.rule.Proto, p.rule.Event) {
		return p.fail(open, "%s names neither a key nor a table, expected no parentheses", p.rule.Event)
	}
	for depth := 1; depth > 0; p.pos++ {
		switch {
		case p.pos >= len(p.text):
			return p.fail(open, `"(" is never closed, expected ")" (a parenthesis in a name is written \( or \))`)
		case p.text[p.pos] == '\\':
			p.pos++
		case p.text[p.pos] == '(':
			depth++
		case p.text[p.pos] == ')':
			depth--
		}
	}
	p.rule.Glob = p.text[open+1 : p.pos-1]
	if p.rule.Glob == "" {
		return p.fail(open+1, "expected the name of a key or table, or no parentheses for every one")
	}
	return nil
}

// selector reads #N, #N-M or #*/N.
func (p *parser) selector() (err error) {
	if !p.accept("#") {
		return nil
	}
	if p.accept("*") {
		if !p.accept("/") {
			return p.fail(p.pos, `expected "/" and a number, as in #*/20, %s`, p.found())
		}
		p.rule.Select.Every, err = p.count("a number after #*/")
		return err
	}
	p.rule.Select.From, err = p.count("a number, a range such as 1-6, or */20 after #")
	p.rule.Select.To = p.rule.Select.From
	if err != nil || !p.accept("-") {
		return err
	}
	at := p.pos
	p.rule.Select.To, err = p.number("the range's end")
	if err == nil && p.rule.Select.To < p.rule.Select.From {
		err = p.fail(at, "the range ends at %d before it begins at %d, expected %[2]d or more", p.rule.Select.To, p.rule.Select.From)
	}
	return err
}

// count reads an integer that counts from 1.
func (p *parser) count(what string) (int, error) {
	at := p.pos
	n, err := p.number(what)
	if err == nil && n == 0 {
		err = p.fail(at, "events are counted from 1, expected 1 or more")
	}
	return n, err
}

// chance reads @P%.
func (p *parser) chance() (err error) {
	at := p.pos
	if !p.accept("@") {
		return nil
	}
	if p.rule.Event == tick {
		return p.fail(at, `tick takes no "@", expected "#", "=" or nothing`)
	}
	at = p.pos
	p.rule.Chance, err = p.decimal("a percentage such as 5%")
	switch {
	case err != nil:
		return err
	case !p.accept("%"):
		return p.fail(p.pos, `expected "%%" after the number, %s`, p.found())
	case p.rule.Chance <= 0 || p.rule.Chance > 100:
		return p.fail(at, "a chance of %s%% is out of range, expected more than 0%% and at most 100%%", decimal(p.rule.Chance))
	}
	return nil
}

package fault

import (
	"slices"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/nearest"
)

// effect reads "=" and how long, or until when.
func (p *parser) effect() (err error) {
	if !p.rule.Do.Lasts() {
		return p.noneTaken()
	}
	if !p.accept("=") {
		return p.noEffect()
	}
	p.effectAt = p.pos
	switch {
	case p.accept("until:"):
		p.gateAt = p.effectAt
		err = p.gate()
	case strings.HasPrefix(p.rest(), "ttl"):
		err = p.lease()
	default:
		p.rule.For.Fixed, err = p.duration("a duration such as 800ms, or ttl with + - or * after it")
	}
	if err == nil && p.pos < len(p.text) && p.text[p.pos] != ',' {
		err = p.fail(p.pos, `expected "," or the end after the effect, %s`, p.found())
	}
	return err
}

// noneTaken refuses an effect where the flag says all.
func (p *parser) noneTaken() error {
	switch {
	case strings.HasPrefix(p.rest(), "="):
		return p.fail(p.pos+1, "the effect is superfluous: a %s takes no time, expected the rule without it", p.flag)
	case p.pos < len(p.text) && p.text[p.pos] != ',':
		return p.fail(p.pos, `expected %s, %s`, p.follow(), p.found())
	}
	return nil
}

func (p *parser) noEffect() error {
	if p.pos < len(p.text) && p.text[p.pos] != ',' {
		return p.fail(p.pos, `expected %s, %s`, p.follow(), p.found())
	}
	return p.fail(p.pos, `the effect is missing, expected "=" and a duration such as =800ms`)
}

// follow names what could stand next in the anchor.
func (p *parser) follow() string {
	next := []string{`"("`, `"#"`, `"@"`}
	switch {
	case p.rule.Chance > 0, p.rule.Select != Selector{} && p.rule.Event == tick:
		next = nil
	case p.rule.Event == tick:
		next = next[1:2]
	case p.rule.Select != Selector{}:
		next = next[2:]
	case p.rule.Glob != "":
		next = next[1:]
	}
	last := `"="`
	if !p.rule.Do.Lasts() {
		last = `","`
	}
	if len(next) == 0 {
		return last
	}
	return strings.Join(next, ", ") + " or " + last
}

// lease reads an expression on the ttl.
func (p *parser) lease() (err error) {
	p.accept("ttl")
	l := &p.rule.For
	l.TTL = true
	at := p.pos
	switch {
	case p.accept("*"):
		l.Times, err = p.decimal("a factor such as 1.5")
		if err == nil && (l.Times <= 0 || l.Times > 1000) {
			err = p.fail(at+1, "a factor of %s is out of range, expected more than 0 and at most 1000", decimal(l.Times))
		}
	case p.accept("+"):
		err = p.term(1)
	case p.accept("-"):
		err = p.term(-1)
	}
	return err
}

// term reads what is added to the ttl, or taken away: a duration or a percentage.
func (p *parser) term(sign int) error {
	at := p.pos
	digits := p.take(func(c byte) bool { return digit(c) || c == '.' })
	percent := digits != "" && strings.HasPrefix(p.rest(), "%")
	p.pos = at
	if !percent {
		d, err := p.duration("a duration such as 300ms, or a percentage such as 20%")
		p.rule.For.Fixed = time.Duration(sign) * d
		return err
	}
	f, err := p.decimal("a percentage such as 20%")
	p.accept("%")
	if err == nil && f > 100_000 {
		err = p.fail(at, "%s%% is out of range, expected at most 100000%%", decimal(f))
	}
	p.rule.For.Percent = f * float64(sign)
	return err
}

// conditions are what a gate can wait for.
func conditions() []string {
	return []string{string(LeaseExpired), string(NextAcquire), string(NextRead), string(NextWrite), string(NextRelease)}
}

// gate reads COND{+COND}.
func (p *parser) gate() error {
	for {
		at := p.pos
		if err := p.condition(); err != nil {
			return err
		}
		c := Condition(p.text[at:p.pos])
		if p.rule.Until.Has(c) {
			return p.fail(at, "%s is given twice, expected it once", c)
		}
		p.rule.Until = p.rule.Until.with(c)
		if !p.accept("+") {
			return nil
		}
	}
}

func (p *parser) condition() error {
	at := p.pos
	switch c := p.take(word); {
	case c == "signal" && p.accept(":"):
		if p.take(word) == "" {
			return p.fail(p.pos, "expected the signal's name, %s", p.found())
		}
	case c == "":
		return p.fail(at, "expected a condition such as next-write, %s", p.found())
	case !slices.Contains(conditions(), c):
		return p.fail(at, "unknown condition %s, the nearest known one is %s", quoted(c),
			nearest.Word(c, append(conditions(), "signal:NAME")))
	}
	return nil
}

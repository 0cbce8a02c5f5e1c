package fault

import (
	"github.com/lockfaultd/lockfaultd/internal/nearest"
	"github.com/lockfaultd/lockfaultd/lock"
)

// keys reads {"," key "=" value}.
func (p *parser) keys() error {
	p.keyAt = map[string]int{}
	for p.accept(",") {
		if err := p.key(); err != nil {
			return err
		}
	}
	if p.pos < len(p.text) {
		return p.fail(p.pos, `expected "," or the end, %s`, p.found())
	}
	return nil
}

func (p *parser) key() error {
	at := p.pos
	name := p.take(word)
	read, ok := map[string]func() error{
		"scope": p.scope, "max": p.max, "cooldown": p.cooldown, "name": p.name,
		"timeout": p.timeout, "mode": p.mode, "per": p.per,
	}[name]
	if _, twice := p.keyAt[name]; twice {
		return p.fail(at, "%s is given twice, expected it once", name)
	}
	switch {
	case name == "":
		return p.fail(at, "expected one of scope, per, max, cooldown, timeout, name, %s", p.found())
	case !ok:
		return p.fail(at, "unknown key %s, the nearest known one is %s", quoted(name),
			nearest.Word(name, []string{"scope", "per", "max", "cooldown", "timeout", "name", "mode"}))
	case !p.accept("="):
		return p.fail(p.pos, `expected "=" after %s, %s`, name, p.found())
	}
	p.keyAt[name] = p.pos
	return read()
}

func (p *parser) scope() error {
	at := p.pos
	p.rule.Scope = Scope(p.take(word))
	switch s := p.rule.Scope; {
	case p.rule.Do != Freeze && p.rule.Do != Stall:
		if s != ScopeConn {
			return p.fail(at, "a %s is of one connection, expected the rule without scope=%s", p.flag, s)
		}
	case s == ScopeConn && p.rule.Do == Freeze:
		return p.fail(at, "only a process can be frozen, not a connection: expected scope=process or scope=cgroup, or --stall-%s", p.rule.At)
	case (s == ScopeTree || s == ScopeCgroup) && p.rule.Do == Stall:
		return p.fail(at, "not yet: scope=%s is not built for a %s, expected %s", s, p.rule.Do, p.scopes())
	case s == ScopeConn && p.rule.Event == tick:
		return p.fail(at, "a tick has no connection, expected scope=process")
	case s != ScopeConn && s != ScopeProcess && s != ScopeTree && s != ScopeCgroup:
		return p.fail(at, "unknown scope %s, expected %s", quoted(string(s)), p.scopes())
	}
	return nil
}

func (p *parser) scopes() string {
	switch {
	case p.rule.Do == Freeze:
		return "process, tree or cgroup"
	case p.rule.Event == tick:
		return "process"
	}
	return "conn or process"
}

func (p *parser) max() (err error) {
	at := p.pos
	p.rule.Max, err = p.number("the most injections, a number")
	if err == nil && p.rule.Max < 1 {
		err = p.fail(at, "max=0 would never fire, expected 1 or more")
	}
	return err
}

func (p *parser) cooldown() (err error) {
	p.rule.Cooldown, err = p.duration("a duration such as 10s")
	return err
}

func (p *parser) name() error {
	p.rule.Name = p.take(func(c byte) bool { return word(c) || c == '.' || c == ':' || c == '/' })
	if p.rule.Name == "" || p.pos < len(p.text) && p.text[p.pos] != ',' {
		return p.fail(p.pos, "expected a name of letters, digits and _ - . : /, %s", p.found())
	}
	return nil
}

func (p *parser) timeout() (err error) {
	at := p.pos
	p.rule.Timeout, err = p.duration("a duration such as 5s")
	if err == nil && p.rule.Timeout == 0 {
		err = p.fail(at, "timeout=0s would wait for nothing, expected more")
	}
	return err
}

func (p *parser) per() error {
	at := p.pos
	if what := p.take(word); what != "section" {
		return p.fail(at, "unknown per=%s, expected per=section", what)
	}
	p.rule.PerSection = true
	return nil
}

func (p *parser) mode() error {
	return p.fail(p.pos, "not yet: mode is not built, expected the rule without it")
}

// sense refuses what is well written and could not work.
func (p *parser) sense() error {
	if p.rule.Scope == "" {
		p.rule.Scope = defaultScope(p.rule.Do, p.rule.Event)
	}
	if at, ok := p.keyAt["timeout"]; ok && p.rule.Until == "" {
		return p.fail(at-len("timeout="), "timeout is superfluous: it ends a gate (until:), expected the rule without it")
	}
	if p.rule.Event == tick && p.rule.Do != Freeze && p.rule.Do != Stall {
		return p.fail(0, "a tick holds no message that a %s could be about: expected an event such as acquire or write", p.flag)
	}
	if p.rule.Event == "refused" && p.rule.side() == Before {
		return p.fail(0, "a refusal is known only once the server has answered: expected --%s", p.once())
	}
	for _, part := range []func() error{p.noKey, p.noGate, p.noGrant, p.noSection} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// takes reports whether the event is certainly that somebody asks for a lock, so that before it there is neither a
// lease nor a section.
func (p *parser) takes() bool {
	switch p.rule.Event {
	case "acquire", "SETNX", "MSETNX":
		return true
	}
	return false
}

// noSection refuses a count of sections' events where there is none.
func (p *parser) noSection() error {
	at := p.keyAt["per"] - len("per=")
	switch e := p.rule.Event; {
	case !p.rule.PerSection:
		return nil
	case e == tick, e == "refused", p.rule.side() == Before && p.takes():
		return p.fail(at, "such an event is in no section, expected the rule without per=section")
	case p.rule.Chance > 0:
		return p.fail(at, "what is drawn is drawn for each name, expected the rule without per=section")
	case p.rule.Select == Selector{}:
		return p.fail(at, "per=section is superfluous: it says what # counts, expected a selector such as #2")
	}
	return nil
}

// noKey refuses what is done to a lock that is of the other protocol, or given back.
func (p *parser) noKey() error {
	lockish := isClass(p.rule.Event) && defaultProto(p.rule.Event) == ""
	switch {
	case p.rule.Do != Lose && p.rule.Do != Kill:
		return nil
	case p.rule.Event == "release":
		return p.fail(0, "a release has given the lock back, so there is none to lose: expected an event before it such as acquire or write")
	case p.rule.Do == Lose && lockish && p.rule.Proto == lock.Postgres:
		return p.fail(0, "a lock of Postgres is no key: expected an event of Redis, or --kill-backend")
	case p.rule.Do == Kill && p.rule.Proto == lock.Redis:
		return p.fail(0, "a lock of Redis is no connection's: expected an event of Postgres, or --lose-key")
	case p.rule.Do == Kill && p.rule.Event == "refused":
		return p.fail(0, "one who was refused has no lock that could be lost: expected acquire")
	}
	return nil
}

// once names the flag that does the like once the server has answered.
func (p *parser) once() string {
	if p.rule.Do == Reset {
		return flagOf(Drop, After)
	}
	return flagOf(p.rule.Do, After)
}

// noGate refuses a gate that could never open.
func (p *parser) noGate() error {
	e := p.rule.Event
	switch {
	case p.rule.Until == "":
		return nil
	case e == tick:
		return p.fail(p.gateAt, "a tick holds no op, so there is no lock that a gate could listen to: expected a duration such as 800ms")
	case !p.rule.Until.Has(LeaseExpired):
		return nil
	case e == "release" && p.rule.side() == After:
		return p.fail(p.gateAt, "after a release there is no lease any more that could expire: expected other conditions, or --%s release", flagOf(p.rule.Do, Before))
	case e == "refused", p.rule.At == Before && p.takes():
		return p.fail(p.gateAt, "there is no lease yet that could expire: expected other conditions, or --%s acquire", p.once())
	}
	return nil
}

// noGrant refuses ttl where no grant can be known.
func (p *parser) noGrant() error {
	if !p.rule.For.TTL {
		return nil
	}
	const then = "expected a duration such as 800ms"
	switch e := p.rule.Event; {
	case e == tick:
		return p.fail(p.effectAt, "a tick belongs to no lease, so ttl is unknown: %s", then)
	case e == "refused":
		return p.fail(p.effectAt, "a refused acquire has no lease, so ttl is unknown: %s", then)
	case p.rule.At == Before && p.takes():
		return p.fail(p.effectAt, "before an acquire there is no grant, so ttl is unknown: %s, or --%s", then, p.once())
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/admin"
	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// alters reports whether rules may come and go while this daemon runs: by its admin API, or its file.
func (s *setup) alters() bool { return s.admin != "" || s.reloads }

// plan arms the rules. Those of the file may be replaced by it.
func (s *setup) plan() (*fault.Plan, error) {
	typed := len(s.rules) - s.filed
	p, err := fault.NewPlan(s.rules[:typed], s.seed, s.limits)
	if err != nil {
		return nil, err
	}
	p.Baseline(s.baseline)
	_, err = p.Reload(s.rules[typed:], 0)
	return p, placed(s.config, err)
}

// placed puts what is wrong with a rule of the file at its place there.
func placed(c *config.Config, err error) error {
	var unfit *fault.Unfit
	if errors.As(err, &unfit) {
		return c.Misfit(unfit.At, err)
	}
	return err
}

// mostRules bounds the rules that there may be at once, as each is asked about each event of its kind.
const mostRules = 1000

// An apiError is an error as the API tells it: of one of the kinds that it knows.
type apiError struct {
	error
	kind error
}

func (a apiError) Is(target error) bool { return target == a.kind }
func (a apiError) Unwrap() error        { return a.error }

// refusing tells the API what kind of an error one is.
func refusing(err error) error {
	switch {
	case errors.Is(err, fault.ErrUnknown), errors.Is(err, proxy.ErrNoActor):
		return apiError{err, admin.ErrUnknown}
	case errors.Is(err, fault.ErrTaken), errors.Is(err, proxy.ErrFixed), errors.Is(err, proxy.ErrScheduled), errors.Is(err, proxy.ErrOver), errors.Is(err, errKept):
		return apiError{err, admin.ErrConflict}
	}
	return err
}

// errKept says that a rule cannot be taken away.
var errKept = errors.New("the report of the run tells of all its rules: expected it to be disarmed rather than removed")

// ruling are the daemon's rules as the API has them.
type ruling struct{ d *daemon }

func (r ruling) List() (out []admin.Rule) {
	r.d.engine.Plan(r.d.clock(), func(p *fault.Plan) {
		for _, u := range p.Uses() {
			out = append(out, r.d.told(u))
		}
	})
	return out
}

// told is a rule as the API tells of it.
func (d *daemon) told(u fault.Use) admin.Rule {
	r := admin.Rule{
		Name: u.Called, Text: u.Text, Origin: [...]string{"flag", "file", "api"}[u.Origin], Armed: u.Armed, Until: d.wall(u.Until), Left: u.Left,
		Seen: u.Seen, Could: u.Could, Fired: u.Fired, Barred: map[string]int{},
	}
	for _, b := range u.Barred {
		r.Barred[b.What] = b.N
	}
	return r
}

// wall is when an instant was; the zero time for none.
func (d *daemon) wall(at lock.Instant) time.Time {
	if at == 0 || at == lock.Never {
		return time.Time{}
	}
	return d.started.Add(time.Duration(at - 1))
}

func (r ruling) Add(n admin.NewRule) (admin.Rule, error) {
	rule, err := r.parse(n)
	if err != nil {
		return admin.Rule{}, err
	}
	return r.change("added", func(p *fault.Plan, now lock.Instant) (string, error) {
		if len(p.Rules()) >= mostRules {
			return "", apiError{fmt.Errorf("there are %d rules already; expected one of them to be removed first", mostRules), admin.ErrConflict}
		}
		return p.Add(rule, fault.Arming(n.Bounds), n.Off, now)
	})
}

// parse compiles a rule, and gives it the name that stands beside it.
func (r ruling) parse(n admin.NewRule) (fault.Rule, error) {
	rule, err := r.compile(n)
	switch {
	case err != nil || n.Name == "" || rule.Name == n.Name:
		return rule, err
	case rule.Name != "":
		return rule, fmt.Errorf("name: the rule itself says name=%s; expected one of them", rule.Name)
	}
	_, text, _ := strings.Cut(rule.Text, " ")
	return fault.Parse(rule.Flag(), text+",name="+n.Name)
}

func (r ruling) compile(n admin.NewRule) (fault.Rule, error) {
	if n.Fields != nil {
		return r.d.setup.config.ParseRule(n.Fields)
	}
	text := strings.TrimSpace(n.Text)
	at := strings.IndexAny(text, " =")
	if at < 0 {
		return fault.Rule{}, fmt.Errorf("rule: expected a flag and its value, such as \"--freeze-before write#1=2s\", found %q", n.Text)
	}
	return fault.Parse(strings.TrimLeft(text[:at], "-"), unquoted(strings.TrimSpace(text[at+1:])))
}

// unquoted takes off the quotes that a shell would.
func unquoted(s string) string {
	if len(s) > 1 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

func (r ruling) Remove(name string) (out admin.Rule, err error) {
	if r.d.setup.wrapping {
		return out, refusing(errKept)
	}
	err = r.d.engine.Alter(func(p *fault.Plan) error {
		for _, u := range p.Uses() {
			if u.Called == name {
				out = r.d.told(u)
			}
		}
		return p.Remove(name)
	})
	if err != nil {
		return out, refusing(err)
	}
	r.d.log.Info("rule removed", "rule", out.Text, "name", name)
	return out, nil
}

func (r ruling) Arm(name string, b admin.Bounds) (admin.Rule, error) {
	return r.change("armed", func(p *fault.Plan, now lock.Instant) (string, error) {
		return name, p.Arm(name, fault.Arming(b), now)
	})
}

func (r ruling) Disarm(name string) (admin.Rule, error) {
	return r.change("disarmed", func(p *fault.Plan, _ lock.Instant) (string, error) {
		return name, p.Disarm(name)
	})
}

// change changes one rule, and returns it as it is then.
func (r ruling) change(what string, do func(p *fault.Plan, now lock.Instant) (string, error)) (out admin.Rule, err error) {
	now := r.d.clock()
	err = r.d.engine.Alter(func(p *fault.Plan) error {
		name, err := do(p, now)
		for _, u := range p.Uses() {
			if u.Called == name {
				out = r.d.told(u)
			}
		}
		return err
	})
	if err != nil {
		return out, refusing(err)
	}
	r.d.log.Info("rule "+what, "rule", out.Text, "name", out.Name)
	return out, nil
}

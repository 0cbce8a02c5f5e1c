package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/internal/nearest"
)

// The errors of the flag library, which name a flag and not what it expects.
var (
	unknownFlag = regexp.MustCompile(`^flag provided but not defined: -+(.*)$`)
	badValue    = regexp.MustCompile(`^invalid value "(.*)" for flag -+(\S+): .*$`)
	noValue     = regexp.MustCompile(`^flag needs an argument: -+(.*)$`)
)

// onUsageError says what a flag expects.
func onUsageError(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	switch {
	case unknownFlag.MatchString(text):
		name := unknownFlag.FindStringSubmatch(text)[1]
		if near := nearest.Near(name, flagNames(c)); near != "" {
			return usagef("unknown flag --%s; the nearest is --%s", name, near)
		}
		return usagef("unknown flag --%s; see --help", name)
	case badValue.MatchString(text):
		m := badValue.FindStringSubmatch(text)
		return usagef("--%s %s: expected %s", m[2], m[1], wanted(c, m[2]))
	case noValue.MatchString(text):
		name := noValue.FindStringSubmatch(text)[1]
		return usagef("--%s: expected %s", name, wanted(c, name))
	}
	return usageError{err}
}

// flagsOf lists the flags of the command, or of the app where there is none.
func flagsOf(c *cli.Context) []cli.Flag {
	if c.Command != nil && len(c.Command.Flags) > 0 {
		return c.Command.Flags
	}
	return c.App.Flags
}

// flagNames lists those that are built.
func flagNames(c *cli.Context) []string {
	var out []string
	for _, f := range flagsOf(c) {
		if v, ok := f.(cli.VisibleFlag); ok && v.IsVisible() {
			out = append(out, f.Names()[0])
		}
	}
	return out
}

// wanted says in words what kind of value a flag takes.
func wanted(c *cli.Context, name string) string {
	for _, f := range flagsOf(c) {
		if f.Names()[0] != name {
			continue
		}
		switch f.(type) {
		case *cli.DurationFlag:
			return "a duration with its unit, such as 30s or 800ms"
		case *cli.IntFlag, *cli.Uint64Flag:
			return "a whole number that is not negative"
		case *cli.BoolFlag:
			return "nothing, true or false"
		}
	}
	return "a value"
}

// flagsGiven lists the words of the command line from the command's name to
// its own arguments, as they were typed.
func flagsGiven(c *cli.Context) []string {
	parent := c.Lineage()[1].Args().Slice()
	given := parent[min(1, len(parent)):]
	given = given[:len(given)-c.NArg()]
	if n := len(given); n > 0 && given[n-1] == "--" {
		given = given[:n-1]
	}
	return given
}

// check refuses values that no flag type refuses.
func (o *options) check() error {
	switch {
	case o.maxFrozen < 1:
		return fmt.Errorf("--max-frozen %d: expected 1 or more", o.maxFrozen)
	case o.maxFreeze < 0:
		return fmt.Errorf("--max-freeze %v: expected a positive duration", o.maxFreeze)
	case o.repeat < 1 && len(o.command) > 0:
		return fmt.Errorf("--repeat %d: expected 1 or more", o.repeat)
	case o.baseline < 0:
		return fmt.Errorf("--baseline %v: expected a positive duration", o.baseline)
	case o.baseline > 0 && o.replay != "":
		return errors.New("--baseline: a replay decides what its schedule says, from the start; expected one of them")
	case o.timeout < 0:
		return fmt.Errorf("--timeout %v: expected a positive duration", o.timeout)
	}
	for _, name := range o.env.Value() {
		if name == "" || strings.ContainsAny(name, "= ") {
			return fmt.Errorf("--env %q: expected the name of a variable", name)
		}
	}
	return nil
}

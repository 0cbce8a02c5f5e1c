// Package flagwords says what a flag of a command line expects, where the flag library says only that it did not come.
package flagwords

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/internal/nearest"
)

// The errors of the flag library, which name a flag and not what it expects.
var (
	unknownFlag = regexp.MustCompile(`^flag provided but not defined: -+(.*)$`)
	badValue    = regexp.MustCompile(`^invalid value "(.*)" for flag -+(\S+): .*$`)
	noValue     = regexp.MustCompile(`^flag needs an argument: -+(.*)$`)
)

// Mistake is an error of the flag library in words that name the flag as it is typed, and what it expects. help is what to
// ask for the flags that there are. An error of another kind stays as it is.
func Mistake(c *cli.Context, err error, help string) error {
	text := err.Error()
	switch {
	case unknownFlag.MatchString(text):
		name := unknownFlag.FindStringSubmatch(text)[1]
		if near := nearest.Near(name, flagNames(c)); near != "" {
			return fmt.Errorf("unknown flag %s; the nearest is --%s", typed(name), near)
		}
		return fmt.Errorf("unknown flag %s; see %s", typed(name), help)
	case badValue.MatchString(text):
		m := badValue.FindStringSubmatch(text)
		return fmt.Errorf("%s %s: expected %s", typed(m[2]), m[1], wanted(c, m[2]))
	case noValue.MatchString(text):
		name := noValue.FindStringSubmatch(text)[1]
		return fmt.Errorf("%s: expected %s", typed(name), wanted(c, name))
	}
	return err
}

// typed is a flag as one types it.
func typed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
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
		if !slices.Contains(f.Names(), name) {
			continue
		}
		switch f.(type) {
		case *cli.DurationFlag:
			return "a duration with its unit, such as 30s or 800ms"
		case *cli.IntFlag, *cli.Int64Flag, *cli.Uint64Flag:
			return "a whole number that is not negative"
		case *cli.BoolFlag:
			return "nothing, true or false"
		}
	}
	return "a value"
}

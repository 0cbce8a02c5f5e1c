package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/internal/flagwords"
)

// onUsageError says what a flag expects.
func onUsageError(c *cli.Context, err error, _ bool) error {
	return usageError{flagwords.Mistake(c, err, "--help")}
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

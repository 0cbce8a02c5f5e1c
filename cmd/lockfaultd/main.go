// Command lockfaultd stands between services and their Redis and Postgres and,
// at the moment that a rule names, stalls a connection or freezes the process
// that owns it.
//
// main.go has the commands but explain, flags.go what they share, daemon.go the wiring of
// engine, sessions and freezer, folder.go what --out names; serve.go and run.go
// are the two ways to use it, verdict.go is how a run ends. Exit statuses are
// those of docs/exit-statuses.md; usage errors go to stderr with status 2.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/freezer"
)

// version is set by the linker.
var version = "dev"

func main() {
	floor := make([]byte, heapFloor)
	code := Main(os.Args, os.Stdout, os.Stderr)
	runtime.KeepAlive(floor)
	os.Exit(code)
}

// heapFloor is what the collector counts as in use from the start, in bytes. A
// daemon that holds next to nothing would otherwise collect for every 4 MiB of
// ops, and each collection wakes threads that the wire has to wait for. Its
// pages are never touched, so that it takes no memory of the machine.
const heapFloor = 32 << 20

// A status is an exit status that has already been explained.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// A usageError is the user's to mend: status 2.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Main runs the command line and returns its exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	err := newApp(stdout, stderr).Run(args)
	var s status
	var u usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &s):
		return int(s)
	case errors.As(err, &u):
		fmt.Fprintf(stderr, "lockfaultd: %v\n", err)
		return 2
	default:
		fmt.Fprintf(stderr, "lockfaultd: %v\n", err)
		return 1
	}
}

func newApp(stdout, stderr io.Writer) *cli.App {
	serve := newOptions()
	app := &cli.App{
		Name:                      "lockfaultd",
		Usage:                     "pause lock holders at the worst moment, and see whether the data survives",
		UsageText:                 serveExample,
		Version:                   version,
		HideHelpCommand:           true,
		Writer:                    stdout,
		ErrWriter:                 stderr,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
		DisableSliceFlagSeparator: true,
		Flags:                     append(serve.serveFlags(), cli.HelpFlag), // which the library adds only where help is no command of ours
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unknown command %q; expected run, sweep, watch, rules, doctor, explain, thaw, version or help, or flags alone to serve (see lockfaultd --help)", c.Args().First())
			}
			return serveCommand(c.Context, serve, stderr)
		},
		Commands: []*cli.Command{runCommandOf(stdout, stderr), sweepCommandOf(stdout, stderr), watchCommandOf(stdout, stderr), rulesCommandOf(stdout), doctorCommandOf(stdout), explainCommandOf(stdout), thawCommandOf(stderr), versionCommandOf(stdout), helpCommandOf(), guardCommandOf()},
	}
	return app
}

// nothingBefore refuses flags that were typed before a command's name: they
// would be those of another command.
func nothingBefore(c *cli.Context, command string) error {
	if before := c.Lineage()[1].LocalFlagNames(); len(before) > 0 {
		return usagef("--%s stands before %s; flags of a command come behind its name: lockfaultd %s --%s ...", before[0], command, command, before[0])
	}
	return nil
}

func noArguments(c *cli.Context, command string) error {
	if c.Args().Present() {
		return usagef("%s: unexpected argument %q; it takes none", command, c.Args().First())
	}
	return nothingBefore(c, command)
}

func runCommandOf(stdout, stderr io.Writer) *cli.Command {
	o := newOptions()
	return &cli.Command{
		Name:         "run",
		Usage:        "run a command behind the proxies, judge what happened, exit by the verdict",
		UsageText:    runExample,
		Description:  rulesHelp,
		Flags:        o.runFlags(),
		OnUsageError: onUsageError,
		Action: func(c *cli.Context) error {
			if err := nothingBefore(c, "run"); err != nil {
				return err
			}
			o.command, o.given = c.Args().Slice(), flagsGiven(c)
			return runCommand(c.Context, o, stdout, stderr)
		},
	}
}

func thawCommandOf(stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name:         "thaw",
		Usage:        "let go what a lockfaultd that died has left frozen",
		UsageText:    "lockfaultd thaw\n\nExample:\n  lockfaultd thaw          # as ExecStopPost= of a unit, or by hand",
		OnUsageError: onUsageError,
		Action: func(c *cli.Context) error {
			if err := noArguments(c, "thaw"); err != nil {
				return err
			}
			n, err := freezer.Replay(journalDir(), logTo(stderr, false))
			fmt.Fprintf(stderr, "lockfaultd: %s\n", thawed(n, journalDir()))
			return err
		},
	}
}

func thawed(n int, journal string) string {
	if n == 0 {
		return "nothing to let go: no freeze of a dead lockfaultd is in force, by the journal " + journal
	}
	return fmt.Sprintf("let go %d that a dead lockfaultd had left frozen, by the journal %s", n, journal)
}

func versionCommandOf(stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name:         "version",
		Usage:        "print the version",
		UsageText:    "lockfaultd version\n\nExample:\n  lockfaultd version",
		OnUsageError: onUsageError,
		Action: func(c *cli.Context) error {
			if err := noArguments(c, "version"); err != nil {
				return err
			}
			fmt.Fprintf(stdout, "lockfaultd %s\n", version)
			return nil
		},
	}
}

func helpCommandOf() *cli.Command {
	return &cli.Command{
		Name:         "help",
		Usage:        "print the help of a command, or this one",
		UsageText:    "lockfaultd help [COMMAND]\n\nExample:\n  lockfaultd help run",
		OnUsageError: onUsageError,
		Action: func(c *cli.Context) error {
			if err := nothingBefore(c, "help"); err != nil {
				return err
			}
			return help(c.Lineage()[1], c.Args().Slice())
		},
	}
}

func help(app *cli.Context, names []string) error {
	switch {
	case len(names) == 0:
		return cli.ShowAppHelp(app)
	case len(names) > 1:
		return usagef("help: unexpected argument %q; it takes one command", names[1])
	case app.App.Command(names[0]) == nil:
		return usagef("help: unknown command %q; expected run, sweep, watch, rules, doctor, explain, thaw or version", names[0])
	}
	return cli.ShowCommandHelp(app, names[0])
}

// guardCommandOf is the process that thaws everything when the daemon dies. It
// is started by the daemon and not for people.
func guardCommandOf() *cli.Command {
	return &cli.Command{
		Name:   "guard",
		Hidden: true,
		Action: func(*cli.Context) error { return freezer.RunGuard() },
	}
}

// Command probe says from evidence whether the data survived, and brings a
// workload to try it on.
//
//	probe load     run the built-in service under test
//	probe verify   judge a history, from its ops alone
//	probe report   the same, with what was injected and the outcome
//	probe serve    watch what must hold while services work
//	probe compare  set two reports side by side
//
// Results go to stdout, everything else to stderr. Exit statuses: 0 every check
// held (or the load ran), 1 probe or a worker failed, 2 usage, 10 PROVEN harm,
// 11 inconclusive, 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/internal/flagwords"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr)) }

// run is main with its surroundings as arguments; it returns the exit status.
// After the first signal a second one ends us at once.
func run(args []string, stdin io.Reader, stdout io.Writer, stderr *os.File) int {
	redis.SetLogger(silent{})
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	context.AfterFunc(ctx, restore)
	err := newApp(stdin, stdout, stderr).RunContext(ctx, flagsFirst(args))
	return status(err, stderr)
}

// silent is the log of the Redis client, which tells in a form of its own what its errors tell us too.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// flagsFirst puts what follows the command behind the flags, where the
// library expects it.
func flagsFirst(args []string) []string {
	n := 1
	if len(args) > 1 && args[1] == "compare" {
		n = 2
	}
	if len(args) < 3+n || slices.ContainsFunc(args[2:2+n], func(a string) bool { return strings.HasPrefix(a, "-") }) || args[1] == "worker" {
		return args
	}
	return append(slices.Delete(slices.Clone(args), 2, 2+n), args[2:2+n]...)
}

func newApp(stdin io.Reader, stdout io.Writer, stderr *os.File) *cli.App {
	return &cli.App{
		Name:      "probe",
		Usage:     "say from evidence whether the data survived",
		UsageText: "probe COMMAND [flags]\n\nExample:\n  probe verify out/history.jsonl",
		Reader:    stdin, Writer: stdout, ErrWriter: stderr,
		Commands: []*cli.Command{
			loadCommand(stderr), serveCommand(stderr), verifyCommand(), reportCommand(), compareCommand(), workerCommand(),
		},
		HideHelpCommand:           true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true, // SQL has commas
		Action:                    unknownCommand,
		OnUsageError: func(c *cli.Context, err error, _ bool) error {
			return usageError{flagwords.Mistake(c, err, "probe --help")}
		},
		ExitErrHandler: func(*cli.Context, error) {}, // run exits
	}
}

// unknownCommand is reached when the arguments name none of the commands.
func unknownCommand(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("unknown command %q: expected load, serve, verify, report or compare; see probe --help", c.Args().First())
	}
	return usagef("no command: expected load, serve, verify, report or compare; see probe --help")
}

// command completes a command: usage errors of its flags, and of arguments,
// which none of ours takes.
func command(c *cli.Command) *cli.Command {
	action := c.Action
	c.OnUsageError = func(ctx *cli.Context, err error, _ bool) error {
		return usageError{flagwords.Mistake(ctx, err, "probe "+c.Name+" --help")}
	}
	c.HideHelpCommand = true
	c.Action = func(ctx *cli.Context) error {
		if ctx.Args().Present() && c.ArgsUsage == "" {
			return usagef("unexpected argument %q; see probe %s --help", ctx.Args().First(), c.Name)
		}
		return action(ctx)
	}
	return c
}

// Exit statuses of our own; a judged history has those of its outcome.
const (
	statusFailed      = 1
	statusUsage       = 2
	statusInterrupted = 130
)

// A usageError is the caller's mistake.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// A statusError is an outcome that was already told on stdout.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// status tells the error to stderr and gives its exit status.
func status(err error, stderr io.Writer) int {
	var told statusError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &told):
		return int(told)
	}
	fmt.Fprintf(stderr, "probe: %v\n", err)
	if errors.As(err, new(usageError)) {
		return statusUsage
	}
	return statusFailed
}

package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/probe"
)

// workerName is the hidden command that a worker's process runs.
const workerName = "load-worker"

const loadExample = `probe load [flags]

Examples:
  probe load --workers 3 --lease 500ms --work 20ms --duration 10s
  lockfaultd run --counter 'SELECT value FROM counter WHERE id = 1' \
      --freeze-before 'UPDATE(counter)#*/20=800ms' -- probe load --fence claim

Workers are processes of their own. Each takes the lock (SET NX PX), reads the
counter, works, writes it plus one, and releases the lock if it still has it.
The exit status says whether the load ran, not whether it lost anything.

What is done under the lock (--write):
`

// loadUsage is the example with the forms that can be chosen.
func loadUsage() string {
	var b strings.Builder
	b.WriteString(loadExample)
	list := func(forms []probe.Form) {
		for _, f := range forms {
			fmt.Fprintf(&b, "  %-16s %s\n", f.Name, f.What)
		}
	}
	list(probe.Writes())
	b.WriteString("\nHow it is broken (--broken):\n")
	list(probe.Breaks())
	return strings.TrimRight(b.String(), "\n")
}

func loadCommand(stderr *os.File) *cli.Command {
	l := &probe.Load{}
	return command(&cli.Command{
		Name:      "load",
		Usage:     "run the built-in service: a lease lock around a read-modify-write of one row",
		UsageText: loadUsage(),
		Flags:     loadFlags(l),
		Action:    func(c *cli.Context) error { return load(c, *l, stderr) },
	})
}

func loadFlags(l *probe.Load) []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "workers", Value: 3, Usage: "number of `PROCESSES`", Destination: &l.Workers},
		&cli.DurationFlag{Name: "lease", Value: 500 * time.Millisecond, Usage: "lifetime of the lock: `DURATION`", Destination: &l.Lease},
		&cli.StringFlag{Name: "lock", Value: probe.LockRedis, Usage: "what the lock `IS`: redis or advisory (of Postgres)", Destination: &l.Lock},
		&cli.DurationFlag{Name: "renew", Usage: "a holder renews the lock every `DURATION`; 0s: never", Destination: &l.Renew},
		&cli.StringFlag{Name: "write", Value: probe.WriteSet, Usage: "what is done under the lock, a `FORM` of the list above", Destination: &l.Write},
		&cli.IntFlag{Name: "crash", Usage: "each worker dies at its `N`th grant; 0: none does", Destination: &l.Crash},
		&cli.DurationFlag{Name: "work", Value: 20 * time.Millisecond, Usage: "time between the read and the write: `DURATION`", Destination: &l.Work},
		&cli.DurationFlag{Name: "duration", Value: 10 * time.Second, Usage: "begin sections for `DURATION`", Destination: &l.Duration},
		&cli.StringFlag{Name: "fence", Value: probe.FenceNone, Usage: "`FORM`: none, write (compared when writing) or claim (claimed when reading)", Destination: &l.Fence},
		&cli.StringFlag{Name: "broken", Usage: "break it, a `WAY` of the list above", Destination: &l.Broken},
		&cli.StringFlag{Name: "redis", Value: "redis://127.0.0.1:6379/0", EnvVars: []string{"REDIS_URL"}, Usage: "`URL` of Redis", Destination: &l.Redis},
		&cli.StringFlag{Name: "database", Value: "postgres://postgres@127.0.0.1:5432/postgres", EnvVars: []string{"DATABASE_URL"}, Usage: "`URL` of Postgres", Destination: &l.Database},
		&cli.StringFlag{Name: "key", Value: "lock:counter", Usage: "`KEY` of the lock; fences are issued under fence:TABLE", Destination: &l.Key},
		&cli.StringFlag{Name: "table", Value: "counter", Usage: "`TABLE` of the row", Destination: &l.Table},
		&cli.BoolFlag{Name: "create", Value: true, Usage: "make the table if it is missing and begin at 0", Destination: &l.Create},
		&cli.BoolFlag{Name: "json", Usage: "print one JSON line, with each worker's figures and sections"},
	}
}

func load(c *cli.Context, l probe.Load, stderr *os.File) error {
	if err := l.Validate(); err != nil {
		return usageError{err}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	summary, err := l.Run(c.Context, probe.Program{Path: self, Args: []string{os.Args[0], workerName}}, stderr)
	if len(summary.Workers) > 0 {
		write := summary.WriteText
		if c.Bool("json") {
			write = summary.WriteJSON
		}
		if err := write(c.App.Writer); err != nil {
			return err
		}
	}
	if err == nil && c.Context.Err() != nil {
		return statusError(statusInterrupted)
	}
	return err
}

func workerCommand() *cli.Command {
	return command(&cli.Command{
		Name:   workerName,
		Usage:  "one worker of probe load, which tells it on stdin what to do",
		Hidden: true,
		Action: func(c *cli.Context) error {
			return probe.ServeWorker(c.Context, c.App.Reader, c.App.Writer, c.App.ErrWriter)
		},
	})
}

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/freezer"
	"github.com/lockfaultd/lockfaultd/internal/config"
)

const doctorExample = `lockfaultd doctor [--redis ..., --postgres ..., --config FILE]

Says what lockfaultd can do on this machine and what not, and why. Nothing is
frozen. Exit status 1 if something is missing.

Example:
  lockfaultd doctor
  lockfaultd doctor --postgres 127.0.0.1:15432=db:5432`

func doctorCommandOf(stdout io.Writer) *cli.Command {
	o := newOptions()
	return &cli.Command{
		Name:         "doctor",
		Usage:        "say what can be frozen here and what not, and who goes past the proxies",
		UsageText:    doctorExample,
		Flags:        o.doctorFlags(),
		OnUsageError: onUsageError,
		Action: func(c *cli.Context) error {
			if err := noArguments(c, "doctor"); err != nil {
				return err
			}
			o.maxFrozen = 1 // there is no flag for it, and no rule
			s, err := o.setup()
			if err != nil {
				return err
			}
			if len(s.proxies) == 0 {
				s.proxies = s.defaultProxies()
			}
			return examine(c.Context, s.proxies, stdout)
		},
	}
}

// doctorFlags are those that name proxies.
func (o *options) doctorFlags() []cli.Flag {
	var out []cli.Flag
	for _, f := range o.commonFlags() {
		switch f.Names()[0] {
		case "config", "redis", "postgres":
			out = append(out, f)
		}
	}
	return out
}

// examine prints what was found, and fails if anything is missing.
func examine(ctx context.Context, proxies []config.Proxy, stdout io.Writer) error {
	found := freezer.Examine(journalDir(), []string{self(), "guard"})
	for _, p := range proxies {
		found = append(found, upstream(ctx, p), bypassed(p))
	}
	missing := 0
	for _, f := range found {
		mark := "ok"
		if !f.OK {
			mark, missing = "--", missing+1
		}
		fmt.Fprintf(stdout, "%s  %-24s %s\n", mark, f.What, f.Says)
	}
	if missing > 0 {
		return status(1)
	}
	return nil
}

// upstream tries whether a server can be reached, without a word to it.
func upstream(ctx context.Context, p config.Proxy) freezer.Finding {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	what := string(p.Protocol) + " " + p.Upstream
	c, err := dial(ctx, p.Upstream)
	if err != nil {
		return freezer.Finding{What: what, Says: "it cannot be reached: " + err.Error()}
	}
	c.Close()
	return freezer.Finding{What: what, OK: true, Says: "it can be reached" + secured(p.TLS.Upstream)}
}

// bypassed finds clients on this machine that speak to a server by themselves: nothing is known of what they do.
func bypassed(p config.Proxy) freezer.Finding {
	f := freezer.Finding{What: "past the proxy", OK: true, Says: "no connection of this machine goes to " + p.Upstream + " by itself"}
	var who, meant []string
	for _, addr := range resolve(p.Upstream) {
		ps, err := freezer.Bypassing(addr, "lockfaultd")
		if err != nil {
			return freezer.Finding{What: f.What, Says: err.Error()}
		}
		for _, p := range ps {
			if judges(p.PID) {
				meant = append(meant, p.String())
			} else {
				who = append(who, p.String())
			}
		}
	}
	if len(meant) > 0 {
		f.Says += ", but for probe serve, as it should: " + strings.Join(meant, ", ")
	}
	if len(who) > 0 {
		f.OK, f.Says = false, "connected to "+p.Upstream+" by themselves: "+strings.Join(who, ", ")
	}
	return f
}

// judges reports whether a process is probe serve, which looks at servers by itself.
func judges(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(string(b), "\x00")
	return err == nil && len(args) > 1 && filepath.Base(args[0]) == "probe" && args[1] == "serve"
}

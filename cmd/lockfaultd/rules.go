package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/admin"
	"github.com/lockfaultd/lockfaultd/fault"
)

const rulesExample = `lockfaultd rules [--admin URL]                       list the rules of a daemon that runs
lockfaultd rules add [FLAG...] --RULE VALUE          add one and arm it
lockfaultd rules arm [--for D] [--times N] NAME...
lockfaultd rules disarm NAME...
lockfaultd rules rm NAME...
lockfaultd rules stop                                disarm all, and let go all that is held

The daemon is one that was started with --admin. A token is taken from
LOCKFAULTD_ADMIN_TOKEN.

Examples:
  lockfaultd rules
  lockfaultd rules add --name pause --for 10m --freeze-before 'write(counter)#*/20=2s'
  lockfaultd rules add --times 3 --stall-after acquire=800ms
  lockfaultd rules arm --times 1 pause
  lockfaultd rules stop

Exit status 1 if nobody answers or the daemon does not do it, 2 if the command
line is wrong or the token is refused.`

// A ruler changes the rules of a daemon that runs.
type ruler struct {
	address string // as it stands behind rules, or is by default
	nearer  string // as it stands behind add or the like
	stdout  io.Writer
	typed   []typedRule
	name    string
	length  time.Duration
	times   int
	off     bool
}

func rulesCommandOf(stdout io.Writer) *cli.Command {
	r := &ruler{stdout: stdout}
	address := &cli.StringFlag{Name: "admin", Usage: "`URL` of the daemon's admin API", DefaultText: "$" + adminURL + ", else " + defaultAdmin, Destination: &r.nearer}
	bounds := []cli.Flag{
		address,
		&cli.DurationFlag{Name: "for", Usage: "disarm it after `DURATION`", DefaultText: "no bound", Destination: &r.length, Action: someTime("for")},
		&cli.IntFlag{Name: "times", Usage: "disarm it after `N` injections", DefaultText: "no bound", Destination: &r.times, Action: someTimes("times")},
	}
	adds := append(flagsOfRules(&r.typed), bounds...)
	adds = append(adds,
		&cli.StringFlag{Name: "name", Usage: "its `NAME`; without one it is the rule's own, or rule-N", Destination: &r.name, Action: notEmpty("name")},
		&cli.BoolFlag{Name: "off", Usage: "do not arm it yet", Destination: &r.off})
	return &cli.Command{
		Name: "rules", Usage: "list, add, arm, disarm and remove the rules of a daemon that runs", UsageText: rulesExample,
		Flags: []cli.Flag{adminFlag(&r.address)}, OnUsageError: onUsageError, HideHelpCommand: true,
		Action: r.action("rules", r.list, none),
		Subcommands: []*cli.Command{
			r.command("list", "list the rules, in the order in which they are asked", "", []cli.Flag{address}, r.list, none),
			r.command("add", "add a rule behind all others, and arm it", "[FLAG...] --RULE VALUE\n\nExample:\n  lockfaultd rules add --name pause --for 10m --freeze-before 'write(counter)#*/20=2s'", adds, r.add, none),
			r.command("arm", "arm rules, for a time or a number of times", "[--for D] [--times N] NAME...\n\nExample:\n  lockfaultd rules arm --times 1 pause", bounds, r.arm, some),
			r.command("disarm", "have rules neither act nor count; what they have begun goes on", "NAME...\n\nExample:\n  lockfaultd rules disarm pause", []cli.Flag{address}, r.disarm, some),
			r.command("rm", "remove rules; what they have begun goes on", "NAME...\n\nExample:\n  lockfaultd rules rm pause", []cli.Flag{address}, r.remove, some),
			r.command("stop", "disarm all rules, thaw what is frozen and let go what is held", "\n\nExample:\n  lockfaultd rules stop", []cli.Flag{address}, r.stop, none),
		},
	}
}

func (r *ruler) command(name, usage, text string, flags []cli.Flag, do asking, takes bool) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, UsageText: strings.TrimRight("lockfaultd rules "+name+" "+text, " "), Flags: flags,
		OnUsageError: onUsageError, Action: r.action("rules "+name, do, takes),
	}
}

// asking asks the daemon for what the arguments name.
type asking func(ctx context.Context, c *client, names []string) error

// Whether a command takes names.

const (
	none = false
	some = true
)

func (r *ruler) action(command string, do asking, takes bool) cli.ActionFunc {
	return func(c *cli.Context) error {
		names := c.Args().Slice()
		if before := c.Lineage()[len(strings.Fields(command))].LocalFlagNames(); len(before) > 0 {
			return usagef("--%s stands before rules; flags of a command come behind its name: lockfaultd rules --%s ...", before[0], before[0])
		}
		switch {
		case !takes && len(names) > 0 && command == "rules":
			return usagef("rules: unknown command %q; expected list, add, arm, disarm, rm or stop", names[0])
		case !takes && len(names) > 0:
			return usagef("%s: unexpected argument %q; it takes none", command, names[0])
		case takes && len(names) == 0:
			return usagef("%s: no rule; expected the name of one, as lockfaultd rules lists them", command)
		}
		for _, n := range names {
			if strings.HasPrefix(n, "-") {
				return usagef("%s: %s stands behind a name; expected flags before the names", command, n)
			}
		}
		ask, err := newClient(or(r.nearer, r.address))
		if err != nil {
			return err
		}
		return said(command, do(c.Context, ask, names))
	}
}

// said puts the command before what went wrong.
func said(command string, err error) error {
	var usage usageError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &usage):
		return fmt.Errorf("%s: %w", command, err)
	}
	return fmt.Errorf("%s: cannot %w", command, err)
}

func (r *ruler) list(ctx context.Context, c *client, _ []string) error {
	var answer struct{ Rules []admin.Rule }
	if err := c.get(ctx, "/v1/rules", &answer); err != nil {
		return err
	}
	if len(answer.Rules) == 0 {
		fmt.Fprintln(r.stdout, "no rule")
		return nil
	}
	w := tabwriter.NewWriter(r.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tSEEN\tFIRED\tBARRED\tRULE")
	for _, rule := range answer.Rules {
		barred := 0
		for _, n := range rule.Barred {
			barred += n
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\n", printable(rule.Name), stateOf(rule), rule.Seen, rule.Fired, barred, printable(rule.Text))
	}
	return w.Flush()
}

// stateOf words whether a rule acts, and how far.
func stateOf(r admin.Rule) string {
	if !r.Armed {
		return "off"
	}
	s := "armed"
	if !r.Until.IsZero() {
		layout := time.TimeOnly
		if time.Until(r.Until) > 12*time.Hour {
			layout = time.DateTime
		}
		s += " until " + r.Until.Local().Format(layout)
	}
	if r.Left > 0 {
		s += fmt.Sprintf(", %d left", r.Left)
	}
	return s
}

// printable is a text with what a terminal would obey, or a table would break at, written out.
func printable(s string) string {
	if strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }) {
		return fmt.Sprintf("%q", s)
	}
	return s
}

// bounds is what is said of how far a rule acts.
func (r *ruler) bounds() map[string]any {
	say := map[string]any{}
	if r.length > 0 {
		say["for"] = r.length.String()
	}
	if r.times > 0 {
		say["times"] = r.times
	}
	return say
}

func (r *ruler) add(ctx context.Context, c *client, _ []string) error {
	if len(r.typed) != 1 {
		return usagef("%d rules; expected one, such as --freeze-before 'write(counter)#*/20=2s'", len(r.typed))
	}
	rule, err := fault.Parse(r.typed[0].flag, r.typed[0].text)
	if err != nil {
		return usageError{err}
	}
	say := r.bounds()
	say["rule"] = rule.Text
	if r.name != "" {
		say["name"] = r.name
	}
	if r.off {
		say["armed"] = false
	}
	var added admin.Rule
	if err := c.ask(ctx, http.MethodPost, "/v1/rules", say, &added); err != nil {
		return err
	}
	r.tell(added)
	return nil
}

func (r *ruler) tell(rule admin.Rule) {
	fmt.Fprintf(r.stdout, "%s: %s: %s\n", printable(rule.Name), stateOf(rule), printable(rule.Text))
}

func (r *ruler) arm(ctx context.Context, c *client, names []string) error {
	say := r.bounds()
	return r.each(ctx, c, names, http.MethodPost, "/arm", say, r.tell)
}

func (r *ruler) disarm(ctx context.Context, c *client, names []string) error {
	return r.each(ctx, c, names, http.MethodPost, "/disarm", nil, r.tell)
}

func (r *ruler) remove(ctx context.Context, c *client, names []string) error {
	return r.each(ctx, c, names, http.MethodDelete, "", nil, func(rule admin.Rule) {
		fmt.Fprintf(r.stdout, "%s: removed: %s\n", printable(rule.Name), printable(rule.Text))
	})
}

// each asks for one thing after the other, up to the first that is refused.
func (r *ruler) each(ctx context.Context, c *client, names []string, method, what string, say any, tell func(admin.Rule)) error {
	for _, name := range names {
		var rule admin.Rule
		if err := c.ask(ctx, method, "/v1/rules/"+url.PathEscape(name)+what, say, &rule); err != nil {
			return err
		}
		tell(rule)
	}
	return nil
}

func (r *ruler) stop(ctx context.Context, c *client, _ []string) error {
	var stopped admin.Stopped
	if err := c.ask(ctx, http.MethodPost, "/v1/stop", nil, &stopped); err != nil {
		return err
	}
	fmt.Fprintf(r.stdout, "stopped: rules disarmed: %d, let go: %d\n", stopped.Rules, stopped.Held)
	return nil
}

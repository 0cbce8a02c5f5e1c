package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/admin"
	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/live"
	"github.com/lockfaultd/lockfaultd/probe"
	"github.com/lockfaultd/lockfaultd/probe/check"
	"github.com/lockfaultd/lockfaultd/probe/service"
)

// The variables with the tokens: that of our own API, and that of the daemon which is followed.
const (
	probeToken  = "PROBE_TOKEN"
	daemonToken = "LOCKFAULTD_ADMIN_TOKEN"
)

const serveExample = `probe serve --config FILE [flags]

Examples:
  probe serve --config configs/probe-acked.yaml --state /var/lib/probe
  curl -s http://127.0.0.1:8475/v1/report

Follows a lockfaultd and judges as it goes on, and looks again and again at what
must hold of the data. It goes on until it is told to stop (SIGINT, SIGTERM), and
from where it was when it is started again with the same --state. The token for an
address beyond loopback is in PROBE_TOKEN, that of the daemon's admin API in
LOCKFAULTD_ADMIN_TOKEN. Exit status: 0 when it was told to stop, 1 when it failed, 2
usage or configuration. What it finds is told by its API, its metrics and its log.`

func serveCommand(stderr *os.File) *cli.Command {
	return command(&cli.Command{
		Name:      "serve",
		Usage:     "watch what must hold while services work",
		UsageText: serveExample,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "`FILE` (YAML) of what is followed and what must hold"},
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8475", Usage: "`ADDRESS` of the API, the metrics and the page"},
			&cli.StringFlag{Name: "state", Value: "probe-state", Usage: "`DIR` of what outlasts a restart"},
		},
		Action: func(c *cli.Context) error { return serve(c, stderr) },
	})
}

func serve(c *cli.Context, stderr *os.File) error {
	if c.String("config") == "" {
		return usagef("serve: expected --config FILE; see probe serve --help")
	}
	conf, err := config.LoadProbe(c.String("config"))
	if err != nil {
		return usagef("--config: %w", err)
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	w, err := watchesOf(conf)
	if err != nil {
		return usageError{err}
	}
	defer w.close()
	store, kept, err := service.OpenStore(c.String("state"))
	if errors.Is(err, service.ErrTaken) {
		return usagef("--state %s: %v", c.String("state"), err)
	}
	if err != nil {
		return usagef("--state: %v", err)
	}
	defer store.Close()
	w.conf.Log = log
	s, err := service.New(w.conf, store, kept)
	if err != nil {
		return err
	}
	w.bind(s)
	return serveOn(c, s, stderr)
}

// serveOn runs the service with its API.
func serveOn(c *cli.Context, s *service.Service, stderr *os.File) error {
	token := os.Getenv(probeToken)
	ln, err := admin.Listen(c.String("listen"), token)
	switch {
	case errors.Is(err, admin.ErrOpen):
		return usagef("--listen %s: %v; expected an address of loopback, or a token in %s", c.String("listen"), err, probeToken)
	case err != nil:
		return usagef("--listen: cannot %v", err)
	}
	api := admin.Serve(ln, admin.Handler(admin.Parts{Page: live.Page("probe"), State: s.State, Ready: s.Ready, Metrics: s.Metrics(), Also: s.Routes()}, token))
	fmt.Fprintf(stderr, "probe: serves http://%s\n", ln.Addr())
	return errors.Join(s.Run(c.Context), api.Close())
}

// watched is what a service is made of, and what it asks.
type watched struct {
	conf      service.Config
	databases []*service.Database
	clients   service.Clients
	acked     []*service.Acked
	leases    []*service.Leases
}

// watchesOf makes what a config says. It connects to nobody.
func watchesOf(conf *config.Probe) (*watched, error) {
	w := &watched{conf: service.Config{Declared: conf.Locks, Named: namedBy(conf.Names), Version: version}}
	var clock service.Clock
	switch {
	case conf.Admin != "":
		s := service.Stream{URL: conf.Admin, Token: os.Getenv(daemonToken), TokenFrom: daemonToken, Client: &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: 10 * time.Second}}}
		w.conf.Source, clock = s, s
	case conf.History != "":
		w.conf.Source = service.Folder{Dir: conf.History}
	}
	for _, i := range conf.Invariants {
		if err := w.add(i, clock); err != nil {
			return nil, err
		}
	}
	for _, a := range w.acked {
		w.conf.Listen = append(w.conf.Listen, a.Entry)
	}
	return w, nil
}

// ofDB matches what a verdict says of a lock behind its key, where it is not in the first database.
var ofDB = regexp.MustCompile(` db [0-9]+$`)

// namedBy tells what a config calls a lock that a verdict names.
func namedBy(names config.Names) func(string) string {
	return func(id string) string { return cmp.Or(names.Of(id), names.Of(ofDB.ReplaceAllString(id, ""))) }
}

// bind gives the watches what the service knows of the history.
func (w *watched) bind(s *service.Service) {
	for _, a := range w.acked {
		a.CaughtUp = s.CaughtUp
	}
	for _, l := range w.leases {
		if w.conf.Source != nil {
			l.Granted, l.CaughtUp = s.Granted, s.CaughtUp
		}
	}
}

func (w *watched) close() {
	for _, d := range w.databases {
		d.Close()
	}
	w.clients.Close()
}

func (w *watched) add(i config.Watched, clock service.Clock) error {
	is := service.About{Name: i.Name, Kind: i.Kind, Every: i.Every, Text: i.Query}
	if i.Query != "" {
		is.Of = []string{i.Postgres.Name}
	}
	switch i.Kind {
	case "acked", "monotone":
		return w.number(i, is, clock)
	case "fence":
		return w.fence(i, is)
	case "sum":
		at := w.database(i.Postgres)
		a := &service.Agrees{Is: is, A: service.Side{Query: i.Query, At: at}, B: service.Side{Query: i.Equals, At: at}, Lock: i.Lock}
		if i.EqualsAt != i.Postgres {
			a.B.At = w.database(i.EqualsAt)
			a.Is.Of = append(a.Is.Of, i.EqualsAt.Name)
		}
		a.Is.Text += " equals " + i.Equals
		w.conf.Watches = append(w.conf.Watches, a)
	case "zero":
		w.conf.Watches = append(w.conf.Watches, &service.None{Is: is, Query: i.Query, At: w.database(i.Postgres), Lock: i.Lock})
	case "lock":
		return w.lease(i, is)
	}
	return nil
}

// kinds are what package check calls those that a history's judge knows.
var kinds = map[string]string{"acked": probe.CounterKind, "monotone": probe.MonotoneKind, "fence": probe.FenceKind}

// number is a counter. The judge of the history is told of it too.
func (w *watched) number(i config.Watched, is service.About, clock service.Clock) error {
	inv, err := w.judged(i)
	if err != nil {
		return err
	}
	read := w.database(i.Postgres).Number(i.Query)
	if i.Kind == "monotone" {
		w.conf.Watches = append(w.conf.Watches, &service.Rises{Is: is, Read: read, Lock: i.Lock, Table: inv.Table})
		return nil
	}
	if inv.Table == "" {
		return i.Mistake(false, errors.New("expected SELECT column FROM table WHERE ..., so that it is known whose writes are its steps"))
	}
	a := &service.Acked{Is: is, Invariant: inv, Declared: w.conf.Declared, Read: read, Clock: clock}
	a.Is.Of = append(a.Is.Of, w.conf.Source.Name())
	w.acked = append(w.acked, a)
	w.conf.Watches = append(w.conf.Watches, a)
	return nil
}

func (w *watched) judged(i config.Watched) (check.Invariant, error) {
	inv, err := probe.NewInvariant(kinds[i.Kind], i.Query)
	if err != nil {
		return inv, i.Mistake(false, err)
	}
	inv.Name, inv.Lock = i.Name, i.Lock
	w.conf.Invariants = append(w.conf.Invariants, inv)
	return inv, nil
}

// fence is what is stored, what is given out, or both: two watches.
func (w *watched) fence(i config.Watched, is service.About) error {
	both := i.Query != "" && i.Key != ""
	if i.Query != "" {
		inv, err := w.judged(i)
		if err != nil {
			return err
		}
		stored := is
		if both {
			stored.Name += " stored"
		}
		w.conf.Watches = append(w.conf.Watches, &service.Rises{Is: stored, Read: w.database(i.Postgres).Number(i.Query), Fence: true, Lock: i.Lock, Table: inv.Table})
	}
	if i.Key == "" {
		return nil
	}
	client, err := w.clients.Of(i.Redis.Name, i.Redis.URL)
	if err != nil {
		return fmt.Errorf("redis %s: %w", i.Redis.Name, err)
	}
	issued := is
	issued.Of, issued.Text = []string{i.Redis.Name}, "the key "+i.Key
	if both {
		issued.Name += " issued"
	}
	w.conf.Watches = append(w.conf.Watches, &service.Rises{Is: issued, Read: service.Issued(client, i.Key), Fence: true, Issued: true, Lock: i.Lock})
	return nil
}

func (w *watched) lease(i config.Watched, is service.About) error {
	client, err := w.clients.Of(i.Redis.Name, i.Redis.URL)
	if err != nil {
		return fmt.Errorf("redis %s: %w", i.Redis.Name, err)
	}
	is.Of, is.Text = []string{i.Redis.Name}, "keys like "+i.Pattern
	if !i.Lasting {
		is.Text += " have a lifetime"
	}
	if i.Held > 0 {
		is.Text += fmt.Sprintf(", held for at most %v", i.Held)
	}
	l := &service.Leases{Is: is, Client: client, Pattern: i.Pattern, Except: slices.Clone(i.Except), Lifetime: !i.Lasting, Longest: i.Held, Unique: i.Unique}
	w.leases = append(w.leases, l)
	w.conf.Watches = append(w.conf.Watches, l)
	return nil
}

// database is a connection of an invariant's own.
func (w *watched) database(s config.Server) *service.Database {
	d := &service.Database{From: probe.Database{URL: s.URL}}
	w.databases = append(w.databases, d)
	return d
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/report"
	"github.com/lockfaultd/lockfaultd/report/html"
	"github.com/lockfaultd/lockfaultd/schedule"
)

// lingering is how long sessions may outlive the command before they are ended.
const lingering = 2 * time.Second

// wrapped is one `lockfaultd run`.
type wrapped struct {
	options    *options
	setup      *setup
	daemon     *daemon
	invariants *invariants
	signals    *switchboard
	calm       func() bool // keeps an interrupt from disarming what has ended
	dir        string
	folder     *folder // dir, once it is taken
	keep       bool    // dir was asked for
	stdout     io.Writer
	stderr     io.Writer
	started    time.Time
	failOn     []string
	expect     []string
	required   []report.Requirement
	ended      lock.Instant // when the command had
	accepted   []report.Accepted
	steps      []schedule.Step // that were decided
}

// runCommand wraps a command, judges what it did, and exits by the verdict.
func runCommand(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	w, err := newWrapped(o, stdout, stderr)
	if err != nil {
		return err
	}
	t, err := openTelling(o, stdout, stderr)
	if err != nil {
		return err
	}
	if o.repeat > 1 {
		return runSeries(ctx, w, t)
	}
	r, err := w.run(ctx)
	if r == nil {
		return errors.Join(err, t.close())
	}
	return exitBy(r.Outcome().Exit, errors.Join(t.run(*r), err))
}

// exitBy is the error of a run that ended with a status, unless lockfaultd failed
// to tell it.
func exitBy(exit int, err error) error {
	if err == nil && exit != 0 {
		return status(exit)
	}
	return err
}

// run is one run of the command. There is no report of one that did not come to
// its end.
func (w *wrapped) run(ctx context.Context) (*report.Run, error) {
	env, list, err := w.environment()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.signals = newSwitchboard(cancel)
	defer w.signals.close()
	defer func() { w.folder.close() }() // which open takes
	if err := w.open(ctx, list); err != nil {
		closeAll(list)
		return nil, errors.Join(err, w.discard())
	}
	end, err := w.command(env)
	if err != nil {
		return nil, errors.Join(err, w.daemon.close(), w.discard())
	}
	return w.conclude(ctx, end)
}

func newWrapped(o *options, stdout, stderr io.Writer) (*wrapped, error) {
	if len(o.command) == 0 {
		return nil, usagef("run: no command; expected lockfaultd run [flags] -- COMMAND")
	}
	s, err := o.setup()
	if err != nil {
		return nil, err
	}
	s.wrapping = true
	if s.admin == "" && len(fault.Signals(s.rules)) > 0 {
		s.admin = aCommandsAdmin
	}
	if s.certificateUnused() {
		return nil, usagef("--tls-cert: no listener to use it; expected --redis or --postgres (the proxies for the command's environment are plaintext ones on 127.0.0.1)")
	}
	if s.relayUnused() {
		return nil, usagef("--proxy-protocol: no listener to use it; expected --redis or --postgres (the command comes to the proxies for its environment by itself)")
	}
	w := &wrapped{options: o, setup: s, stdout: stdout, stderr: stderr, started: time.Now()}
	if w.failOn, err = codes("fail-on", o.failOn); err != nil {
		return nil, err
	}
	if w.expect, err = codes("expect", strings.Join(o.expect.Value(), ",")); err != nil {
		return nil, err
	}
	if w.required, err = required(o.require.Value()); err != nil {
		return nil, err
	}
	if w.accepted, err = accepted(o.accept); err != nil {
		return nil, err
	}
	return w, nil
}

func codes(flag, text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	list, err := report.ParseCodes(flag, text)
	if err != nil {
		return nil, usageError{err}
	}
	return list, nil
}

func required(texts []string) (out []report.Requirement, err error) {
	for _, text := range texts {
		q, err := report.ParseRequirement(text)
		if err != nil {
			return nil, usageError{err}
		}
		out = append(out, q)
	}
	return out, nil
}

// accepted reads what --accept names; none without it.
func accepted(path string) ([]report.Accepted, error) {
	if path == "" {
		return nil, nil
	}
	list, err := config.LoadAccepted(path, report.AcceptableCode)
	if err != nil {
		return nil, usagef("--accept: %w", err)
	}
	out := make([]report.Accepted, 0, len(list))
	for _, a := range list {
		out = append(out, report.Accepted(a))
	}
	return out, nil
}

// open makes the folder, the daemon and the invariants' first readings, and
// begins to serve.
func (w *wrapped) open(ctx context.Context, list []endpoint) error {
	var err error
	if w.dir == "" {
		w.dir, w.keep = w.options.out, w.options.out != ""
	}
	if w.dir == "" {
		if w.dir, err = os.MkdirTemp("", "lockfaultd-run-"); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	if w.folder, err = openFolder(w.dir); err != nil {
		return err
	}
	if w.invariants, err = newInvariants(w.setup.invariants, w.setup.typedAs, w.database()); err != nil {
		return err
	}
	if w.daemon, err = newDaemon(w.setup, upstreams(list), w.folder.history(), proxy.Wait, w.invariants.baseline, logTo(w.stderr, w.options.verbose)); err != nil {
		return err
	}
	w.calm = context.AfterFunc(ctx, w.disarm)
	if err := w.invariants.start(ctx); err != nil {
		return errors.Join(err, w.daemon.close())
	}
	for _, n := range w.invariants.notes(ctx) {
		fmt.Fprintf(w.stderr, "lockfaultd: %s\n", n)
	}
	w.invariants.clock = w.daemon.clock
	w.daemon.engine.Keep(schedule.NewBook(w.setup.replay))
	w.daemon.engine.Await(w.invariants.missing()...)
	w.daemon.accept(list)
	w.daemon.look(ctx)
	return nil
}

// database is where invariants are read: --database, or what the command would
// have used.
func (w *wrapped) database() probe.Database {
	if w.options.database != "" {
		return probe.Database{URL: w.options.database}
	}
	return databaseOf(os.Environ(), w.options.env.Value(), w.setup.proxies)
}

// command runs the command with its environment rewritten.
func (w *wrapped) command(env *environment) (ending, error) {
	if len(env.changed) > 0 {
		fmt.Fprintf(w.stderr, "lockfaultd: rewrote %s\n", strings.Join(env.changed, ", "))
	}
	for _, n := range env.notes {
		fmt.Fprintf(w.stderr, "lockfaultd: %s\n", n)
	}
	env.tellAdmin(w.daemon)
	w.daemon.announceAdmin(w.stderr)
	announceRules(w.stderr, w.setup)
	c, err := startChild(w.options.command, env.vars, w.stdout, w.stderr, w.daemon.log)
	if err != nil {
		return ending{}, err
	}
	defer c.close()
	w.signals.connect(c)
	end := c.wait(w.options.timeout, w.daemon.diverged, w.disarm)
	w.signals.connect(nil)
	if c.tty {
		w.signals.note(end.status)
	}
	return end, nil
}

// disarm lets go what is held or frozen and lets no rule act any more, so that
// a command that was asked to end can.
func (w *wrapped) disarm() {
	w.daemon.engine.Disarm(w.daemon.clock())
	// What is asked to end while it is stopped may end before its thaw.
	for enough := time.Now().Add(thawWithin); !w.daemon.engine.Idle() && time.Now().Before(enough); {
		time.Sleep(time.Millisecond)
	}
}

// thawWithin bounds how long the end of a command waits for what is frozen.
const thawWithin = 3 * time.Second

// environment opens the listeners, those of the flags and one for each upstream
// that the command's variables name, and rewrites the variables to them.
func (w *wrapped) environment() (*environment, []endpoint, error) {
	list, err := listenAll(w.setup.proxies)
	if err != nil {
		return nil, nil, err
	}
	env, err := rewriteEnv(os.Environ(), w.options.env.Value(), func(p config.Proxy) (string, error) {
		p.Name, p.Listen = "run", "127.0.0.1:0"
		e, err := listen(p)
		if err != nil {
			return "", err
		}
		list = append(list, e)
		return e.ln.Addr().String(), nil
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("run: nothing to stand before: none of REDIS_URL, DATABASE_URL, REDIS_HOST and PGHOST names a server that can be proxied%s; expected one, or --env NAME, --redis or --postgres", because(env.notes))
	}
	if err != nil {
		closeAll(list)
		return nil, nil, usageError{err}
	}
	return env, list, nil
}

func because(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

// conclude ends the sessions, takes the last readings, judges, and writes the files.
func (w *wrapped) conclude(ctx context.Context, end ending) (*report.Run, error) {
	w.disarm()
	w.ended = w.daemon.clock()
	w.daemon.linger(ctx, lingering)
	w.daemon.endSessions()
	elapsed := time.Since(w.started)
	w.calm()
	w.invariants.end(w.daemon.backendPIDs())
	w.daemon.record.Invariants(invariantsForHeader(w.invariants.readings()))
	w.daemon.tally()
	internal := w.daemon.close()
	w.steps = w.daemon.engine.Steps()
	r, err := w.judge(w.daemon.engine.Uses())
	if err != nil && internal == nil {
		internal = err
	}
	w.fill(&r, end, elapsed, internal)
	err = w.write(&r)
	return &r, err
}

func (w *wrapped) fill(r *report.Run, end ending, elapsed time.Duration, internal error) {
	r.Command, r.CommandRan, r.CommandStatus = w.options.command, true, end.status
	r.TimedOut, r.Interrupted, r.Internal = end.timedOut, w.signals.wasInterrupted(), internal
	r.Unreachable = w.daemon.server.Unreached()
	r.Unread = w.invariants.unread()
	r.FailOn, r.Expect, r.Accepted = w.failOn, w.expect, w.accepted
	r.Require = w.required
	r.Seed, r.Repeat = w.setup.seed, w.repeat()
	r.Watching = len(w.daemon.engine.Uses()) == 0
	r.Elapsed = elapsed
	r.Diverged = w.strayed()
	r.Sessions = w.daemon.server.Sessions()
	if n := w.daemon.server.Desyncs(); n > 0 {
		r.Blind = append(r.Blind, fmt.Sprintf("desync: %d connections could not be followed to their end, and were passed on unread from there", n))
	}
	if n := w.daemon.statements.Unread(); n > 0 {
		r.Blind = append(r.Blind, fmt.Sprintf("statements: %d SQL statements were carried out that could not be read to their end", n))
	}
}

// write keeps the files, in the folder asked for or because they explain a run
// that did not pass.
func (w *wrapped) write(r *report.Run) error {
	if !w.keep && r.Outcome().Exit == 0 {
		return w.discard()
	}
	forms := []struct {
		file string
		form func(io.Writer, report.Run) error
	}{{"report.json", report.JSON}, {"report.html", html.Write}, {"report.md", report.Markdown}, {scheduleFile, w.writeSchedule}}
	r.Files = []string{filepath.Join(w.dir, "history.jsonl")}
	for _, f := range forms {
		r.Files = append(r.Files, filepath.Join(w.dir, f.file))
	}
	var errs error
	for i, f := range forms {
		errs = errors.Join(errs, toFile(r.Files[i+1], func(out io.Writer) error { return f.form(out, *r) }))
	}
	return errs
}

func (w *wrapped) discard() error {
	if w.keep || w.dir == "" {
		return nil
	}
	return os.RemoveAll(w.dir)
}

func toFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// repeat is the command line that does the same again, once a password of
// --database is put back.
func (w *wrapped) repeat() string {
	words := []string{"lockfaultd", "run"}
	seeded := w.options.replay != ""
	for i, a := range w.options.given {
		seeded = seeded || strings.HasPrefix(strings.TrimLeft(a, "-"), "seed")
		if isDatabase(a) || i > 0 && isDatabase(w.options.given[i-1]) {
			a = config.WithoutSecrets(a)
		}
		words = append(words, quote(a))
	}
	if !seeded && len(w.setup.rules) > 0 {
		words = append(words, "--seed", fmt.Sprint(w.setup.seed))
	}
	words = append(words, "--")
	for _, a := range w.options.command {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

func isDatabase(word string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	return name == "database" && word[0] == '-'
}

// quote makes a word that a shell reads as the argument.
func quote(s string) string {
	if s != "" && strings.IndexFunc(s, special) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func special(r rune) bool {
	return !(r == '-' || r == '_' || r == '.' || r == '/' || r == ':' || r == '=' || r == ',' || r == '+' || r == '%' || r == '@' ||
		r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
}

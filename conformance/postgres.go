package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// plaintext keeps libpq from asking for encryption, which lockfaultd would
// answer itself.
var plaintext = []string{"PGSSLMODE=disable", "PGGSSENCMODE=disable"}

func startPostgres(ctx context.Context, _, dir string) (*testbed.Server, error) {
	return testbed.StartPostgres(ctx, dir)
}

// startSame starts the Postgres that the source is of: its tests know every word
// of its answers.
func startSame(ctx context.Context, source, dir string) (*testbed.Server, error) {
	bin, err := programsOf(source)
	if err != nil {
		return nil, err
	}
	return testbed.StartPostgresIn(ctx, filepath.Join(source, serverFiles), bin, dir, "max_prepared_transactions=20")
}

// programsOf returns where in serverFiles the fetched Postgres has its programs.
func programsOf(source string) (string, error) {
	root := filepath.Join(source, serverFiles)
	found, _ := filepath.Glob(filepath.Join(root, "usr/lib/postgresql/*/bin")) // the pattern is well-formed
	if len(found) != 1 {
		return "", fmt.Errorf("find the fetched Postgres: %d, want one", len(found))
	}
	return filepath.Rel(root, found[0])
}

// serverFiles is the folder of the fetched server in that of the built suites.
const serverFiles = "server"

// majorVersion returns that of the newest Postgres of the machine.
func majorVersion() (string, error) {
	best := 0
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is well-formed
	for _, f := range found {
		var n int
		if _, err := fmt.Sscanf(f, "/usr/lib/postgresql/%d/", &n); err == nil {
			best = max(best, n)
		}
	}
	if best == 0 {
		return "", errors.New("find Postgres: none in /usr/lib/postgresql; on Debian: apt-get install postgresql")
	}
	return fmt.Sprint(best), nil
}

// builtPostgres fetches Postgres, server and psql, and the source of the same
// version, and builds what its suites need.
func builtPostgres(ctx context.Context, c *cache) (string, error) {
	major, err := majorVersion()
	if err != nil {
		return "", err
	}
	source, err := c.source(ctx, "postgresql-"+major, "postgresql-"+major)
	if err != nil {
		return "", err
	}
	server, err := c.programs(ctx, source, "postgresql-"+major, "postgresql-client-"+major)
	if err != nil {
		return "", err
	}
	version, err := os.ReadFile(filepath.Join(source, versionFile))
	if err != nil {
		return "", err
	}
	steps := [][]string{
		{"cp", "-rT", source, "."},
		{"./configure", "--quiet", "--without-readline", "--without-zlib", "--without-icu"},
		{"make", "-s", "-C", "src/backend", "generated-headers"},
		{"make", "-s", "-j2", "-C", "src/test/regress"},
		{"make", "-s", "-C", "src/test/isolation"},
		{"make", "-s", "-C", "src/test/modules/libpq_pipeline"},
		{"cp", "-r", server, serverFiles},
	}
	return c.made("postgresql-"+major+".built", fmt.Sprintf("%s %q", version, steps), func(dir string) error {
		for _, step := range steps {
			if err := command(ctx, dir, nil, step[0], step[1:]...); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyOf copies a part of a suite to where everybody may read and write it,
// the server included.
func copyOf(ctx context.Context, j job, part string) error {
	if err := command(ctx, j.dir, nil, "cp", "-rT", filepath.Join(j.source, part), j.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(j.dir, "results"), 0o755); err != nil {
		return err
	}
	return command(ctx, j.dir, nil, "chmod", "-R", "a+rwX", j.dir)
}

func runRegress(ctx context.Context, j job) (results, error) {
	return pgRegress(ctx, j, "src/test/regress", "./pg_regress", "parallel_schedule", "--max-concurrent-tests=20")
}

func runIsolation(ctx context.Context, j job) (results, error) {
	return pgRegress(ctx, j, "src/test/isolation", "./pg_isolation_regress", "isolation_schedule")
}

func pgRegress(ctx context.Context, j job, part, program, schedule string, more ...string) (results, error) {
	if err := copyOf(ctx, j, part); err != nil {
		return nil, err
	}
	bin, err := programsOf(j.source)
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"--inputdir=" + j.dir, "--outputdir=" + j.dir, "--dlpath=" + j.dir, "--bindir=" + filepath.Join(j.source, serverFiles, bin),
		"--host=" + j.host, "--port=" + j.port, "--user=postgres", "--schedule=" + filepath.Join(j.dir, schedule),
	}, more...)
	r := results{}
	return r, j.output(ctx, plaintext, r.readRegress, program, args...)
}

var regressLine = regexp.MustCompile(`^(?:test|    )\s+(\S+)\s+\.\.\. (ok|FAILED|failed)`)

func (r results) readRegress(line string) {
	m := regressLine.FindStringSubmatch(line)
	switch {
	case m == nil:
	case m[2] == "ok":
		r.add(m[1], passed)
	default:
		r.add(m[1], failed)
	}
}

// runPipeline runs libpq_pipeline's tests. The messages that libpq says it
// sent and got are compared with the reference traces.
func runPipeline(ctx context.Context, j job) (results, error) {
	folder := filepath.Join(j.source, "src/test/modules/libpq_pipeline")
	program := filepath.Join(folder, "libpq_pipeline")
	list, err := exec.CommandContext(ctx, program, "tests").Output()
	if err != nil {
		return nil, fmt.Errorf("list tests of libpq_pipeline: %w", err)
	}
	r := results{}
	for name := range strings.FieldsSeq(string(list)) {
		got := filepath.Join(j.dir, name+".trace")
		dsn := fmt.Sprintf("host=%s port=%s user=postgres dbname=postgres", j.host, j.port)
		run := func(ctx context.Context) error { return j.program(ctx, plaintext, program, "-t", got, name, dsn) }
		if name == "uniqviol" {
			run = untilItEnds(run)
		}
		if err := run(ctx); err != nil {
			r.add(name, failed)
			continue
		}
		same, err := sameTrace(got, filepath.Join(folder, "traces", name+".trace"))
		if err != nil {
			return nil, err
		}
		r.add(name, map[bool]outcome{true: passed, false: failed}[same])
	}
	return r, nil
}

// floodLimit is how long one try of uniqviol may take, which mostly takes some seconds.
const floodLimit = 45 * time.Second

// untilItEnds has a test tried again, twice at most, that takes too long: uniqviol sends until its socket
// was full twice, which it may never be where somebody reads as fast as it sends.
func untilItEnds(try func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		for range 3 {
			within, cancel := context.WithTimeout(ctx, floodLimit)
			err = try(within)
			tooLong := within.Err() != nil
			cancel()
			if err == nil || !tooLong || ctx.Err() != nil {
				return err
			}
		}
		return err
	}
}

// sameTrace compares with a reference, of which some tests have none.
func sameTrace(file, reference string) (bool, error) {
	want, err := os.ReadFile(reference)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	got, err := os.ReadFile(file)
	return bytes.Equal(got, want), err
}

func fetchPgx(ctx context.Context, c *cache) (string, error) {
	return c.module(ctx, "github.com/jackc/pgx/v5")
}

// setupPgx makes the database that pgx's tests expect.
func setupPgx(ctx context.Context, j job) error {
	psql := func(database string, args ...string) error {
		args = append([]string{"-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", j.host, "-p", j.port, "-U", "postgres", "-d", database}, args...)
		return command(ctx, j.source, plaintext, "psql", args...)
	}
	if err := psql("postgres", "-c", "create database pgx_test"); err != nil {
		return err
	}
	return psql("pgx_test", "-f", "testsetup/postgresql_setup.sql")
}

func runPgx(ctx context.Context, j job) (results, error) {
	dsn := fmt.Sprintf("host=%s port=%s user=postgres dbname=pgx_test sslmode=disable", j.host, j.port)
	r := results{}
	j.dir = j.source // go test leaves nothing there
	return r, j.output(ctx, []string{"PGX_TEST_DATABASE=" + dsn, "PGX_TEST_TCP_CONN_STRING=" + dsn, "CGO_ENABLED=0", "GOWORK=off"},
		r.readGo, "go", "test", "-json", "-count=1", "-p", "1", "-timeout", "20m", "./...")
}

// changing is what differs from run to run in a test's name: part of the name of a
// temporary folder.
var changing = regexp.MustCompile(`\d{5,}`)

// readGo reads a line of go test -json. A package that does not build, or
// ends early, is a failure of its own.
func (r results) readGo(line string) {
	var e struct{ Action, Package, Test string }
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
		return
	}
	name := strings.TrimPrefix(strings.TrimPrefix(e.Package, "github.com/jackc/pgx/v5"), "/") + "." + changing.ReplaceAllString(e.Test, "N")
	switch {
	case e.Action == "pass" && e.Test != "":
		r.add(name, passed)
	case e.Action == "skip" && e.Test != "":
		r.add(name, skipped)
	case e.Action == "fail":
		r.add(name, failed)
	}
}

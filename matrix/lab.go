package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// A lab is a pair of servers on which one row at a time runs.
type lab struct {
	dir     string // private to it
	redis   *testbed.Server
	pg      *testbed.Server
	client  *redis.Client // past lockfaultd
	conn    *pgx.Conn     // likewise
	tools   tools
	options options
}

// tools is what was built for all labs.
type tools struct {
	lockfaultd string
	bin        string // folder of the services in Go
	source     string // folder of the matrix
}

// run tries all trials and reports whether they came out as written down.
func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "lockfaultd-matrix-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // the user postgres passes
		return err
	}
	t, err := build(ctx, dir, o.cases)
	if err != nil {
		return err
	}
	labs := make([]*lab, min(o.labs, len(o.cases)))
	for i := range labs {
		l, err := openLab(ctx, filepath.Join(dir, fmt.Sprint(i)), t, o)
		if err != nil {
			return err
		}
		defer l.close()
		labs[i] = l
	}
	return share(ctx, labs, o.cases)
}

// share hands the trials out to the labs and prints them in their order.
func share(ctx context.Context, labs []*lab, all []trial) error {
	results := make([]chan outcome, len(all))
	for i := range results {
		results[i] = make(chan outcome, 1)
	}
	next := make(chan int)
	var busy sync.WaitGroup
	for _, l := range labs {
		busy.Go(func() {
			for i := range next {
				results[i] <- l.try(ctx, all[i])
			}
		})
	}
	go func() {
		defer close(next)
		for i := range all {
			next <- i
		}
	}()
	defer busy.Wait()
	header(os.Stdout)
	deviating, sections := 0, 0
	for _, r := range results {
		out := <-r
		out.print(os.Stdout)
		sections += out.a.Wrote + out.b.Wrote
		if len(out.wrong) > 0 {
			deviating++
		}
	}
	fmt.Printf("%d rows, %d sections that wrote, %d rows deviate\n", len(all), sections, deviating)
	if deviating > 0 {
		return fmt.Errorf("%d of %d rows are not as written down", deviating, len(all))
	}
	return ctx.Err()
}

// build makes lockfaultd and, of the services in Go, those that are needed.
func build(ctx context.Context, dir string, all []trial) (tools, error) {
	t := tools{lockfaultd: filepath.Join(dir, "lockfaultd"), bin: filepath.Join(dir, "bin")}
	var err error
	if t.source, err = filepath.Abs("matrix"); err != nil {
		return t, err
	}
	if _, err := os.Stat(filepath.Join(t.source, "clients")); err != nil {
		return t, fmt.Errorf("find the services: %w; run it in the project's folder", err)
	}
	if err := goBuild(ctx, ".", t.lockfaultd, "./cmd/lockfaultd"); err != nil {
		return t, err
	}
	var packages []string
	for _, c := range all {
		if p := "./" + c.golang; c.golang != "" && !slices.Contains(packages, p) {
			packages = append(packages, p)
		}
	}
	if len(packages) == 0 {
		return t, nil
	}
	return t, goBuild(ctx, filepath.Join(t.source, "clients", "go"), t.bin+"/", packages...)
}

func goBuild(ctx context.Context, dir, out string, packages ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", out}, packages...)...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %v: %w", packages, err)
	}
	return nil
}

func openLab(ctx context.Context, dir string, t tools, o options) (*lab, error) {
	l := &lab{dir: dir, tools: t, options: o}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if l.redis, err = testbed.StartRedis(ctx, dir); err != nil {
		return nil, err
	}
	if l.pg, err = testbed.StartPostgres(ctx, dir); err != nil {
		l.close()
		return nil, err
	}
	l.client = redis.NewClient(&redis.Options{Addr: l.redis.Addr()})
	if l.conn, err = pgx.Connect(ctx, l.pg.URL()); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lab) close() {
	if l.conn != nil {
		_ = l.conn.Close(context.Background())
	}
	if l.client != nil {
		_ = l.client.Close()
	}
	if l.pg != nil {
		l.pg.Stop()
	}
	if l.redis != nil {
		l.redis.Stop()
	}
}

// tables are what the services find.
const tables = `DROP SCHEMA public CASCADE; CREATE SCHEMA public;
	CREATE TABLE counter (id int PRIMARY KEY, value bigint NOT NULL);
	INSERT INTO counter SELECT n, 0 FROM generate_series(1, 10000) n;
	CREATE TABLE lease (name text PRIMARY KEY, owner text NOT NULL, expires_at timestamptz NOT NULL);
	CREATE TABLE locks (name text PRIMARY KEY, owner text, locked_until timestamptz);
	INSERT INTO locks (name) VALUES ('counter')`

// clear makes both servers as new, but for the scripts that Redis knows no more.
func (l *lab) clear(ctx context.Context) error {
	if _, err := l.conn.Exec(ctx, tables); err != nil {
		return fmt.Errorf("make tables: %w", err)
	}
	return errors.Join(l.client.FlushAll(ctx).Err(), l.client.ScriptFlush(ctx).Err())
}

// taken reports whether the server has the library's lock.
func (l *lab) taken(ctx context.Context, lib subject) bool {
	if lib.held != "" {
		var yes bool
		err := l.conn.QueryRow(ctx, lib.held).Scan(&yes)
		return err == nil && yes // its table may not be there yet
	}
	keys, err := l.client.Keys(ctx, lib.keys).Result()
	return err == nil && len(keys) > 0
}

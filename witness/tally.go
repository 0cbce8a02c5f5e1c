package witness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

const (
	counting   = 10 * time.Second // for one reading of a server's counts
	leaving    = 2 * time.Second  // for backends to go
	calming    = time.Second      // for others to come to rest before a run
	collecting = 3 * time.Second  // for the counts of a Postgres before 15 to come to rest
	atRest     = 600 * time.Millisecond
	mostTables = 10000
)

// counts are what a server has counted for each table, by its oid.
type counts map[uint32]tally

type tally struct {
	schema, name string
	visible      bool // without its schema
	history.Tally
}

// Baseline reads what the Postgres servers have counted so far. What cannot be
// read is not told of later.
func (h *House) Baseline(ctx context.Context) {
	for _, s := range h.postgres {
		err := s.session(ctx, func(ctx context.Context, c *pgx.Conn) (err error) {
			if err = calm(ctx, c); err == nil {
				s.counts, err = countsOf(ctx, c)
			}
			return err
		})
		if err != nil {
			h.say.without("row counts", s.registrar.postgres.Name, worded(err))
		}
	}
}

// Tally returns what was written since the Baseline to the tables for which
// protected says so, as the servers have counted it once the backends are gone.
func (h *House) Tally(ctx context.Context, protected func(table string) bool, backends []int32) []history.Tally {
	var out []history.Tally
	for _, s := range h.postgres {
		if s.counts == nil {
			continue
		}
		err := s.session(ctx, func(ctx context.Context, c *pgx.Conn) error {
			now, err := settled(ctx, c, backends)
			if err == nil {
				out = append(out, now.since(s.counts, protected, s.name(c))...)
			}
			return err
		})
		if err != nil {
			h.say.without("row counts", s.registrar.postgres.Name, worded(err))
		}
	}
	return out
}

func (s *database) session(ctx context.Context, use func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, counting)
	defer cancel()
	c, err := s.registrar.postgres.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	return use(ctx, c)
}

// errBusy is why there are no counts: what a backend has written it tells up to ten
// seconds later, so that what came before would be taken for what came since.
var errBusy = errors.New("other clients have used the database in the last seconds, and what they wrote may be counted late")

// calm waits until nobody can have written what is not counted.
func calm(ctx context.Context, c *pgx.Conn) error {
	busy := 1
	var failed error
	wait(ctx, calming, func() (bool, error) {
		busy, failed = uncounted(ctx, c, nil)
		return busy == 0, failed
	})
	if failed == nil && busy > 0 {
		return errBusy
	}
	return failed
}

// uncounted returns how many of the backends are there, and of others that may have
// written what they have not told.
func uncounted(ctx context.Context, c *pgx.Conn, backends []int32) (n int, err error) {
	err = c.QueryRow(ctx, `SELECT count(*) FROM pg_catalog.pg_stat_activity
		WHERE pid = ANY($2) OR datname = current_database() AND backend_type = 'client backend' AND pid <> pg_catalog.pg_backend_pid()
		AND application_name <> $1 AND (state IS DISTINCT FROM 'idle' OR state_change > now() - interval '11 seconds')`,
		sideName, backends).Scan(&n)
	return n, err
}

// name returns the upstream as ops have it.
func (s *database) name(c *pgx.Conn) string {
	name := s.registrar.postgres.Name
	if name != "" {
		name += "/"
	}
	return name + c.Config().Database
}

// settled reads the counts when the backends have told theirs, and whoever wrote past
// the proxies and is about to leave: from Postgres 15 on they have when they are gone,
// before when nothing changes any more.
func settled(ctx context.Context, c *pgx.Conn, backends []int32) (counts, error) {
	wait(ctx, leaving, func() (bool, error) {
		left, err := uncounted(ctx, c, backends)
		return left == 0, err
	})
	now, err := countsOf(ctx, c)
	var version int
	if err == nil {
		err = c.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version)
	}
	if err != nil || version >= 150000 {
		return now, err
	}
	since := time.Now()
	wait(ctx, collecting, func() (bool, error) {
		next, err := countsOf(ctx, c)
		if err == nil && !next.same(now) {
			now, since = next, time.Now()
		}
		return time.Since(since) > atRest, err
	})
	return now, nil
}

// wait asks until the answer is yes, for some time.
func wait(ctx context.Context, most time.Duration, done func() (bool, error)) {
	for end := time.Now().Add(most); time.Now().Before(end); sleep(ctx, 20*time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return
		}
	}
}

// countsOf reads the counts of all tables; those of a partition are its root's.
func countsOf(ctx context.Context, c *pgx.Conn) (counts, error) {
	rows, err := c.Query(ctx, `
		SELECT r.oid::bigint, n.nspname, r.relname, pg_catalog.pg_table_is_visible(r.oid),
			sum(s.n_tup_ins)::bigint, sum(s.n_tup_upd)::bigint, sum(s.n_tup_del)::bigint
		FROM pg_catalog.pg_stat_user_tables s
		JOIN pg_catalog.pg_class r ON r.oid = coalesce(pg_catalog.pg_partition_root(s.relid), s.relid)
		JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
		GROUP BY 1, 2, 3, 4 LIMIT $1`, mostTables+1)
	if err != nil {
		return nil, err
	}
	out := counts{}
	for rows.Next() {
		var oid int64
		var t tally
		if err := rows.Scan(&oid, &t.schema, &t.name, &t.visible, &t.Inserted, &t.Updated, &t.Deleted); err != nil {
			return nil, err
		}
		out[uint32(oid)] = t
	}
	if len(out) > mostTables {
		return nil, fmt.Errorf("there are more than %d tables", mostTables)
	}
	return out, rows.Err()
}

func (n counts) same(o counts) bool {
	if len(n) != len(o) {
		return false
	}
	for oid, t := range n {
		if o[oid] != t {
			return false
		}
	}
	return true
}

// since returns how much more it is than before, for the protected tables. One
// whose counts were reset has what came since.
func (n counts) since(before counts, protected func(string) bool, upstream string) []history.Tally {
	var out []history.Tally
	for oid, t := range n {
		name, ok := t.protected(protected)
		if !ok {
			continue
		}
		was := before[oid].Tally
		if t.Inserted < was.Inserted || t.Updated < was.Updated || t.Deleted < was.Deleted {
			was = history.Tally{}
		}
		out = append(out, history.Tally{
			Upstream: upstream, Table: name,
			Inserted: t.Inserted - was.Inserted, Updated: t.Updated - was.Updated, Deleted: t.Deleted - was.Deleted,
		})
	}
	slices.SortFunc(out, func(a, b history.Tally) int { return cmp.Compare(a.Table, b.Table) })
	return out
}

// protected returns the name by which a table is protected.
func (t *tally) protected(is func(string) bool) (string, bool) {
	names := []string{t.schema + "." + t.name}
	if t.visible || t.schema == "public" {
		names = append(names, t.name)
	}
	for _, name := range names {
		if is(name) {
			return lock.TableName(name), true
		}
	}
	return "", false
}

package pgwire

import (
	"strings"
	"testing"
)

// What statements of every day cost that were not seen before.
func BenchmarkReadSQL(b *testing.B) {
	for _, tt := range []struct{ name, sql string }{
		{"select", "SELECT abalance FROM pgbench_accounts WHERE aid = 12345;"},
		{"join", "SELECT t.a, count(*) FROM t JOIN u ON t.id = u.id WHERE u.b = 5 AND t.c IN (SELECT d FROM v) GROUP BY 1"},
		{"for update", "SELECT value, fence FROM counter WHERE id = 1 FOR UPDATE"},
		{"update", "UPDATE counter SET value = $1, fence = $2 WHERE id = 1 AND fence < $2"},
		{"upsert", "INSERT INTO t (id, v, fence) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET v = excluded.v, fence = excluded.fence WHERE t.fence < excluded.fence RETURNING v"},
		{"queue", "WITH n AS (SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE jobs SET state = 'taken' FROM n WHERE jobs.id = n.id RETURNING jobs.id"},
		{"set", "SET application_name = 'x'"},
		{"begin", "BEGIN"},
	} {
		b.Run("read/"+tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				readSQL(tt.sql, false)
			}
		})
		b.Run("outline/"+tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				outlined(tt.sql)
			}
		})
	}
}

func outlined(sql string) (n int) {
	var s surveyor
	for s.start(sql); s.found(); n++ {
		s.statement()
	}
	return n
}

// An outline costs no memory.
func TestOutlineAllocatesNothing(t *testing.T) {
	listed(t, func(_, sql string) {
		if strings.Count(sql, "UESCAPE") > 0 {
			return
		}
		if n := testing.AllocsPerRun(10, func() { outlined(sql) }); n > 0 {
			t.Errorf("%s: %v allocations", sql, n)
		}
	})
}

// What a text costs that is in the cache, alone and with others.
func BenchmarkCachedText(b *testing.B) {
	for _, tt := range []struct{ name, sql string }{
		{"short", "SELECT abalance FROM pgbench_accounts WHERE aid = $1"},
		{"long", "SELECT abalance FROM pgbench_accounts WHERE aid IN (" + strings.Repeat("$1, ", 500) + "$1)"},
	} {
		cache, text := NewCache(), []byte(tt.sql)
		twice(cache, tt.sql)
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cache.read(hasher, text, false)
			}
		})
		b.Run(tt.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					cache.read(hasher, text, false)
				}
			})
		})
	}
}

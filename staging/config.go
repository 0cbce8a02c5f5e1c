package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// guarded is what both daemons are told of the locks.
const guarded = `version: 1
locks:
  - {name: counter, key: "lock:counter", protects: [{table: counter, fence: fence}]}
  - {name: busy, key: "lock:busy", protects: [{table: busy, fence: fence}]}
`

// configure writes the files of both daemons.
func (s *theatre) configure() error {
	daemon := fmt.Sprintf(guarded+`proxies:
  redis: {listen: %q, upstream: %q}
  postgres: {listen: %q, upstream: %q}
invariants:
  - {name: counter, kind: counter, query: "SELECT value FROM counter WHERE id = 1", lock: counter}
  - {name: busy, kind: counter, query: "SELECT value FROM busy WHERE id = 1", lock: busy}
`, s.addresses[0], s.redis.Addr(), s.addresses[1], s.postgres.Addr())
	probe := fmt.Sprintf(guarded+`source: {admin: %q}
redis: {cache: %q}
postgres: {main: %q}
invariants:
  - {name: counter, kind: acked, query: "SELECT value FROM counter WHERE id = 1", lock: counter}
  - {name: busy, kind: acked, query: "SELECT value FROM busy WHERE id = 1", lock: busy}
  - {name: busy fence, kind: fence, query: "SELECT fence FROM busy WHERE id = 1", key: "fence:busy", lock: busy}
  - {name: busy rises, kind: monotone, query: "SELECT value FROM busy WHERE id = 1"}
  - {name: leases, kind: lock, pattern: "lock:*", held: 60s}
`, s.admin, s.redis.URL(), s.postgres.URL())
	for name, text := range map[string]string{"lockfaultd.yaml": daemon, "probe.yaml": probe} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

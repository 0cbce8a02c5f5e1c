// Command migrate applies migrations with golang-migrate, one by one, which takes an
// advisory lock for each.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/lockfaultd/lockfaultd/matrix/clients/go/work"
)

func main() {
	s := work.Start()
	defer s.Finish()
	files := fstest.MapFS{}
	for n := range s.Sections {
		files[fmt.Sprintf("%04d_count.up.sql", n+1)] = &fstest.MapFile{Data: []byte("UPDATE counter SET value = value + 1 WHERE id = 1")}
	}
	source, err := iofs.New(files, ".")
	work.Must(err)
	m, err := migrate.NewWithSourceInstance("iofs", source, strings.Replace(os.Getenv("DATABASE_URL"), "postgres://", "pgx5://", 1))
	work.Must(err)
	s.Granted, s.Released = 1, 1 // its own table is made under the lock, too
	for {
		err := m.Steps(1)
		s.Granted++ // whatever is to be done is found out under the lock
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, migrate.ErrNoChange) {
			s.Released++
			break
		}
		work.Must(err)
		s.Wrote++
		s.Released++
	}
	source2, database := m.Close()
	work.Must(source2)
	work.Must(database)
}

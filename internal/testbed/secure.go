package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Password logs the role "scram" in to a [SecurePostgres], by SCRAM-SHA-256.
const Password = "open-sesame"

// SecurePostgres makes a running Postgres offer TLS with a certificate, and
// want a client certificate of ca where the role is "cert"; the role "scram" has
// a [Password], "tls" may come in by TLS only, and all others are trusted.
func SecurePostgres(t testing.TB, s *Server, cert, key, ca string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	var data string
	if err := c.QueryRow(t.Context(), "SHOW data_directory").Scan(&data); err != nil {
		t.Fatal(err)
	}
	give(t, cert, filepath.Join(data, "server.crt"))
	give(t, key, filepath.Join(data, "server.key"))
	give(t, ca, filepath.Join(data, "root.crt"))
	hba := `local all all trust
hostssl all cert all cert
hostssl all tls all trust
host all tls all reject
host all scram all scram-sha-256
host all md5 all md5
host all clear all password
host all all all trust
`
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(hba), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"ALTER SYSTEM SET ssl = on", "ALTER SYSTEM SET ssl_ca_file = 'root.crt'",
		"CREATE ROLE cert LOGIN", "CREATE ROLE tls LOGIN",
		"SET password_encryption = 'scram-sha-256'", fmt.Sprintf("CREATE ROLE scram LOGIN PASSWORD '%s'", Password),
		fmt.Sprintf("CREATE ROLE clear LOGIN PASSWORD '%s'", Password),
		"SET password_encryption = 'md5'", fmt.Sprintf("CREATE ROLE md5 LOGIN PASSWORD '%s'", Password),
		"SELECT pg_reload_conf()",
	} {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	awaitTLS(t, s)
}

// give copies a file to where a server looks, as the server's user's own.
func give(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Dir(to))
	if err != nil {
		t.Fatal(err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := os.Chown(to, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitTLS waits until the server has read its settings again.
func awaitTLS(t testing.TB, s *Server) {
	t.Helper()
	url := "postgres://postgres@" + s.Addr() + "/postgres?sslmode=require"
	for end := time.Now().Add(startupLimit); ; time.Sleep(20 * time.Millisecond) {
		c, err := pgx.Connect(t.Context(), url)
		if err == nil {
			_ = c.Close(t.Context())
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no TLS: %v", err)
		}
	}
}

// Libpq18 returns the folder of Postgres 18's client library, which psql uses
// where it is the LD_LIBRARY_PATH.
func Libpq18(t testing.TB) string {
	t.Helper()
	return installed(t, filepath.Join(native, "lib"), "libpq 18", "scripts/need.sh postgres18")
}

// SecureRedis starts a Redis that also takes TLS, at the address returned; there
// it wants a client certificate of ca if clients is "yes", and none if "no".
func SecureRedis(t testing.TB, cert, key, ca, clients string) (s *Server, address string) {
	t.Helper()
	s = serve(t, func(ctx context.Context, dir string) (*Server, error) {
		return onFreePort(func(port int) (*Server, error) {
			address = hostPort(port)
			return StartRedis(ctx, dir, "--tls-port", fmt.Sprint(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca, "--tls-auth-clients", clients)
		})
	})
	return s, address
}

// Ioredis returns the folder that scripts/need.sh has put ioredis in.
func Ioredis(t testing.TB) string {
	t.Helper()
	return installed(t, "tools/ioredis/node_modules", "ioredis", "scripts/need.sh ioredis")
}

func installed(t testing.TB, path, program, how string) string {
	t.Helper()
	folder, err := above(path)
	if err == nil {
		return folder
	}
	missing := &MissingError{Program: program, Install: how}
	if os.Getenv("CI") == "" {
		t.Skip(missing)
	}
	t.Fatal(missing)
	return ""
}

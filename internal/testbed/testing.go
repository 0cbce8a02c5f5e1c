package testbed

import (
	"context"
	"errors"
	"os"
	"testing"
)

// Redis starts a Redis for a test and stops it at the test's end. Without the
// program the test is skipped, but fails where the environment has CI set.
func Redis(t testing.TB, options ...string) *Server {
	t.Helper()
	return serve(t, func(ctx context.Context, dir string) (*Server, error) { return StartRedis(ctx, dir, options...) })
}

// Postgres is like [Redis] for Postgres.
func Postgres(t testing.TB) *Server {
	t.Helper()
	return serve(t, func(ctx context.Context, dir string) (*Server, error) { return StartPostgres(ctx, dir) })
}

// Postgres18 is like [Postgres] for [StartPostgres18].
func Postgres18(t testing.TB) *Server {
	t.Helper()
	return serve(t, func(ctx context.Context, dir string) (*Server, error) { return StartPostgres18(ctx, dir) })
}

func serve(t testing.TB, start func(context.Context, string) (*Server, error)) *Server {
	t.Helper()
	s, err := start(t.Context(), folder(t))
	var missing *MissingError
	if errors.As(err, &missing) && os.Getenv("CI") == "" {
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// folder is not t.TempDir: the user postgres could not pass through the folder
// above that one.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lockfaultd-testbed-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	return dir
}

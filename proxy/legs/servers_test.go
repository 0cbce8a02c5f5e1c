package legs_test

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// A secureServer is a Postgres with TLS, and the certificate that it shows.
type secureServer struct {
	*testbed.Server
	authority *testbed.Authority
	own       *tls.Config
}

// running are the servers with TLS that all tests use, started when the first
// one asks.
var running struct {
	sync.Mutex
	servers map[string]*secureServer
	folders []string
}

func TestMain(m *testing.M) {
	status := m.Run()
	for _, s := range running.servers {
		s.Stop()
	}
	for _, dir := range running.folders {
		os.RemoveAll(dir)
	}
	os.Exit(status)
}

func postgres15(t *testing.T) *secureServer {
	t.Helper()
	return shared(t, "15", func(ctx context.Context, dir string) (*testbed.Server, error) { return testbed.StartPostgres(ctx, dir) })
}

func postgres18(t *testing.T) *secureServer {
	t.Helper()
	return shared(t, "18", func(ctx context.Context, dir string) (*testbed.Server, error) {
		return testbed.StartPostgres18(ctx, dir)
	})
}

func shared(t *testing.T, name string, start func(context.Context, string) (*testbed.Server, error)) *secureServer {
	t.Helper()
	running.Lock()
	defer running.Unlock()
	if s := running.servers[name]; s != nil {
		return s
	}
	dir, err := os.MkdirTemp("", "lockfaultd-legs-")
	if err != nil {
		t.Fatal(err)
	}
	running.folders = append(running.folders, dir)
	s, err := start(context.Background(), dir)
	var missing *testbed.MissingError
	if errors.As(err, &missing) && os.Getenv("CI") == "" {
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	a := testbed.NewAuthority(t, dir+"/certificates")
	cert, key := a.Issue(t, "server", "127.0.0.1", "localhost")
	testbed.SecurePostgres(t, s, cert, key, a.File)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	if running.servers == nil {
		running.servers = map[string]*secureServer{}
	}
	running.servers[name] = &secureServer{s, a, &tls.Config{Certificates: []tls.Certificate{pair}}}
	return running.servers[name]
}

package testbed

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRedisAnswersAndStops(t *testing.T) {
	s := Redis(t)
	if !s.pong(t.Context()) {
		t.Fatal("no PONG after start")
	}
	stopsAndFreesPort(t, s)
}

func TestRedisForgetsScripts(t *testing.T) {
	s := Redis(t)
	const sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" // of return 1
	if !s.answers(t.Context(), `SCRIPT LOAD "return 1"`, "$40\r\n"+sha) {
		t.Fatal("the script is not loaded")
	}
	if err := s.FlushScripts(t.Context()); err != nil || !s.answers(t.Context(), "SCRIPT EXISTS "+sha, "*1\r\n:0") {
		t.Errorf("it is there still, %v", err)
	}
}

func TestPostgresAcceptsAndStops(t *testing.T) {
	s := Postgres(t)
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() // a client that stays must not delay the stop
	stopsAndFreesPort(t, s)
}

func stopsAndFreesPort(t *testing.T, s *Server) {
	t.Helper()
	// A server that somebody froze must still stop.
	if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	s.Stop()
	if err := syscall.Kill(s.PID(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process after Stop: %v, want ESRCH", err)
	}
	if c, err := net.Dial("tcp", s.Addr()); err == nil {
		c.Close()
		t.Error("the port still answers after Stop")
	}
}

func TestMissingProgramNamesPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := lookPath("redis-server", "redis-server", filepath.Join(t.TempDir(), "*"))
	var missing *MissingError
	if !errors.As(err, &missing) || missing.Package != "redis-server" {
		t.Fatalf("got %v, want a MissingError that names redis-server", err)
	}
}

func TestLookPathPrefersNewestInFolders(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"9", "17", "15"} {
		bin := filepath.Join(dir, v, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, "sh"), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got, err := lookPath("sh", "dash", filepath.Join(dir, "*", "bin"))
	if want := filepath.Join(dir, "17", "bin", "sh"); err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestServerThatDiesAtOnceShowsItsLog(t *testing.T) {
	dir := folder(t)
	s := &Server{name: "redis-server", addr: "127.0.0.1:1", end: terminate}
	program, err := lookPath("sh", "dash")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.start(exec.Command(program, "-c", "echo no such luck; exit 1"), filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	err = s.await(t.Context(), func(context.Context) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("got %v, want the log's text", err)
	}
}

func TestOnFreePortTriesAnotherPortWhenTaken(t *testing.T) {
	var ports []int
	s, err := onFreePort(func(port int) (*Server, error) {
		ports = append(ports, port)
		if len(ports) == 1 {
			return nil, &diedError{log: "bind: Address already in use"}
		}
		return &Server{}, nil
	})
	if err != nil || s == nil || len(ports) != 2 {
		t.Errorf("got %v, %v after ports %v; want the second try to count", s, err, ports)
	}
}

func TestLongFolderIsRefusedByName(t *testing.T) {
	_, err := StartPostgres(t.Context(), "/tmp/"+strings.Repeat("x", 100))
	var missing *MissingError
	if errors.As(err, &missing) && os.Getenv("CI") == "" {
		t.Skip(missing)
	}
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v, want the socket's path refused", err)
	}
}

func TestPostgres18AcceptsAndStops(t *testing.T) {
	stopsAndFreesPort(t, Postgres18(t))
}

// Root's clone may be closed to the user whom Postgres runs as.
func TestPostgres18FromAClosedFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root becomes another user")
	}
	installed, err := above(native)
	var missing *MissingError
	if errors.As(err, &missing) && os.Getenv("CI") == "" {
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(closed, filepath.Dir(native)), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := copyTree(t.Context(), installed, filepath.Join(closed, native)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(closed)
	stopsAndFreesPort(t, Postgres18(t))
}

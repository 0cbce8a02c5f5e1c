package testbed

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// How the two servers are asked to end: for Postgres, SIGINT is the fast
// shutdown, which does not wait for clients to leave.
const (
	terminate = syscall.SIGTERM
	interrupt = syscall.SIGINT
)

// socketPathLimit is what a sockaddr_un holds, less its terminating zero.
const socketPathLimit = 107

// Debian keeps the servers away from PATH, and what is in PATH may be a
// wrapper; so these come first.
const postgresFolders = "/usr/lib/postgresql/*/bin"

// StartPostgres makes a cluster in dir/data and starts it: superuser
// postgres, every local connection trusted, no fsync, a Unix socket in dir. It
// returns once clients are accepted. As root it becomes the user postgres for
// it, to whom dir is given; every folder above dir must let that user pass.
// Settings are added to its command line, such as "max_connections=500". A
// missing program is a *[MissingError].
func StartPostgres(ctx context.Context, dir string, settings ...string) (*Server, error) {
	initdb, err := lookPath("initdb", "postgresql", postgresFolders)
	if err != nil {
		return nil, err
	}
	program, err := lookPath("postgres", "postgresql", postgresFolders)
	if err != nil {
		return nil, err
	}
	return makeCluster(ctx, initdb, program, dir, settings...)
}

// makeCluster is StartPostgres with programs that have been found.
func makeCluster(ctx context.Context, initdb, program, dir string, settings ...string) (*Server, error) {
	if socket := filepath.Join(dir, ".s.PGSQL.65535"); len(socket) > socketPathLimit {
		return nil, fmt.Errorf("start postgres: %s is too long for a socket's path (%d bytes, at most %d)", socket, len(socket), socketPathLimit)
	}
	as, err := giveAway(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if err := initCluster(ctx, initdb, dir, data, as); err != nil {
		return nil, err
	}
	return onFreePort(func(port int) (*Server, error) { return startCluster(ctx, program, dir, data, port, as, settings) })
}

// giveAway makes the user postgres the owner of dir when we are root, since
// Postgres refuses to run as root, and returns the credential to use; nil for
// our own.
func giveAway(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("start postgres as root: %w; on Debian: apt-get install postgresql", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read uid of user postgres: %w", err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read gid of user postgres: %w", err)
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		return nil, fmt.Errorf("give folder to user postgres: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func initCluster(ctx context.Context, initdb, dir, data string, as *syscall.Credential) error {
	cmd := exec.CommandContext(ctx, initdb, "-D", data, "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as, Setpgid: true, Pdeathsig: syscall.SIGINT}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w:\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

func startCluster(ctx context.Context, program, dir, data string, port int, as *syscall.Credential, settings []string) (*Server, error) {
	s := &Server{name: "postgres", addr: hostPort(port), end: interrupt}
	s.url = "postgres://postgres@" + s.addr + "/postgres?sslmode=disable"
	arguments := []string{"-D", data, "-p", strconv.Itoa(port), "-k", dir}
	ours := []string{"listen_addresses=127.0.0.1", "max_connections=200", "fsync=off", "full_page_writes=off", "shared_buffers=32MB"}
	for _, setting := range append(ours, settings...) {
		arguments = append(arguments, "-c", setting)
	}
	cmd := exec.Command(program, arguments...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if err := s.start(cmd, filepath.Join(dir, "postgres.log")); err != nil {
		return nil, err
	}
	ready := func(context.Context) bool { return postmasterReady(data) }
	if err := s.await(ctx, ready); err != nil {
		return nil, err
	}
	return s, nil
}

// postmasterReady reads the eighth line of postmaster.pid, where Postgres
// itself says whether it accepts clients.
func postmasterReady(data string) bool {
	b, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := bytes.Split(b, []byte("\n"))
	return len(lines) >= 8 && string(bytes.TrimSpace(lines[7])) == "ready"
}

package testbed

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// answering bounds how long a server that has started may take for one answer.
const answering = 10 * time.Second

// StartRedis starts a Redis that keeps nothing on disk, with dir as its
// working folder, and returns once it has answered PING. Options are added to its
// command line, such as "--enable-debug-command", "yes". A missing program is
// a *[MissingError].
func StartRedis(ctx context.Context, dir string, options ...string) (*Server, error) {
	program, err := lookPath("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	return onFreePort(func(port int) (*Server, error) { return startRedis(ctx, program, dir, port, options) })
}

func startRedis(ctx context.Context, program, dir string, port int, options []string) (*Server, error) {
	s := &Server{name: "redis-server", addr: hostPort(port), end: terminate}
	s.url = "redis://" + s.addr + "/0"
	cmd := exec.Command(program, append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, options...)...)
	cmd.Dir = dir
	if err := s.start(cmd, filepath.Join(dir, "redis.log")); err != nil {
		return nil, err
	}
	ready := func(ctx context.Context) bool { return s.logged("Ready to accept connections") && s.pong(ctx) }
	if err := s.await(ctx, ready); err != nil {
		return nil, err
	}
	return s, nil
}

// logged reports whether the server's own log has the text: a PONG alone might
// come from somebody else's Redis on our port.
func (s *Server) logged(text string) bool {
	b, err := os.ReadFile(s.log)
	return err == nil && bytes.Contains(b, []byte(text))
}

// FlushScripts has a Redis forget the scripts that it was sent, as one does that is started anew.
func (s *Server) FlushScripts(ctx context.Context) error {
	if !s.answers(ctx, "SCRIPT FLUSH", "+OK") {
		return errors.New("flush scripts: redis did not answer OK")
	}
	return nil
}

// pong reports whether the server answers PING.
func (s *Server) pong(ctx context.Context) bool { return s.answers(ctx, "PING", "+PONG") }

// answers reports whether the answer to a command begins so.
func (s *Server) answers(ctx context.Context, command, want string) bool {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return false
	}
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(deadline) // a TCP connection has deadlines
	}
	if _, err := c.Write([]byte(command + "\r\n")); err != nil {
		return false
	}
	answer := make([]byte, len(want))
	n, _ := io.ReadFull(c, answer)
	return string(answer[:n]) == want
}

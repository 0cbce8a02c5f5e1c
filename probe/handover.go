package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/redis/go-redis/v9"
)

// A partner is the process to which a worker hands its token.
type partner struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// A handed is what a partner answers, one line for each token.
type handed struct {
	Done bool   `json:"done"`
	Err  string `json:"err,omitempty"`
}

// startPartner starts a process of p that works for the load.
func (l Load) startPartner(p Program, stderr io.Writer) (*partner, error) {
	cmd := &exec.Cmd{Path: p.Path, Args: p.Args, Stderr: stderr}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start partner: %w", err)
	}
	h := &partner{cmd: cmd, in: in, out: json.NewDecoder(out)}
	if err := json.NewEncoder(in).Encode(workOrder{Name: "partner", Load: l, Partner: true}); err != nil {
		return nil, errors.Join(fmt.Errorf("write order: %w", err), h.close())
	}
	return h, nil
}

// hand gives the partner a token and waits until it has written and released.
func (h *partner) hand(token string) (done bool, err error) {
	if err := json.NewEncoder(h.in).Encode(token); err != nil {
		return false, fmt.Errorf("hand over token: %w", err)
	}
	var answer handed
	if err := h.out.Decode(&answer); err != nil {
		return false, fmt.Errorf("wait for partner: %w", err)
	}
	if answer.Err != "" {
		return false, errors.New(answer.Err)
	}
	return answer.Done, nil
}

func (h *partner) close() error {
	_ = h.in.Close() // the end of its input ends it
	return h.cmd.Wait()
}

// handOver reads and works, and leaves the write and the release to the partner.
func handOver(ctx context.Context, s *stint) (bool, error) {
	if err := s.read(ctx); err != nil || !s.work() {
		return false, err
	}
	s.released = true
	return s.other.hand(s.token)
}

// servePartner works for the tokens that it reads, one JSON text each, until
// there are no more.
func (l Load) servePartner(ctx context.Context, in *json.Decoder, out, stderr io.Writer) error {
	options, err := redisOptions(l.Redis)
	if err != nil {
		return fmt.Errorf("read Redis URL: %w", err)
	}
	w := newWorker(l, redis.NewClient(options), stderr)
	defer w.close()
	for {
		var token string
		if err := in.Decode(&token); err != nil {
			return nil // the worker has ended
		}
		var answer handed
		if answer.Done, err = w.takeOver(ctx, token); err != nil {
			answer.Err = err.Error()
		}
		if err := json.NewEncoder(out).Encode(answer); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
}

// takeOver does what is left of a section whose token it was given.
func (w *worker) takeOver(ctx context.Context, token string) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, sectionMax)
	defer cancel()
	if err := w.reconnect(ctx); err != nil {
		return false, err
	}
	s := &stint{worker: w, token: token}
	done, err = s.exec(ctx, "UPDATE %s SET value = value + 1, owner = $1 WHERE id = 1", token)
	return done, errors.Join(err, s.release(ctx))
}

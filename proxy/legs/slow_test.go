package legs_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/legs"
)

// Nobody waits for ever: not for an upstream that accepts and says nothing,
// or does not even accept, nor for a client that does not say what it wants.
func TestC014SlowPeers(t *testing.T) {
	trusting := &tls.Config{ServerName: "upstream"}
	for name, tt := range map[string]struct {
		act  func(ctx context.Context, p *legs.Postgres, r *legs.Redis, client net.Conn) error
		want time.Duration
	}{
		"Postgres that does not answer": {func(ctx context.Context, p *legs.Postgres, _ *legs.Redis, _ net.Conn) error {
			return dialError(ctx, p, "read the answer to SSLRequest: no answer within 10s; does it speak Postgres?")
		}, 10 * time.Second},
		"Redis that does not answer": {func(ctx context.Context, _ *legs.Postgres, r *legs.Redis, _ net.Conn) error {
			return dialError(ctx, r, "TLS handshake: no answer within 10s; does it speak TLS?")
		}, 10 * time.Second},
		"an upstream that does not accept": {func(ctx context.Context, p *legs.Postgres, _ *legs.Redis, _ net.Conn) error {
			p.Connect = func(ctx context.Context, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
			return dialError(ctx, p, "context deadline exceeded")
		}, 10 * time.Second},
		"a client that says nothing": {func(ctx context.Context, p *legs.Postgres, _ *legs.Redis, c net.Conn) error {
			got, err := p.Accept(ctx, c)
			if got != nil || err != nil {
				return errors.New("there was a session, or an error")
			}
			return nil
		}, time.Minute},
		"a client without a handshake": {func(ctx context.Context, _ *legs.Postgres, r *legs.Redis, c net.Conn) error {
			if got, err := r.Accept(ctx, c); got != nil || err == nil {
				return errors.New("there was a session, or no error")
			}
			return nil
		}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n testbed.Network
				ln, err := n.Listen("upstream:1")
				if err != nil {
					t.Fatal(err)
				}
				policy := legs.Policy{Client: &tls.Config{}, Upstream: trusting, Address: "upstream:1", Connect: n.Dial, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
				client, err := n.Dial(t.Context(), "upstream:1")
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				if err := tt.act(t.Context(), &legs.Postgres{Policy: policy, Cancels: &legs.Cancels{}}, &legs.Redis{Policy: policy}, client); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took != tt.want {
					t.Errorf("it took %v, want %v", took, tt.want)
				}
				ln.Close()
			})
		})
	}
}

func dialError(ctx context.Context, l proxy.Legs, want string) error {
	c, err := l.Dial(ctx)
	switch {
	case err == nil:
		c.Close()
		return errors.New("it was reached")
	case err.Error() != want:
		return fmt.Errorf("it failed with %q, want %q", err, want)
	}
	return nil
}

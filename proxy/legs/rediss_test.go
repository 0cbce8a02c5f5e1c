package legs_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// Real clients over TLS on either leg and on both, to a server that wants a
// certificate of the proxy's.
func TestC107Rediss(t *testing.T) {
	a := authority(t)
	cert, key := a.Issue(t, "server", "127.0.0.1", "localhost")
	s, overTLS := testbed.SecureRedis(t, cert, key, a.File, "yes")
	h := newHouse(t)
	own, up := shown(t, a, "proxy"), trusting(t, a)
	pair, err := tls.LoadX509KeyPair(a.Issue(t, "client", "lockfaultd"))
	if err != nil {
		t.Fatal(err)
	}
	up.Certificates = []tls.Certificate{pair}
	for name, at := range map[string]string{
		"client leg":   "rediss://" + h.redis(s.Addr(), own, nil),
		"upstream leg": "redis://" + h.redis(overTLS, nil, up),
		"both legs":    "rediss://" + h.redis(overTLS, own, up),
	} {
		t.Run(name+"/go-redis", func(t *testing.T) { goRedis(t, at, trusting(t, a)) })
		t.Run(name+"/redis-py", func(t *testing.T) {
			url := at
			if strings.HasPrefix(at, "rediss") {
				url += "?ssl_ca_certs=" + a.File + "&ssl_check_hostname=true"
			}
			script(t, "/usr/bin/python3", "testdata/client.py", "REDIS_URL="+url)
		})
		t.Run(name+"/ioredis", func(t *testing.T) {
			script(t, "node", "testdata/client.js", "REDIS_URL="+at, "NODE_EXTRA_CA_CERTS="+a.File, "IOREDIS="+testbed.Ioredis(t))
		})
	}
	h.silent()
}

func goRedis(t *testing.T, url string, conf *tls.Config) {
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	if o.TLSConfig != nil {
		o.TLSConfig = conf
	}
	o.ReadTimeout = 30 * time.Second
	c := redis.NewClient(o)
	defer c.Close()
	value := make([]byte, 1<<20)
	_, _ = rand.Read(value)
	ctx := t.Context()
	if ok, err := c.SetNX(ctx, "go", value, time.Minute).Result(); err != nil || !ok {
		t.Fatalf("set: %v, %v", ok, err)
	}
	if got, err := c.Get(ctx, "go").Bytes(); err != nil || !bytes.Equal(got, value) {
		t.Fatalf("get: %d bytes, %v", len(got), err)
	}
	sub := c.Subscribe(ctx, "go:c")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	p := c.TxPipeline()
	for range 100 {
		p.Incr(ctx, "go:n")
	}
	p.Publish(ctx, "go:c", "hello")
	if _, err := p.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "hello" {
		t.Fatalf("received %v, %v", m, err)
	}
	if n, err := c.Del(ctx, "go", "go:n").Result(); err != nil || n != 2 {
		t.Fatalf("deleted %d, %v", n, err)
	}
}

// script runs a client in another language, which says ok at its end.
func script(t *testing.T, program, file string, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, file)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Errorf("%s: %v\n%s", file, err, out)
	}
}

// A listener that wants client certificates takes nobody without one.
func TestClientCertificates(t *testing.T) {
	h, a := newHouse(t), authority(t)
	upstream, _ := echo(t, nil)
	conf := shown(t, a, "proxy")
	conf.ClientAuth, conf.ClientCAs = tls.RequireAndVerifyClientCert, trusting(t, a).RootCAs
	redisAt, postgresAt := h.redis(upstream, conf, nil), h.postgres(upstream, conf, nil)
	known, unknown := trusting(t, a), trusting(t, a)
	for conf, by := range map[*tls.Config]*testbed.Authority{known: a, unknown: authority(t)} {
		pair, err := tls.LoadX509KeyPair(by.Issue(t, "client", "somebody"))
		if err != nil {
			t.Fatal(err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	speak := func(c net.Conn, conf *tls.Config, text string) error {
		s := tls.Client(c, conf)
		if err := s.Handshake(); err != nil {
			return err
		}
		if _, err := s.Write([]byte(text)); err != nil {
			return err
		}
		_, err := s.Read(make([]byte, 1))
		return err
	}
	negotiate := func() net.Conn {
		c := dial(t, postgresAt)
		send(t, c, ssl)
		expect(t, c, "S")
		return c
	}
	for name, conf := range map[string]*tls.Config{"known": known, "unknown": unknown, "none": trusting(t, a)} {
		for at, err := range map[string]error{"redis": speak(dial(t, redisAt), conf, "PING\r\n"), "postgres": speak(negotiate(), conf, startup)} {
			if (err == nil) != (name == "known") {
				t.Errorf("%s, %s: %v", at, name, err)
			}
		}
	}
	h.says("client didn't provide a certificate")
	h.says("certificate signed by unknown authority")
}

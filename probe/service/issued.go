package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Issued reads a Redis key from which fences are given out, with the run id of the server.
func Issued(client *redis.Client, key string) func(ctx context.Context) (Reading, error) {
	return func(ctx context.Context) (r Reading, err error) {
		var info, get *redis.Cmd
		_, err = client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			info, get = p.Do(ctx, "INFO", "server"), p.Do(ctx, "GET", key)
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return r, fmt.Errorf("read key %s: %w", key, err)
		}
		text, err := info.Text()
		if err != nil {
			return r, fmt.Errorf("read INFO: %w", err)
		}
		r.Server = runID(text)
		if text, err = get.Text(); errors.Is(err, redis.Nil) {
			return r, nil
		}
		if err != nil {
			return r, fmt.Errorf("read key %s: %w", key, err)
		}
		if r.Value, err = strconv.ParseInt(text, 10, 64); err != nil {
			return r, fmt.Errorf("read key %s: expected an integer, got something else", key)
		}
		r.Exists = true
		return r, nil
	}
}

func runID(info string) string {
	_, rest, _ := strings.Cut(info, "run_id:")
	id, _, _ := strings.Cut(rest, "\r\n")
	return id
}

// Clients are those of Redis, one for all that ask a server. The zero value has none.
type Clients struct{ byName map[string]*redis.Client }

// Of makes the client of a name, if there is none yet. It connects when it is asked. An error tells no password.
func (c *Clients) Of(name, url string) (*redis.Client, error) {
	if client := c.byName[name]; client != nil {
		return client, nil
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("the URL cannot be read, expected redis://USER:PASSWORD@HOST:PORT/DB or rediss://")
	}
	o.ClientName, o.MaxRetries, o.PoolSize = "lockfaultd-probe", -1, 2
	if c.byName == nil {
		c.byName = map[string]*redis.Client{}
	}
	c.byName[name] = redis.NewClient(o)
	return c.byName[name], nil
}

// Close ends all connections.
func (c *Clients) Close() {
	for _, client := range c.byName {
		client.Close()
	}
}

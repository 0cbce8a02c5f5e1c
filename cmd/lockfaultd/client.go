package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"
)

// defaultAdmin is where the API of a daemon is looked for.
const defaultAdmin = "http://127.0.0.1:8474"

// A client asks the API of a daemon that runs.
type client struct {
	base  string
	token string
	http  http.Client
}

// answering bounds how long a daemon may take to answer.
const answering = 5 * time.Second

// mostAnswer bounds what is read of an answer.
const mostAnswer = 64 << 20

// adminFlag is the flag of commands that speak to a daemon.
func adminFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "admin", Usage: "`URL` of the daemon's admin API", Value: defaultAdmin, EnvVars: []string{adminURL}, Destination: to}
}

// newClient takes a URL, or the HOST:PORT that --admin of the daemon has.
func newClient(base string) (*client, error) {
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usagef("--admin %s: expected a URL such as %s", base, defaultAdmin)
	}
	return &client{base: strings.TrimRight(base, "/"), token: os.Getenv(adminToken), http: http.Client{
		Timeout:       answering,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for this host
	}}, nil
}

// A refusal is what the API answered to what it did not do.
type refusal struct {
	status int
	text   string
}

func (r refusal) Error() string { return r.text }

// get asks for a path and decodes the answer.
func (c *client) get(ctx context.Context, path string, into any) error {
	return c.ask(ctx, http.MethodGet, path, nil, into)
}

// ask asks for something, with what is said there about it unless that is nil, and decodes the answer.
func (c *client) ask(ctx context.Context, method, path string, say, into any) error {
	var body io.Reader
	if say != nil {
		b, err := json.Marshal(say)
		if err != nil {
			return fmt.Errorf("ask %s: %w", c.base, err)
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.base, err)
	}
	if say != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("reach %s: %w", c.base, reason(err))
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("reach %s: %w", c.base, err)
	case answer.StatusCode == http.StatusUnauthorized:
		return c.unknown()
	case answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusCreated:
		return fmt.Errorf("ask %s%s: %w", c.base, path, refusedBy(answer, said))
	}
	if err := json.Unmarshal(said, into); err != nil {
		return fmt.Errorf("ask %s%s: it is no answer of a daemon: %w", c.base, path, err)
	}
	return nil
}

func (c *client) unknown() error {
	if c.token == "" {
		return usagef("%s wants a token; expected it in %s", c.base, adminToken)
	}
	return usagef("%s refuses the token in %s", c.base, adminToken)
}

// reason is an error without the address, which is said already.
func reason(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

func refusedBy(answer *http.Response, body []byte) refusal {
	var said struct {
		Error    string
		Expected []string
	}
	if json.Unmarshal(body, &said) != nil || said.Error == "" {
		said.Error = "it answered " + answer.Status
	}
	if len(said.Expected) > 0 {
		said.Error += "; expected one of " + strings.Join(said.Expected, ", ")
	}
	return refusal{answer.StatusCode, strings.Map(shown, said.Error)}
}

// shown keeps what a terminal shows, and has a question mark for what it would act on.
func shown(r rune) rune {
	if r == '\n' || unicode.IsPrint(r) {
		return r
	}
	return '?'
}

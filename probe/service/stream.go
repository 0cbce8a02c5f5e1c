package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// A Stream is the event stream of a lockfaultd's admin API.
type Stream struct {
	URL       string // of the API: http://HOST:PORT
	Token     string // "": it wants none
	TokenFrom string // what an error calls where the token is taken from
	Client    *http.Client
}

// How a stream is kept up.
const (
	silence    = 40 * time.Second // without a heartbeat, which comes every 15 s
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
	mostLine   = 64 << 20
)

// Name is the API's URL.
func (s Stream) Name() string { return s.URL }

// Follow asks for the stream, and asks again where that ends.
func (s Stream) Follow(ctx context.Context, from Position, tell func(Message)) {
	wait := firstRetry
	for ctx.Err() == nil {
		heard, err := s.follow(ctx, &from, tell)
		if ctx.Err() != nil {
			return
		}
		if heard {
			wait = firstRetry
		}
		if errors.Is(err, io.EOF) { // in order, and not by a connection that broke
			tell(Message{At: time.Now(), Over: true})
			err = errors.New("the daemon has ended")
		}
		tell(Message{At: time.Now(), Down: err.Error()})
		pause(ctx, wait)
		wait = min(2*wait, lastRetry)
	}
}

// follow is one connection. Its error is never nil.
func (s Stream) follow(ctx context.Context, from *Position, tell func(Message)) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(silence, func() { cancel(errors.New("nothing was heard of it for " + silence.String())) })
	defer quiet.Stop()
	body, err := s.open(ctx, *from)
	if err != nil {
		return false, because(ctx, err)
	}
	defer body.Close()
	tell(Message{At: time.Now(), Up: true})
	lines := bufio.NewReaderSize(body, 64<<10)
	for {
		line, err := readLine(lines)
		if err != nil {
			return true, because(ctx, err)
		}
		quiet.Reset(silence)
		if len(line) == 0 { // a heartbeat
			tell(Message{At: time.Now(), Idle: true})
			continue
		}
		m, err := message(line)
		if err != nil {
			return true, err
		}
		if m.Pos == *from {
			continue // we have it
		}
		*from = m.Pos
		tell(m)
	}
}

// because prefers the reason for which the context was ended.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (s Stream) open(ctx context.Context, from Position) (io.ReadCloser, error) {
	path := "/v1/events"
	if from.Run != "" {
		path += "?from=" + url.QueryEscape(from.String())
	}
	return s.get(ctx, path, "application/x-ndjson")
}

func (s Stream) get(ctx context.Context, path, accept string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	if s.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.Token)
	}
	resp, err := s.Client.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized && s.Token == "":
		return nil, fmt.Errorf("%s wants a token; expected it in %s", s.URL, s.TokenFrom)
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s refuses the token in %s", s.URL, s.TokenFrom)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answered %s", s.URL, resp.Status)
	}
	return resp.Body, nil
}

// readLine reads a line without its end, of a length that has a bound. The caller's.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > mostLine {
			return nil, fmt.Errorf("a line of the history is longer than %d bytes", mostLine)
		}
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// message reads {"id":"RUN-N","event":{...}}.
func message(line []byte) (Message, error) {
	var e struct {
		ID    string          `json:"id"`
		Event json.RawMessage `json:"event"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return Message{}, fmt.Errorf("read an event: %w", err)
	}
	pos, ok := parsePosition(e.ID)
	if !ok || len(e.Event) == 0 {
		return Message{}, fmt.Errorf("read an event: expected an id of the form RUN-N and an event, found id %.40q", e.ID)
	}
	return Message{At: time.Now(), Pos: pos, Line: e.Event}, nil
}

// Tick asks for the daemon's clock.
func (s Stream) Tick(ctx context.Context) (t Tick, err error) {
	body, err := s.get(ctx, "/v1/clock", "application/json")
	if err != nil {
		return t, err
	}
	defer body.Close()
	if err := json.NewDecoder(io.LimitReader(body, 64<<10)).Decode(&t); err != nil {
		return t, fmt.Errorf("read the answer of /v1/clock: %w", err)
	}
	return t, nil
}

package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// mostBody bounds what one request may say, in bytes.
const mostBody = 64 << 10

// bodyOf reads a request's body into v: one JSON object with known fields of the right types. No body stands for an
// empty object. It answers what is wrong itself, and reports whether nothing is.
func bodyOf(w http.ResponseWriter, r *http.Request, v any) bool {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		reply(w, http.StatusRequestEntityTooLarge, refused{fmt.Sprintf("expected at most %d bytes", mostBody)})
		return false
	case err != nil:
		reply(w, http.StatusBadRequest, refused{"the request ends before its body does"})
		return false
	}
	if err := parse(bytes.TrimSpace(b), v); err != nil {
		reply(w, http.StatusBadRequest, refused{err.Error()})
		return false
	}
	return true
}

func parse(b []byte, v any) error {
	if len(b) == 0 {
		return nil
	}
	if b[0] != '{' {
		return errors.New("expected a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return said(err)
	}
	if d.InputOffset() != int64(len(b)) {
		return errors.New("expected one JSON object and nothing behind it")
	}
	return nil
}

// said words what is wrong with a JSON text for who wrote it.
func said(err error) error {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		return fmt.Errorf("%s: expected %s, found a JSON %s", wrong.Field, kindOf(wrong), wrong.Value)
	case errors.As(err, &syntax):
		return fmt.Errorf("no JSON, at byte %d: %w", syntax.Offset, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("no JSON: it ends too soon")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

func kindOf(e *json.UnmarshalTypeError) string {
	switch e.Type.Kind().String() {
	case "bool":
		return "true or false"
	case "int":
		return "a whole number"
	}
	return "a text"
}

// duration reads a length of time that is more than none.
func duration(field, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s: expected a duration such as 10m or 800ms, found %q", field, text)
	}
	return d, nil
}

// fail answers a part's error: 404 with the names that there are, 409, or 400.
func fail(w http.ResponseWriter, err error, known func() []string) {
	switch {
	case errors.Is(err, ErrUnknown):
		reply(w, http.StatusNotFound, lacking{err.Error(), append([]string{}, known()...)})
	case errors.Is(err, ErrConflict):
		reply(w, http.StatusConflict, refused{err.Error()})
	default:
		reply(w, http.StatusBadRequest, refused{err.Error()})
	}
}

// lacking is the answer to a name that there is not.
type lacking struct {
	Error    string   `json:"error"`
	Expected []string `json:"expected"`
}

// nothing is the body of a request that has nothing to say.
type nothing struct{}

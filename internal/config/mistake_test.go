package config

import (
	"errors"
	"fmt"
	"testing"
)

// A mistake is a file that is no good, and what its error says: line, column and reason.
type mistake struct{ text, want string }

// refusedBy checks how a reader takes it, and returns its error.
func (m mistake) refusedBy(t *testing.T, read func(text []byte) error) error {
	t.Helper()
	err := read([]byte(m.text))
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("%q: %v", m.text, err)
		return err
	}
	if got := fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason); got != m.want {
		t.Errorf("%q:\n got %s\nwant %s", m.text, got, m.want)
	}
	return err
}

// hasItsPlace checks that an error, if there is one, says where it is and why.
func hasItsPlace(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Reason == "") {
		t.Errorf("%#v", err)
	}
}

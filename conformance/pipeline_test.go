package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A test that does not end is tried again, and one that fails is not.
func TestUntilItEnds(t *testing.T) {
	failure := errors.New("it failed")
	for _, tt := range []struct {
		hangs, tries int
		err, want    error
	}{
		{0, 1, nil, nil},
		{0, 1, failure, failure},
		{1, 2, nil, nil},
		{2, 3, failure, failure},
		{3, 3, nil, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			err := untilItEnds(func(ctx context.Context) error {
				if tries++; tries > tt.hangs {
					return tt.err
				}
				<-ctx.Done()
				return ctx.Err()
			})(t.Context())
			if tries != tt.tries || !errors.Is(err, tt.want) {
				t.Errorf("%d hangs: %d tries, %v; want %d, %v", tt.hangs, tries, err, tt.tries, tt.want)
			}
		})
	}
}

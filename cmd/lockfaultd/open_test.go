package main

import (
	"strings"
	"testing"
)

// An API that is open to others is told of as it listens, and not as if it were on loopback alone.
func TestAdminIsToldAsItListens(t *testing.T) {
	t.Setenv(adminToken, "secret")
	_, _, said := sidecar(t, "--admin", "0.0.0.0:0", "--redis", "127.0.0.1:0=127.0.0.1:1")
	if at := adminOf(t, said); !strings.HasPrefix(at, "http://0.0.0.0:") {
		t.Errorf("it tells %s", at)
	}
}

package main

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/config"
)

// In metrics a lock is what the config calls it, whatever database it is in.
func TestLocksAreNamedByTheConfig(t *testing.T) {
	conf, err := config.ParseProbe("x.yaml", []byte(`
version: 1
source: {history: d}
locks:
  - {name: scratch, key: "lock:tmp:*", ignore: true}
  - {name: jobs, key: "lock:*"}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := watchesOf(conf)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for id, want := range map[string]string{"lock:a": "jobs", "lock:a db 3": "jobs", "other": "", "other db 3": "", "lock:tmp:a": "jobs"} {
		if got := w.conf.Named(id); got != want {
			t.Errorf("%q is called %q, want %q", id, got, want)
		}
	}
}

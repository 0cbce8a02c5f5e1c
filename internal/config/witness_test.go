package config

import (
	"strings"
	"testing"
)

func TestWitness(t *testing.T) {
	c, err := Parse("f", []byte("version: 1\nwitness: probe\n"))
	if err != nil || c.Witness != "probe" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Parse("f", []byte("version: 1\n")); err != nil || c.Witness != "" {
		t.Errorf("without: %+v, %v", c, err)
	}
	if _, err := Parse("f", []byte("version: 1\nwitness: spy\n")); err == nil || !strings.Contains(err.Error(), "auto, monitor, probe, none") {
		t.Errorf("got %v", err)
	}
}

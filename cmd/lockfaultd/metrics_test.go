package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// needed returns where a program is. Without it the test is skipped, but fails where the environment has CI set.
func needed(t *testing.T, name, install string) string {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no %s: %s", name, install)
		}
		t.Skipf("no %s: %s", name, install)
	}
	return program
}

// promtool runs Prometheus's own tool.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.Command(needed(t, "promtool", "scripts/need.sh promtool"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 && args[0] == "check" && args[1] == "metrics" {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// scrape returns what a daemon tells Prometheus.
func scrape(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp.Status, err)
	}
	return string(text)
}

// value returns that of a series, -1 where there is none.
func value(t *testing.T, text, series string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return -1
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// unlike tells of the series that are not as they ought to be.
func unlike(t *testing.T, text string, wants map[string]float64) (others []string) {
	t.Helper()
	for series, want := range wants {
		if got := value(t, text, series); got != want {
			others = append(others, fmt.Sprintf("%s is %v, want %v", series, got, want))
		}
	}
	return others
}

// What a daemon has done is in its metrics, which Prometheus's own tool finds nothing wrong with. What a rule holds is no
// overhead of forwarding.
func TestSidecarTellsPrometheus(t *testing.T) {
	redis := testbed.Redis(t)
	_, address, said := sidecar(t, "--admin", "127.0.0.1:0", "--redis", "127.0.0.1:0="+redis.Addr(), "--stall-before", "SETNX(lock0)#1=3s,name=pause")
	url := adminOf(t, said)
	manyLocks(t, address, 2)
	wants := map[string]float64{
		`lockfaultd_injections_total{effect="stall",outcome="landed",rule="pause"}`: 1,
		`lockfaultd_ops_total{kind="acquire",outcome="granted",protocol="redis"}`:   2,
		`lockfaultd_grants_total{lock="*"}`:                                         2,
		`lockfaultd_connections`:                                                    0,
		`lockfaultd_connections_total`:                                              1,
		`lockfaultd_rules_armed`:                                                    1,
		`lockfaultd_frozen`:                                                         0,
		`lockfaultd_event_consumers`:                                                0,
		fmt.Sprintf(`lockfaultd_build_info{version=%q}`, version):                   1,
		`lockfaultd_forward_seconds_count{protocol="redis"}`:                        2,
		`lockfaultd_forward_seconds_bucket{protocol="redis",le="1"}`:                2,
	}
	var text string
	var others []string
	for range 800 { // what one scrape tells is not of one moment
		text = scrape(t, url)
		if others = unlike(t, text, wants); len(others) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(others) > 0 {
		t.Errorf("%s\n%s", strings.Join(others, "\n"), text)
	}
	promtool(t, text, "check", "metrics")
}

package main

import (
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/metrics"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// A documented metric is a row of docs/metrics.md.
type documented struct {
	kind   string
	labels []string
}

var (
	metricRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+) \\|([^|]*)\\| .+ \\|$")
	labelName = regexp.MustCompile("`([a-z_]+)`")
)

// documentedMetrics returns the rows of the page.
func documentedMetrics(t *testing.T) map[string]documented {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]documented{}
	for _, m := range metricRow.FindAllStringSubmatch(string(page), -1) {
		d := documented{kind: m[2]}
		for _, l := range labelName.FindAllStringSubmatch(m[3], -1) {
			d.labels = append(d.labels, l[1])
		}
		out[m[1]] = d
	}
	return out
}

// Every metric is in docs/metrics.md, with its type and labels, and the page has none that there is not.
func TestMetricsAreAsDocumented(t *testing.T) {
	o := newOptions()
	o.admin, o.seed, o.maxFrozen = "127.0.0.1:0", 1, 1
	s, err := o.setup()
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDaemon(s, nil, "", proxy.Drop, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	page := documentedMetrics(t)
	for name, labels := range metrics.Described(d.registry) {
		if !strings.HasPrefix(name, "lockfaultd_") {
			continue
		}
		row, ok := page[name]
		if !ok {
			t.Errorf("docs/metrics.md lacks %s", name)
			continue
		}
		slices.Sort(labels)
		slices.Sort(row.labels)
		if !slices.Equal(labels, row.labels) {
			t.Errorf("%s has the labels %v, and in docs/metrics.md %v", name, labels, row.labels)
		}
		if total := strings.HasSuffix(name, "_total"); total != (row.kind == "counter") {
			t.Errorf("%s is a %s in docs/metrics.md", name, row.kind)
		}
		delete(page, name)
	}
	for name := range page {
		if strings.HasPrefix(name, "lockfaultd_") {
			t.Errorf("docs/metrics.md has %s, which is no metric", name)
		}
	}
	families, err := d.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	page = documentedMetrics(t)
	for _, f := range families {
		if row, ok := page[f.GetName()]; ok && row.kind != strings.ToLower(f.GetType().String()) {
			t.Errorf("%s is a %s, and in docs/metrics.md a %s", f.GetName(), f.GetType(), row.kind)
		}
	}
}

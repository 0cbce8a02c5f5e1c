package service

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/metrics"
)

// Every metric is in docs/metrics.md with its labels, and the page has none that there is not.
func TestMetricsAreAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(probe_[a-z_]+)` \\| (\\w+) \\|([^|]*)\\| .+ \\|$").FindAllStringSubmatch(string(page), -1) {
		rows[m[1]] = nil
		for _, l := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(m[3], -1) {
			rows[m[1]] = append(rows[m[1]], l[1])
		}
		if (m[2] == "counter") != strings.HasSuffix(m[1], "_total") {
			t.Errorf("%s is a %s", m[1], m[2])
		}
	}
	s, store := open(t, t.TempDir(), nil)
	defer store.Close()
	for name, labels := range metrics.Described(s.registry()) {
		if !strings.HasPrefix(name, "probe_") {
			continue
		}
		row, ok := rows[name]
		slices.Sort(row)
		slices.Sort(labels)
		if !ok || !slices.Equal(row, labels) {
			t.Errorf("%s has the labels %v, and in docs/metrics.md %v (there: %v)", name, labels, row, ok)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("docs/metrics.md has %s, which is no metric", name)
	}
}

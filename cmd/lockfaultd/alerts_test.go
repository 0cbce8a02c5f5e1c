package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	alertsFile    = "../../configs/alerts.yaml"
	dashboardFile = "../../configs/grafana-dashboard.json"
)

// Each alert goes off when it should and not when it should not.
func TestAlerts(t *testing.T) {
	promtool(t, "", "check", "rules", "--lint=all", "--lint-fatal", alertsFile)
	dir := t.TempDir()
	for name, from := range map[string]string{"alerts.yaml": alertsFile, "alerts-test.yaml": "testdata/promtool/alerts-test.yaml"} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtool(t, "", "test", "rules", filepath.Join(dir, "alerts-test.yaml"))
}

// An alert that no test has go off may as well never do.
func TestEveryAlertIsTested(t *testing.T) {
	alerts, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("testdata/promtool/alerts-test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(string(alerts), -1) {
		if !strings.Contains(string(tests), "alertname: "+m[1]+"\n        exp_alerts:\n          - ") {
			t.Errorf("%s is tested by nothing that has it go off", m[1])
		}
	}
	namesExist(t, alertsFile, string(alerts))
}

var (
	ownMetric    = regexp.MustCompile(`\b(?:lockfaultd|probe)_[a-z_]+[a-z]\b`)
	ofAHistogram = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// namesExist finds metrics in a text that docs/metrics.md does not know.
func namesExist(t *testing.T, where, text string) {
	t.Helper()
	page := documentedMetrics(t)
	for _, name := range ownMetric.FindAllString(text, -1) {
		base := ofAHistogram.ReplaceAllString(name, "")
		if _, ok := page[name]; !ok && page[base].kind != "histogram" {
			t.Errorf("%s names %s, which is no metric", where, name)
		}
	}
}

// exprs returns every query of a dashboard.
func exprs(v any) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			if text, ok := x.(string); ok && key == "expr" {
				out = append(out, text)
			}
			out = append(out, exprs(x)...)
		}
	case []any:
		for _, x := range v {
			out = append(out, exprs(x)...)
		}
	}
	return out
}

// Every query of the dashboard can be parsed, and asks for metrics that there are.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var board map[string]any
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	queries := exprs(board)
	if len(queries) < 20 {
		t.Errorf("%d queries", len(queries))
	}
	set := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$instance", ".*", "$lock", ".*")
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for i, q := range queries {
		q = set.Replace(q)
		if strings.Contains(q, "$") {
			t.Errorf("%s has a variable that the test does not know", q)
		}
		fmt.Fprintf(&rules, "  - {record: 'dashboard:query:n%d', expr: %q}\n", i, q)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", file)
	namesExist(t, dashboardFile, string(text))
}

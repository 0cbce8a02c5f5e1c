package metrics

import (
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

var described = regexp.MustCompile(`fqName: "([^"]*)".*constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// Described returns the metrics of a collector, such as a registry, with the names of their labels, those of a fixed value first: also of those that have no
// series yet.
func Described(c prometheus.Collector) map[string][]string {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	out := map[string][]string{}
	for d := range descs {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			continue
		}
		labels := []string{}
		for _, l := range strings.Split(m[2]+","+m[3], ",") {
			if name, _, _ := strings.Cut(l, "="); name != "" {
				labels = append(labels, name)
			}
		}
		out[m[1]] = labels
	}
	return out
}

package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Runtime registers what every binary tells of itself: its process, the Go runtime, and its version as NAME_build_info.
func Runtime(reg prometheus.Registerer, name, version string) {
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	info := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: name, Name: "build_info", Help: "1, with the version of the binary.", ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	reg.MustRegister(info)
}

// Handler serves what a registry has. before is called ahead of each scrape; it may be nil.
func Handler(reg *prometheus.Registry, before func()) http.Handler {
	serve := promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg, EnableOpenMetrics: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before()
		}
		serve.ServeHTTP(w, r)
	})
}

package main

import (
	"net/http"
	"net/http/pprof"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/server"
)

// adminPages are what `ebb serve --http` shows of a service: /metrics, and
// /debug/pprof/ if profiles is set.
func adminPages(svc *command.Service, profiles bool) []server.Page {
	pages := []server.Page{{Path: "/metrics", Title: "for Prometheus", Handler: metricsHandler(svc)}}
	if !profiles {
		return pages
	}
	return append(pages,
		server.Page{Path: "/debug/pprof/", Title: "profiles of the process", Handler: http.HandlerFunc(pprof.Index)},
		server.Page{Path: "/debug/pprof/cmdline", Title: "its command line", Handler: http.HandlerFunc(pprof.Cmdline)},
		server.Page{Path: "/debug/pprof/profile", Title: "where it spends 30 seconds", Handler: http.HandlerFunc(pprof.Profile)},
		server.Page{Path: "/debug/pprof/symbol", Title: "names of addresses", Handler: http.HandlerFunc(pprof.Symbol)},
		server.Page{Path: "/debug/pprof/trace", Title: "what its scheduler does", Handler: http.HandlerFunc(pprof.Trace)})
}

// maxScrapes is how many scrapes are answered at a time: one, and others by
// whoever is curious. Beyond, they get 503.
const maxScrapes = 4

// metricsHandler answers scrapes, from a registry of its own: nothing that a
// library registers shows.
func metricsHandler(svc *command.Service) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(newServiceCollector(svc), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
}

// serviceCollector gives Prometheus what a service's meter reads.
type serviceCollector struct {
	meter *command.Meter

	mu    sync.Mutex // guards what follows
	descs map[string]*prometheus.Desc
}

func newServiceCollector(svc *command.Service) *serviceCollector {
	return &serviceCollector{meter: command.NewMeter(svc), descs: map[string]*prometheus.Desc{}}
}

// Describe implements prometheus.Collector. It says nothing: which metrics there
// are follows from what was done.
func (c *serviceCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *serviceCollector) Collect(out chan<- prometheus.Metric) {
	var all []command.Metric // first read, then sent: the reader may be slow
	c.meter.Read(func(m command.Metric) { all = append(all, m) })
	for i := range all {
		out <- c.convert(&all[i])
	}
}

func (c *serviceCollector) convert(m *command.Metric) prometheus.Metric {
	names, values := make([]string, 0, len(m.Labels)/2), make([]string, 0, len(m.Labels)/2)
	for i := 0; i < len(m.Labels); i += 2 {
		names, values = append(names, m.Labels[i]), append(values, m.Labels[i+1])
	}
	desc := c.desc(m.Name, m.Help, names)
	var x prometheus.Metric
	var err error
	switch m.Kind {
	case command.Distribution:
		x, err = prometheus.NewConstHistogram(desc, m.Count, m.Sum, m.Buckets, values...)
	case command.Counter:
		x, err = prometheus.NewConstMetric(desc, prometheus.CounterValue, m.Value, values...)
	default:
		x, err = prometheus.NewConstMetric(desc, prometheus.GaugeValue, m.Value, values...)
	}
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return x
}

// desc returns the description of the metrics of a name, whose help and labels'
// names are always the same.
func (c *serviceCollector) desc(name, help string, labels []string) *prometheus.Desc {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.descs[name]
	if d == nil {
		d = prometheus.NewDesc(name, help, labels, nil)
		c.descs[name] = d
	}
	return d
}

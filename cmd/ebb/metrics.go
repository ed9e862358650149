package main

import (
	"net/http"
	"net/http/pprof"

	"github.com/ebbdb/ebb/internal/adminhttp"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/promtext"
)

// adminPages are what `ebb serve --http` shows of a service: /metrics, and
// /debug/pprof/ if profiles is set.
func adminPages(svc *command.Service, profiles bool) []adminhttp.Page {
	pages := []adminhttp.Page{{Path: "/metrics", Title: "for Prometheus", Handler: promtext.Handler(command.NewMeter(svc).Read)}}
	if !profiles {
		return pages
	}
	return append(pages,
		adminhttp.Page{Path: "/debug/pprof/", Title: "profiles of the process", Handler: http.HandlerFunc(pprof.Index)},
		adminhttp.Page{Path: "/debug/pprof/cmdline", Title: "its command line", Handler: http.HandlerFunc(pprof.Cmdline)},
		adminhttp.Page{Path: "/debug/pprof/profile", Title: "where it spends 30 seconds", Handler: http.HandlerFunc(pprof.Profile)},
		adminhttp.Page{Path: "/debug/pprof/symbol", Title: "names of addresses", Handler: http.HandlerFunc(pprof.Symbol)},
		adminhttp.Page{Path: "/debug/pprof/trace", Title: "what its scheduler does", Handler: http.HandlerFunc(pprof.Trace)})
}

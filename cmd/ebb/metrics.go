package main

import (
	"net/http"
	"net/http/pprof"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/promtext"
	"github.com/ebbdb/ebb/server"
)

// adminPages are what `ebb serve --http` shows of a service: /metrics, and
// /debug/pprof/ if profiles is set.
func adminPages(svc *command.Service, profiles bool) []server.Page {
	pages := []server.Page{{Path: "/metrics", Title: "for Prometheus", Handler: promtext.Handler(command.NewMeter(svc).Read)}}
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

package main

import (
	"net/http"
	"net/http/pprof"

	"github.com/ebbdb/ebb/internal/adminhttp"
	"github.com/ebbdb/ebb/internal/config"
)

// profiles returns the pages that the directive http-pprof adds to those of `ebb serve --http`. They are in this
// package because an import of net/http/pprof registers them in the default mux of the whole program.
func profiles(cfg *config.Set) []adminhttp.Page {
	if !cfg.Bool("http-pprof") {
		return nil
	}
	return []adminhttp.Page{
		{Path: "/debug/pprof/", Title: "profiles of the process", Handler: http.HandlerFunc(pprof.Index)},
		{Path: "/debug/pprof/cmdline", Title: "its command line", Handler: http.HandlerFunc(pprof.Cmdline)},
		{Path: "/debug/pprof/profile", Title: "where it spends 30 seconds", Handler: http.HandlerFunc(pprof.Profile)},
		{Path: "/debug/pprof/symbol", Title: "names of addresses", Handler: http.HandlerFunc(pprof.Symbol)},
		{Path: "/debug/pprof/trace", Title: "what its scheduler does", Handler: http.HandlerFunc(pprof.Trace)},
	}
}

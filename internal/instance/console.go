package instance

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/ebbdb/ebb/console"
	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/internal/adminhttp"
	"github.com/ebbdb/ebb/internal/config"
)

// listenAdmin binds the address of the directive http. It returns nil if there is none. connections limits the open
// connections; 0: the default.
func (in *Instance) listenAdmin(cfg *config.Set, log *slog.Logger, connections int) (*adminhttp.Admin, error) {
	addr := adminhttp.AdminAddr(cfg.String("http"))
	if addr == "" {
		return nil, nil
	}
	o := adminhttp.Options{Hosts: strings.Fields(cfg.String("http-hosts")), Log: log, Connections: connections}
	if cfg.Bool("http-tls") {
		files, err := in.openTLS(cfg, log, certificate)
		if err != nil {
			return nil, err
		}
		o.TLS = files.certificateOnly()
		o.TLS.MinVersion = max(o.TLS.MinVersion, tls.VersionTLS12) // HTTP/2 requires it
	}
	return adminhttp.ListenAdmin(addr, o)
}

// openConsole opens the console, unless http-console is no, and serves it from now on, even while the server loads.
func (in *Instance) openConsole(cfg *config.Set, log *slog.Logger) (err error) {
	mode := cfg.String("http-console")
	if in.admin == nil || mode == "no" {
		return nil
	}
	host, _, _ := net.SplitHostPort(adminhttp.AdminAddr(cfg.String("http"))) // no error: the address is bound
	data := in.Conn()                                                        // for embed.Of; the console opens its own
	in.console, err = console.New(embed.Of(data), console.Options{
		Label:      cfg.String("http-console-label"),
		ReadOnly:   cfg.Bool("http-console-read-only"),
		HideValues: !cfg.Bool("http-console-values"),
		Logger:     log,
		Hosts:      append(strings.Fields(cfg.String("http-hosts")), host),
		LocalOnly:  mode == "local",
	})
	if err = errors.Join(err, data.Close()); err != nil {
		return err
	}
	page := adminhttp.Page{Path: "/console/", Title: "the console", Handler: http.StripPrefix("/console", in.console), Home: true,
		Methods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete}}
	in.pages = append(in.pages, page)
	in.admin.Loading(page)
	return nil
}

// closeConsole ends the console's streams and requests.
func (in *Instance) closeConsole() {
	if in.console != nil {
		_ = in.console.Close() // the error is always nil
	}
}

package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/ebbdb/ebb/internal/config"
)

// manager tells the service manager what the server does. One that is not told is nil.
type manager struct{ log *slog.Logger }

// supervised reports whether systemd has started this program and waits for its word
// (Type=notify in the unit), and the directive supervised says that it is told.
func supervised(cfg *config.Set) bool {
	asked := cfg.String("supervised")
	return (asked == "systemd" || asked == "auto") && os.Getenv("NOTIFY_SOCKET") != ""
}

// managed returns who is told. Upstart no longer exists, and is not.
func managed(cfg *config.Set, log *slog.Logger) *manager {
	if supervised(cfg) {
		return &manager{log}
	}
	if asked := cfg.String("supervised"); asked == "systemd" || asked == "upstart" {
		log.Warn("the service manager is not told when the server is ready: it is not systemd, or its unit has no Type=notify", "supervised", asked)
	}
	return nil
}

// loads says that the server listens, and loads.
func (m *manager) loads() { m.tell("STATUS=Loading the dataset\n") }

// ready says that the data is there. A unit that waits for it has started.
func (m *manager) ready() { m.tell("STATUS=Ready to accept connections\n" + daemon.SdNotifyReady) }

// stops says that the end has begun.
func (m *manager) stops() { m.tell("STATUS=Writing out the last replies\n" + daemon.SdNotifyStopping) }

// tell sends a state. That it does not arrive is no reason to end.
func (m *manager) tell(state string) {
	if m == nil {
		return
	}
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn("the service manager could not be told", "state", fmt.Sprintf("%q", state), "error", err)
	}
}

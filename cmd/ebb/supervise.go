package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/ebbdb/ebb/internal/config"
)

// manager reports the server's state to the service manager. It is nil if there is none to notify.
type manager struct{ log *slog.Logger }

// supervised reports whether systemd has started this program and waits for its notification
// (Type=notify in the unit), and the directive supervised asks for it.
func supervised(cfg *config.Set) bool {
	by := cfg.String("supervised")
	return (by == "systemd" || by == "auto") && os.Getenv("NOTIFY_SOCKET") != ""
}

// managed returns the service manager to notify. ebb does not notify Upstart, which no
// longer exists.
func managed(cfg *config.Set, log *slog.Logger) *manager {
	if supervised(cfg) {
		return &manager{log}
	}
	if by := cfg.String("supervised"); by == "systemd" || by == "upstart" {
		log.Warn("the service manager is not notified when the server is ready: it is not systemd, or its unit has no Type=notify", "supervised", by)
	}
	return nil
}

// loads reports that the server listens and loads its data.
func (m *manager) loads() { m.tell("STATUS=Loading the dataset\n") }

// ready reports that the data is loaded. A unit with Type=notify has then started.
func (m *manager) ready() { m.tell("STATUS=Ready to accept connections\n" + daemon.SdNotifyReady) }

// stops reports that the server is ending.
func (m *manager) stops() { m.tell("STATUS=Writing out the last replies\n" + daemon.SdNotifyStopping) }

// tell sends a state. If it cannot be sent, the server logs that and continues.
func (m *manager) tell(state string) {
	if m == nil {
		return
	}
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn("the service manager could not be notified", "state", fmt.Sprintf("%q", state), "error", err)
	}
}

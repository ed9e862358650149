package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/engine"
)

// manager reports the server's state to the service manager, as sd_notify(3) describes. It is nil if there is no
// service manager to notify. While the server loads, and while systemd watches it, a goroutine of the manager sends
// reports; ready and stops end it.
type manager struct {
	log    *slog.Logger
	status string             // the STATUS of a server that is ready
	cancel context.CancelFunc // nil: no goroutine
	wg     sync.WaitGroup
}

// Reports during a load. Each asks systemd for more time than passes until the report after the next.
const (
	loadReports = time.Second
	loadExtends = 30 * time.Second
)

// supervised reports whether systemd has started this program and waits for its notification (Type=notify in the
// unit), and the directive supervised allows it.
func supervised(cfg *config.Set) bool {
	by := cfg.String("supervised")
	return (by == "systemd" || by == "auto") && os.Getenv("NOTIFY_SOCKET") != ""
}

// managed returns the service manager to notify. ebb does not notify Upstart, which no
// longer exists.
func managed(cfg *config.Set, log *slog.Logger) *manager {
	if supervised(cfg) {
		return &manager{log: log}
	}
	if by := cfg.String("supervised"); by == "systemd" || by == "upstart" {
		log.Warn("the service manager is not notified when the server is ready: it is not systemd, or its unit has no Type=notify",
			"supervised", by)
	}
	return nil
}

// loads reports each second that the server listens and loads its data, and its progress. Each report extends the
// time that the unit allows for the start.
func (m *manager) loads(state func() durable.Info) {
	m.tell("STATUS=Loading the dataset")
	m.run(loadReports, func(context.Context) {
		i := state()
		if !i.Loading {
			return
		}
		share := 0.0
		if i.LoadingTotal > 0 {
			share = 100 * float64(i.LoadingLoaded) / float64(i.LoadingTotal)
		}
		m.tell(fmt.Sprintf("STATUS=Loading the dataset: %.0f %% of %d MB, about %d s left", share, i.LoadingTotal>>20, i.LoadingETA),
			fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", loadExtends.Microseconds()))
	})
}

// ready reports that the data is loaded, and the number of keys; a unit with Type=notify then counts as started. If
// the unit has WatchdogSec, the manager calls alive twice in each such interval, and notifies the watchdog if alive
// returns no error.
func (m *manager) ready(keys func() int, alive func(context.Context) error) {
	if m == nil {
		return
	}
	m.stopTicker()
	m.status = fmt.Sprintf("STATUS=Ready to accept connections; keys after the start: %d", keys())
	m.tell(m.status, daemon.SdNotifyReady)
	m.watch(alive)
}

// keysIn returns a function that counts the keys of all databases. It locks one shard at a time.
func keysIn(db *engine.DB) func() int {
	return func() (keys int) {
		for i := range db.Databases() {
			keys += db.Keyspace(i).Keys
		}
		return keys
	}
}

// reloads reports that the server reloads its files, calls reload, and reports that the server is ready, with
// reload's error in the status. The time in the first report is that of the kernel's monotonic clock, which systemd
// uses too.
func (m *manager) reloads(reload func() error, alive func(context.Context) error) {
	m.stopTicker()
	m.tell(append(monotonic(), daemon.SdNotifyReloading)...)
	err := reload()
	if m == nil {
		return
	}
	status := m.status
	if err != nil {
		status += "; the last reload failed: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	m.tell(status, daemon.SdNotifyReady)
	m.watch(alive)
}

// watch starts the notifications for the unit's watchdog, if it has one.
func (m *manager) watch(alive func(context.Context) error) {
	if m == nil {
		return
	}
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		m.log.Warn("the service manager's watchdog is not served", "error", err)
	}
	if limit <= 0 {
		return
	}
	m.run(limit/2, func(ctx context.Context) {
		within, cancel := context.WithTimeoutCause(ctx, limit/4, errors.New("the check took more than a quarter of WatchdogSec"))
		defer cancel()
		if err := alive(within); err != nil {
			if ctx.Err() == nil {
				m.log.Error("the service manager's watchdog is not notified", "error", err)
			}
			return
		}
		m.tell(daemon.SdNotifyWatchdog)
	})
}

// stops reports that the server ends.
func (m *manager) stops() {
	m.stopTicker()
	m.tell("STATUS=Writing out the last replies", daemon.SdNotifyStopping)
}

// run calls report after each pause, in a goroutine that stopTicker ends.
func (m *manager) run(pause time.Duration, report func(context.Context)) {
	if m == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	m.wg.Go(func() {
		ticks := time.NewTicker(pause)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				report(ctx)
			}
		}
	})
}

// stopTicker ends the goroutine of run, if there is one.
func (m *manager) stopTicker() {
	if m != nil && m.cancel != nil {
		m.cancel()
		m.wg.Wait()
		m.cancel = nil
	}
}

// tell sends assignments. If that fails, it only logs the error.
func (m *manager) tell(assignments ...string) {
	if m == nil {
		return
	}
	state := strings.Join(assignments, "\n")
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn("cannot notify the service manager", "state", fmt.Sprintf("%q", state), "error", err)
	}
}

// Package driverutil has functions for authors of a conn.Driver. Programs that only use a Conn need none of
// them.
//
//	arguments ── ArgText ──> what a Driver sends
//	INFO, COMMAND INFO ── CapabilitiesOf ──> Driver.Capabilities
//	a call that failed ── Unavailable, Ended, PendingReply, NoReply ──> its error
//
// Start reading at conn.Driver.
package driverutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/drivers"
	"github.com/ebbdb/ebb/internal/routing"
)

// ArgText returns the text of an argument, as Drivers send it: strings and bytes unchanged, integers in
// decimal, floats in the shortest form that reads back the same, booleans as 1 and 0, and otherwise the
// result of MarshalBinary or MarshalText. It returns conn.ErrArgument for a type without a text, and for
// durations and times: their unit depends on the command. It allocates for all types except strings.
func ArgText(a any) (string, error) { return drivers.ArgText(a) }

// Unavailable returns the error of a Driver whose backend did not reply. If the context has ended, the error
// is the context's. Otherwise it removes context errors from the chain: package net adds one if its own
// timeout ends a dial.
func Unavailable(ctx context.Context, doing string, err error) error {
	if c := ctx.Err(); c != nil {
		return fmt.Errorf("ebb: %s: %w", doing, c)
	}
	if d, ok := ctx.Deadline(); ok && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)) &&
		time.Until(d) <= 0 {
		return fmt.Errorf("ebb: %s: %w", doing, context.DeadlineExceeded) // the context's own timer is late
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("ebb: %s: %w: %v", doing, conn.ErrUnavailable, err) //nolint:errorlint // hidden on purpose
	}
	return fmt.Errorf("ebb: %s: %w: %w", doing, conn.ErrUnavailable, err)
}

// Ended returns the error of a call whose context has ended: before it began, or while it
// waited.
func Ended(ctx context.Context, doing string) error { return drivers.Ended(ctx, doing) }

// PendingReply returns err, the error of a call that ended before the reply to its command arrived. It lets
// the code that takes back the call's effects wait for that reply. A Driver uses it if the command may run
// after the commands of later calls, because these use other connections. reply waits for the reply; ok is
// false if the reply can no longer arrive, or if its ctx has ended. reply may be called more than once.
func PendingReply(err error, reply func(ctx context.Context) (v conn.Value, ok bool)) error {
	return drivers.PendingReply(err, reply)
}

// NoReply returns err, the error of a call whose command was sent and got no reply: its connection has ended,
// or its time limit has passed. The command may still reach the server, because a proxy can close a
// connection before it has passed on all data. again must run a function some time later, in a goroutine that
// the Driver's Close waits for; life ends with the Driver.
func NoReply(err error, again func(fn func(life context.Context))) error {
	return drivers.NoReply(err, again)
}

// CapabilitiesOf derives the capabilities from two replies: the text of INFO server, which may be empty, and
// the reply to COMMAND INFO HPEXPIRE FCALL SSUBSCRIBE LOCK.ACQUIRE, which may be an error. A user may have
// the right to only one of them. LOCK.ACQUIRE identifies ebb if the text of INFO is empty.
func CapabilitiesOf(infoServer string, commands conn.Value) conn.Capabilities {
	caps := parseInfo(infoServer)
	e := commands.Elems
	has := func(i int) bool { return i < len(e) && len(e[i].Elems) > 0 }
	caps.HashFieldTTL = has(routing.ProbeHashFieldTTL)
	caps.Functions, caps.ShardedPubSub = has(routing.ProbeFunctions), has(routing.ProbeShardedPubSub)
	if caps.Native = caps.Native || has(routing.ProbeNative); caps.Native {
		caps.Server, caps.HashFieldTTL, caps.Functions, caps.ShardedPubSub = "ebb", true, true, true
	}
	return caps
}

// parseInfo reads the section server of INFO.
func parseInfo(text string) conn.Capabilities {
	caps := conn.Capabilities{Server: "redis"}
	for line := range strings.Lines(text) {
		key, val, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "redis_version":
			caps.Version = cmp.Or(caps.Version, val)
		case "redis_mode", "server_mode":
			caps.Cluster = val == "cluster"
		case "valkey_version":
			caps.Server, caps.Version = "valkey", val
		case "ebb_version":
			caps.Native, caps.Server = true, "ebb"
		}
	}
	return caps
}

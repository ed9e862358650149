package voter

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// logger writes raft's messages to the server's log, one level lower: raft's errors are warnings there, because they
// tell of a peer that does not answer or an election that was lost. Debug messages of raft are dropped.
type logger struct{ *slog.Logger }

// level maps a level of raft's log to one of the server's log. It reports false for messages to drop.
func level(l hclog.Level) (slog.Level, bool) {
	switch l {
	case hclog.Error:
		return slog.LevelWarn, true
	case hclog.Warn:
		return slog.LevelInfo, true
	case hclog.Info:
		return slog.LevelDebug, true
	}
	return 0, false
}

// Log implements hclog.Logger.
func (l logger) Log(at hclog.Level, text string, args ...any) {
	to, ok := level(at)
	if !ok || !l.Enabled(context.Background(), to) {
		return
	}
	args = append([]any(nil), args...)
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	l.Logger.Log(context.Background(), to, "raft: "+text, args...)
}

// The levels of hclog.Logger.

func (l logger) Trace(text string, args ...any) { l.Log(hclog.Trace, text, args...) }
func (l logger) Debug(text string, args ...any) { l.Log(hclog.Debug, text, args...) }
func (l logger) Info(text string, args ...any)  { l.Log(hclog.Info, text, args...) }
func (l logger) Warn(text string, args ...any)  { l.Log(hclog.Warn, text, args...) }
func (l logger) Error(text string, args ...any) { l.Log(hclog.Error, text, args...) }

func (l logger) is(at hclog.Level) bool {
	to, ok := level(at)
	return ok && l.Enabled(context.Background(), to)
}

func (l logger) IsTrace() bool { return false }
func (l logger) IsDebug() bool { return false }
func (l logger) IsInfo() bool  { return l.is(hclog.Info) }
func (l logger) IsWarn() bool  { return l.is(hclog.Warn) }
func (l logger) IsError() bool { return l.is(hclog.Error) }

// GetLevel implements hclog.Logger.
func (l logger) GetLevel() hclog.Level {
	for _, at := range []hclog.Level{hclog.Info, hclog.Warn, hclog.Error} {
		if l.is(at) {
			return at
		}
	}
	return hclog.Off
}

// SetLevel does nothing: the server's log sets the level.
func (l logger) SetLevel(hclog.Level) {}

// Raft uses one logger, so names are ignored.

func (l logger) ImpliedArgs() []any             { return nil }
func (l logger) With(args ...any) hclog.Logger  { return logger{l.Logger.With(args...)} }
func (l logger) Name() string                   { return "raft" }
func (l logger) Named(string) hclog.Logger      { return l }
func (l logger) ResetNamed(string) hclog.Logger { return l }
func (l logger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.Handler(), slog.LevelDebug)
}
func (l logger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return io.Discard }

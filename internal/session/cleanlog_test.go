package session_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// loggedTexts keeps the texts that a service logs.
type loggedTexts struct {
	mu    sync.Mutex // guards the texts
	texts []string
}

func (l *loggedTexts) Enabled(context.Context, slog.Level) bool { return true }
func (l *loggedTexts) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *loggedTexts) WithGroup(string) slog.Handler            { return l }

func (l *loggedTexts) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		l.texts = append(l.texts, a.Value.String())
		return true
	})
	return nil
}

// A program's log handler may write texts unescaped: a line break would start a log line that the server
// never wrote.
func TestTextsOfClientsAreOneLineOfTheLog(t *testing.T) {
	const forged = "127.0.0.1\r\nforged\x1b[2J\xff"
	var log loggedTexts
	var hooks session.Hooks
	db := engine.Open(engine.Options{Clock: clock.NewManual(time.Unix(1_700_000_000, 0)), Hooks: &hooks})
	defer db.Close()
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Logger: slog.New(&log)}, &hooks)
	if err != nil {
		t.Fatal(err)
	}
	e := services.Connect(s, "tcp", "127.0.0.1:1")
	if got := e.Send("REPLICAOF", forged, "1"); got != "+OK\r\n" {
		t.Errorf("REPLICAOF: %q", got)
	}
	e.Send("REPLICAOF", "NO", "ONE")
	e.Send("EVAL", "redis.log(3, KEYS[1])", "1", forged)
	e.Session.Closed(io.EOF)
	s.Close()
	named := 0
	for _, text := range log.texts {
		if strings.ContainsFunc(text, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
			t.Errorf("the log has %q", text)
		}
		if strings.Contains(text, "forged") {
			named++
		}
	}
	if named < 2 {
		t.Errorf("the test tests nothing: %q", log.texts)
	}
}

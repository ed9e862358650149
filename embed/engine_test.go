package embed_test

import (
	"errors"
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/server"
)

func TestAnEngineLeadsToItsOtherDatabases(t *testing.T) {
	c, err := ebb.Open(testContext(t), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	e := ebb.EngineOf(c)
	other, err := e.Conn(3)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Set(t.Context(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	if n, err := e.Conn(16); !errors.Is(err, ebb.ErrArgument) {
		t.Error(n, err)
	}
	if ebb.EngineOf(other) != e || embed.Database(other) != 3 {
		t.Error("the Conn is not one of the engine's database 3")
	}
	if v, err := c.Get(t.Context(), "k"); !errors.Is(err, ebb.ErrNil) {
		t.Error("database 0 has the key", v, err)
	}
	if err := c.Close(); err != nil { // the engine lasts until the last Conn
		t.Fatal(err)
	}
	if v, err := other.Get(t.Context(), "k"); v != "v" || err != nil {
		t.Error(v, err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Conn(0); !errors.Is(err, ebb.ErrClosed) {
		t.Error(err)
	}
	var remote *embed.Engine
	if _, err := remote.Conn(0); !errors.Is(err, ebb.ErrRemote) {
		t.Error(err)
	}
}

func TestTheEngineOfAServerIsNotClosedByItsConns(t *testing.T) {
	s, err := server.Start(t.Context(), server.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Conn()
	other, err := ebb.EngineOf(c).Conn(1)
	if err != nil {
		t.Fatal(err)
	}
	must(t, errors.Join(c.Close(), other.Close()))
	c = s.Conn()
	if err := c.Set(t.Context(), "k", "v"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(c.Close(), s.Shutdown(t.Context())); err != nil {
		t.Error(err)
	}
}

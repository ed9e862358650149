package luafuzz

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/ebbdb/ebb/internal/script"
	"github.com/ebbdb/ebb/internal/wire"
)

// eval is the machine of package script: what EVAL runs here. Programs share its
// State, as they do on redis-server.
type eval struct {
	engine *script.Engine
	script *script.Script
}

func newEval(t *testing.T) eval {
	e := script.New(script.Options{MemoryLimit: 1 << 28, Version: "7.0.15"})
	s, err := e.Load([]byte(harness + evalHarness))
	if err != nil {
		t.Fatal(err)
	}
	return eval{e, s}
}

func (e eval) Close() {}

func (e eval) Run(requests []string) ([]string, error) {
	args := make([][]byte, len(requests))
	for i, r := range requests {
		args[i] = []byte(r)
	}
	out := wire.Writer{Proto: 2}
	if err := e.engine.Run(e.script, &host{}, nil, args, &out); err != nil {
		return nil, err
	}
	v, err := wire.ReadValue(bufio.NewReader(bytes.NewReader(out.Buf)))
	if err != nil {
		return nil, err
	}
	answers := make([]string, len(v.Elems))
	for i, x := range v.Elems {
		answers[i] = x.Str
	}
	return answers, nil
}

// host has no commands.
type host struct{ ticks int }

func (*host) Call([][]byte) []byte           { return []byte("-ERR no commands here\r\n") }
func (*host) SetProto(int)                   {}
func (*host) SetReplication(_, _ bool)       {}
func (*host) Allowed([][]byte) (bool, error) { return true, nil }
func (*host) Log(int, string)                {}
func (*host) CountError(string, bool)        {}

// Tick ends programs that take seconds: it is called every few thousand steps.
func (h *host) Tick() error {
	if h.ticks++; h.ticks > mostSteps/1000 {
		return errSteps
	}
	return nil
}

func TestRandomProgramsDoInScriptsAsOnRedis(t *testing.T) { scriptsAgainstRedis(t, NewProgram) }
func TestRandomExpressionsYieldInScriptsAsOnRedis(t *testing.T) {
	scriptsAgainstRedis(t, NewExpression)
}

func TestRandomCallsOfLibrariesYieldAsOnRedis(t *testing.T) { scriptsAgainstRedis(t, NewScript) }

// scriptsAgainstRedis compares what is a script's own as well: the globals, pcall.
func scriptsAgainstRedis(t *testing.T, generate func(seed uint64) *Program) {
	c := campaign{ours: newEval(t), oracle: startRedis(t), name: "redis-server", mode: Run}
	c.run(t, generate)
}

package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/wire"
)

// This file connects the commands with package durable, which keeps the data in files. durable.Keeper runs
// logged commands on the service, reads the code of functions and the name of the stream from it, and tells
// it when to refuse requests.

// FileOptions select the place of the data, in addition to the configuration.
type FileOptions struct {
	Dir         string  // replaces the directive dir
	AcceptClock bool    // start even if the clock is far behind the files
	FS          disk.FS // replaces the system's; for tests
}

// OpenFiles locks the directory of the data. The caller calls Load next. Before that, and if the
// configuration names no directory, the data is only in memory.
func (s *Service) OpenFiles(o FileOptions) error {
	d := s.keeperOptions()
	d.Dir, d.AcceptClock, d.FS = o.Dir, o.AcceptClock, o.FS
	d.Memory = o.Dir == "" && !s.Config.Durable()
	d.Shared = o.Dir == "" && s.Config.Shares()
	d.TakeRDB = !s.Config.FromFile() // without a configuration file, appendonly yes does not have Redis's meaning
	k, err := durable.Open(d)
	if err != nil {
		return err
	}
	s.keeper = k
	s.gates.set(gateLoading, !d.Memory)
	return nil
}

// Load loads the data, which may take long: clients get LOADING until it returns. Then the server records
// changes according to the configuration, and a replica follows its master. Load ends early when ctx ends.
func (s *Service) Load(ctx context.Context) error {
	if err := s.keeper.Load(ctx); err != nil {
		return err
	}
	if o := s.keeper.Origin(); o.ID != "" {
		s.repl.Restore(o.ID, o.Offset, o.DB)
	}
	if err := s.keeper.Start(); err != nil {
		return err
	}
	s.repl.Start()
	return nil
}

// Keeper returns the durable.Keeper, which keeps the data in files.
func (s *Service) Keeper() *durable.Keeper { return s.keeper }

func (s *Service) keeperOptions() durable.Options {
	return durable.Options{
		DB: s.DB, Config: s.Config, Logger: s.Log, Version: admin.RedisVersion,
		NewApplier:    s.newApplier,
		Route:         s.route,
		DumpFunctions: s.libraries,
		LoadFunction:  s.loadLibrary,
		DropFunctions: s.scripts.FlushLibraries,
		Origin: func() (id string, offset int64, db int) {
			id, _, _ = s.repl.Names()
			offset, db = s.DB.Log().Cut()
			return id, offset, db
		},
		SetLoading:   func(on bool) { s.gates.set(gateLoading, on) },
		RefuseWrites: func(reply string) { s.gates.refuseWrites(command.ReplyError(reply)) },
		Latency:      s.Latency,
		Replica:      s.repl.IsReplica,
	}
}

// libraries returns the code of all libraries of functions, by name.
func (s *Service) libraries() (code [][]byte) {
	for _, l := range s.scripts.Libraries() {
		code = append(code, []byte(l.Code))
	}
	return code
}

// loadLibrary loads a library from a file.
func (s *Service) loadLibrary(code []byte) error {
	a := s.newApplier()
	defer a.Close()
	return a.Apply([][]byte{[]byte("FUNCTION"), []byte("LOAD"), []byte("REPLACE"), code})
}

// rerun is a session that runs logged commands.
type rerun struct{ c *Session }

func (s *Service) newApplier() durable.Applier {
	c := s.NewSession(nil)
	c.replay = true
	c.setUser(s.acl.Super())
	return &rerun{c: c}
}

// Close implements durable.Applier.
func (a *rerun) Close() { a.c.Closed(nil) }

// Apply implements durable.Applier.
func (a *rerun) Apply(args [][]byte) error {
	c := a.c
	c.out.Buf = c.out.Buf[:0]
	what, err := a.applySafely(args)
	if err != nil {
		return err
	}
	if what == waiting {
		return errors.New("the command waits; a log has no such command")
	}
	if len(c.out.Buf) == 0 {
		return nil
	}
	switch kind := c.out.Buf[0]; {
	case kind == '-':
		return command.ReplyError(bytes.TrimRight(c.out.Buf[1:], "\r\n"))
	case kind == '*' && command.EqualFold(args[0], "EXEC"):
		v, err := wire.ReadValue(bufio.NewReader(bytes.NewReader(c.out.Buf)))
		if err != nil {
			return err
		}
		for _, e := range v.Elems {
			if err := e.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// route returns the key of a logged command that concerns exactly one key.
func (s *Service) route(args [][]byte) (key []byte, one bool) {
	spec, err := s.table.FindOwn(args)
	if err != nil || len(args) < 2 {
		return nil, false
	}
	if first, last, _ := spec.KeyRange(); first != 1 || last != 1 && len(args) > 2 || spec.Has(command.MovableKeys) {
		return nil, false
	}
	switch spec.Group {
	case command.GroupString, command.GroupHash, command.GroupList, command.GroupSet, command.GroupSortedSet,
		command.GroupStream, command.GroupGeneric:
		return args[1], true
	}
	return nil, false
}

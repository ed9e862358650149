// Package rdbtest reads payloads that real servers have dumped, for the tests of all packages that
// read such payloads.
package rdbtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Payload is a server's reply to DUMP, with the type and the items that the server reported for the
// value.
type Payload struct {
	Server string   `json:"-"` // redis70, redis80 or valkey81
	Name   string   // one server's payloads have different ones
	Dump   []byte   // as RESTORE takes it
	Kind   string   // as TYPE has it
	Want   []string // the items, byte for byte
}

// String names a payload among those of all servers.
func (p Payload) String() string { return p.Server + " " + p.Name }

// Payloads returns those of internal/rdb/testdata, which is in dir: of one server, or of
// all that a pattern matches, as "*" does.
func Payloads(t testing.TB, dir, server string) (all []Payload) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, server+".json"))
	if err != nil || len(files) == 0 {
		t.Fatal("there are no payloads", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var some []Payload
		if err := json.Unmarshal(b, &some); err != nil {
			t.Fatal(err)
		}
		for _, p := range some {
			p.Server = strings.TrimSuffix(filepath.Base(f), ".json")
			for i, w := range p.Want {
				p.Want[i] = latin1(w)
			}
			all = append(all, p)
		}
	}
	return all
}

// latin1 turns characters, each of which stands for a byte, into those bytes.
func latin1(s string) string {
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

// Package history records what several clients of a service do at a time, and checks that their replies are those of some order
// of their operations: that the operations are linearizable.
//
//	clients ─ Record ─ Client.Note ─ []porcupine.Operation ─ Check ─ a model
//
// The tests of package commands have a model for each type; the one of strings is here, because the tests of groups use it too.
// Start reading at RecordCommands.
package history

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/resp"
)

// Sizes of a history: the checker's work grows fast with the number of clients
// that overlap.
const (
	Clients = 4
	Ops     = 40
	Rounds  = 20
)

// Keys are the keys of a Keyspace.
var Keys = []string{"a", "b", "c"}

// Atom is one operation of a history: a command, or the commands of a MULTI or of
// a script, which take place at one instant. Its output is one reply for each.
type Atom [][]string

// Keyspace is the model's state: the value of each key, "" for none.
type Keyspace [3]string

// Apply runs a command on the model and returns the reply.
func (k *Keyspace) Apply(args []string) string {
	v := &k[strings.IndexByte("abc", args[1][0])]
	switch args[0] {
	case "SET":
		*v = args[2]
		return "OK"
	case "GET":
		return *v
	case "DEL":
		there := *v != ""
		*v = ""
		if there {
			return "1"
		}
		return "0"
	case "APPEND":
		*v += args[2]
		return strconv.Itoa(len(*v))
	}
	n, err := strconv.Atoi(*v) // INCR
	if *v != "" && err != nil {
		return command.ErrNotInteger.Error()
	}
	*v = strconv.Itoa(n + 1)
	return *v
}

// Strings is the model of the string commands that RandomCommand returns: its state is a Keyspace, its inputs are Atoms.
var Strings = porcupine.Model{
	Init: func() any { return Keyspace{} },
	Step: func(state, input, output any) (bool, any) {
		k := state.(Keyspace)
		var replies []string
		for _, args := range input.(Atom) {
			replies = append(replies, k.Apply(args))
		}
		return strings.Join(replies, "\x00") == output.(string), k
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%q -> %q", input, output) },
}

// RandomCommand returns a string command on one of Keys.
func RandomCommand(rng *rand.Rand) []string {
	key := Keys[rng.IntN(len(Keys))]
	switch rng.IntN(6) {
	case 0:
		return []string{"SET", key, strconv.Itoa(1 + rng.IntN(9))}
	case 1:
		return []string{"DEL", key}
	case 2:
		return []string{"APPEND", key, strconv.Itoa(1 + rng.IntN(9))}
	case 3:
		return []string{"INCR", key}
	}
	return []string{"GET", key}
}

// Flat returns a reply as text, an array's elements between spaces.
func Flat(v resp.Value) string {
	if v.Elems == nil {
		if v.Kind == resp.KindArray {
			return ""
		}
		return v.String()
	}
	parts := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		parts[i] = Flat(e)
	}
	return strings.Join(parts, " ")
}

// run executes an atom in a session.
func (a Atom) run(s *session.Session) string {
	do := func(args []string) string {
		b := make([][]byte, len(args))
		for i, x := range args {
			b[i] = []byte(x)
		}
		return Flat(s.Do(b...))
	}
	var got resp.Value
	switch {
	case len(a) == 1:
		return do(a[0])
	case len(a)%2 == 0:
		do([]string{"MULTI"})
		for _, args := range a {
			do(args)
		}
		got = s.Do([]byte("EXEC"))
	default:
		req := [][]byte{[]byte("EVAL"), []byte(runAll), []byte("0")}
		for _, args := range a {
			req = append(req, strconv.AppendInt(nil, int64(len(args)), 10))
			for _, x := range args {
				req = append(req, []byte(x))
			}
		}
		got = s.Do(req...)
	}
	var replies []string
	for _, v := range got.Elems {
		replies = append(replies, Flat(v))
	}
	return strings.Join(replies, "\x00")
}

// runAll is a script that runs the commands in its arguments, each behind the
// number of its own.
const runAll = `
local replies, i = {}, 1
while ARGV[i] do
  local n = tonumber(ARGV[i])
  replies[#replies + 1] = redis.pcall(unpack(ARGV, i + 1, i + n))
  i = i + n + 1
end
return replies`

// RecordCommands lets clients run random operations on one engine, each in a
// session of its own, and notes when each began and ended.
func RecordCommands(t *testing.T, seed uint64, random func(*rand.Rand) []string) []porcupine.Operation {
	t.Helper()
	db := engine.Open(engine.Options{Shards: 2}) // few, so that clients meet
	defer db.Close()
	svc, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer svc.Close()
	return Record(svc, seed, func(c *Client) {
		for range Ops {
			a := Atom{random(c.Rand)}
			for len(a) < 4 && c.Rand.IntN(2) == 0 {
				a = append(a, random(c.Rand))
			}
			c.Note(a, func() any { return a.run(c.Session) })
		}
	})
}

// Client is a client that notes its operations.
type Client struct {
	*session.Session
	ID      int        // from 0
	Rand    *rand.Rand // its own
	began   time.Time  // of the history
	history []porcupine.Operation
}

// Note makes an operation of the history: do returns its output.
func (c *Client) Note(input any, do func() any) (output any) {
	op := porcupine.Operation{ClientId: c.ID, Input: input, Call: int64(time.Since(c.began))}
	op.Output = do()
	op.Return = int64(time.Since(c.began))
	c.history = append(c.history, op)
	return op.Output
}

// Record runs as many clients of a service as Clients says at a time, each in a session of its own, and returns what they have
// noted.
func Record(svc *session.Service, seed uint64, run func(c *Client)) (history []porcupine.Operation) {
	began := time.Now()
	var clients [Clients]Client
	var all sync.WaitGroup
	for id := range clients {
		all.Go(func() {
			c := &clients[id]
			*c = Client{Session: svc.NewSession(nil), ID: id, Rand: rand.New(rand.NewPCG(seed, uint64(id))), began: began}
			defer c.Closed(nil)
			run(c)
		})
	}
	all.Wait()
	for _, c := range clients {
		history = append(history, c.history...)
	}
	return history
}

// Check fails the test, and returns false, if no order of the operations explains their outputs by the model.
func Check(t *testing.T, model porcupine.Model, history []porcupine.Operation) bool {
	t.Helper()
	switch porcupine.CheckOperationsTimeout(model, history, 20*time.Second) {
	case porcupine.Illegal:
		for _, op := range history {
			t.Logf("%d %9d-%9d %s", op.ClientId, op.Call, op.Return, model.DescribeOperation(op.Input, op.Output))
		}
		t.Error("no order of these operations explains their replies")
		return false
	case porcupine.Unknown:
		t.Log("a history was too hard to check in the time given")
	}
	return true
}

//go:build oracle

package crashtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
)

// oracleEnv names a newer server that is to be replicated, as a path and its
// arguments: Redis 8.0 or Valkey 8.1. By default none is, and the test is skipped.
const oracleEnv = "EBB_ORACLE_MASTER"

// TestANewerMasterIsReplicated replicates a server that is newer than what we are
// compared with otherwise: its hash fields have deadlines, its commands are ours.
func TestANewerMasterIsReplicated(t *testing.T) {
	path := os.Getenv(oracleEnv)
	if path == "" {
		t.Fatal(oracleEnv + " is to name a server program")
	}
	for _, m := range modes[:2] {
		t.Run(m.name, func(t *testing.T) {
			seed := draw.Seed(t, 0)
			c := newChain(t, []string{path, us}, m.args, seed)
			c.newer = true
			for round := range roundsOr(2) {
				n := c.hashFields()
				c.storm()
				c.quiet(round)
				c.sameFields()
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
				t.Logf("round %d: %d of 8 new commands are known; %d requests, %v", round, n, c.flow.n.Load(), c.proxies[0])
			}
		})
	}
}

// hashFields uses what is newer than 7.0, and returns how many of the commands the
// master knows.
func (c *chain) hashFields() (known int) {
	conn, err := dial(c.nodes[0].Addr())
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	for i := range 40 {
		k := fmt.Sprint("fields:", i)
		_, _ = conn.do("HSET", k, "a", "1", "b", "2", "c", "3", "d", "4")
		known = 0
		for _, line := range []string{
			"HPEXPIRE " + k + " " + strconv.Itoa(50+c.rnd.IntN(1000)) + " FIELDS 1 a", "HEXPIRE " + k + " 10000 FIELDS 2 b c",
			"HPERSIST " + k + " FIELDS 1 c", "HSETEX " + k + " PX 70000 FIELDS 2 e 5 f 6", "HGETEX " + k + " PX 90000 FIELDS 1 d",
			"HGETDEL " + k + " FIELDS 1 f",
			"HPEXPIREAT " + k + " 4102444800000 FIELDS 1 b", "SET if:" + k + " x PX 100000",
		} {
			if _, err := conn.do(strings.Fields(line)...); err == nil {
				known++
			}
		}
	}
	return known
}

// sameFields compares the deadlines of hash fields.
func (c *chain) sameFields() {
	t := c.t
	for i := range 40 {
		k := fmt.Sprint("fields:", i)
		args := []string{"HPEXPIRETIME", k, "FIELDS", "6", "a", "b", "c", "d", "e", "f"}
		conn, err := dial(c.nodes[0].Addr())
		if err != nil {
			t.Fatal(err)
		}
		v, err := conn.do(args...)
		_ = conn.Close()
		if err != nil {
			return // it has none
		}
		if w := ask(t, c.nodes[1], args...); fmt.Sprint(v) != fmt.Sprint(w) {
			t.Errorf("%s: deadlines of fields: %v, on the replica %v", k, v, w)
		}
	}
}

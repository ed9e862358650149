package migrate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// realURL starts a server program, and returns its URL.
func realURL(t *testing.T, program string, args ...string) string {
	t.Helper()
	return "redis://" + realserver.Start(t, program, append(args, "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0")...)
}

func TestRealServersMoveToEbb(t *testing.T) {
	for _, program := range []string{realserver.Redis7, realserver.Redis8, realserver.Valkey9} {
		for _, scan := range []bool{false, true} {
			name := program + " by replication"
			if scan {
				name = program + " by copying"
			}
			t.Run(name, func(t *testing.T) {
				from, to := realURL(t, program), startEbb(t)
				m, _ := migrating(t, Options{From: []string{from}, To: to})
				if found, err := m.Check(t.Context()); err != nil ||
					doctor.Worst(found) > map[string]doctor.Grade{realserver.Redis8: doctor.Look}[program] {
					t.Errorf("check: %v, %v", found, err)
				}
				moves(t, []string{from}, to, Options{Scan: scan, Pause: time.Minute}, from)
			})
		}
	}
}

func TestEbbMovesBackToRealServers(t *testing.T) {
	for _, program := range []string{realserver.Redis7, realserver.Valkey9} {
		t.Run(program, func(t *testing.T) {
			from, to := startEbb(t), realURL(t, program)
			c := open(t, from)
			fill(t, c, 300, true)
			w := write(t, from, "")
			w.rounds(t, 10)
			o := Options{From: []string{from}, To: to, Pause: time.Minute, Compare: true}
			for _, line := range []string{"LOCK.ACQUIRE lock me 100000", "RL.TAKE limiter 10 60000",
				"HPEXPIRE hash1 1000000 FIELDS 1 f", "SPEXPIRE set1 1000000 MEMBERS 2 1 word",
				"ZPEXPIRE zset1 1000000 MEMBERS 1 a", "LPEXPIRE list1 1000000 INDEXES 1 0", "EXPIRY RULE SET r MATCH k* TO events",
				"BF.ADD filter ann"} {
				c.run(t, line)
			}
			said, err := step(t, o, (*Migration).Back)
			if err == nil || !strings.Contains(err.Error(), "--accept-loss") || open(t, to).run(t, "DBSIZE").Int != 0 {
				t.Errorf("%v\n%s", err, said)
			}
			want := []string{"1 keys of type lock", "1 sets with deadlines of members (2 deadlines)",
				"1 sorted sets with deadlines of members (1 deadlines)",
				"1 lists with deadlines of elements (1 deadlines)", "1 expiry rules", "1 keys of type limiter", "1 Bloom filters"}
			if program == realserver.Redis7 {
				want = append(want, "1 hashes with deadlines of fields (1 deadlines)")
			} else if strings.Contains(said, "hashes") {
				t.Errorf("the target holds deadlines of fields:\n%s", said)
			}
			for _, line := range want {
				if !strings.Contains(said, "TO cannot hold "+line) {
					t.Errorf("no %q in:\n%s", line, said)
				}
			}
			o.AcceptLoss, o.Scan = true, true
			said, err = step(t, o, (*Migration).Back)
			const instead = "--scan was given: delete these keys, or move by replication"
			if err == nil || !strings.Contains(err.Error(), instead) || open(t, to).run(t, "DBSIZE").Int != 0 {
				t.Errorf("by copying: %v\n%s", err, said)
			}
			o.Scan = false
			if said, err = step(t, o, (*Migration).Back); err != nil || !strings.Contains(said, "Writes were held for ") {
				t.Errorf("%v\n%s", err, said)
			}
			v := Options{From: []string{from}, To: to, AcceptLoss: true}
			if said, err := step(t, v, (*Migration).Verify); err != nil {
				t.Errorf("%v\n%s", err, said)
			}
			if v := open(t, to).run(t, "SMEMBERS set1"); len(v.Elems) != 2 {
				t.Errorf("SMEMBERS set1: %v", v)
			}
			if _, err := step(t, Options{From: []string{to}, To: from}, (*Migration).Back); err == nil ||
				!strings.Contains(err.Error(), "exchange them?") {
				t.Errorf("back from redis-server to ebb: %v", err)
			}
		})
	}
}

func TestAClusterMovesIntoOneEbb(t *testing.T) {
	cluster := backends.NewCluster(t)
	to := startEbb(t)
	urls := cluster.Addrs()
	var masters []*client
	for i, addr := range urls {
		urls[i] = "redis://" + addr
		if open(t, urls[i]).run(t, "ROLE").Elems[0].Str == "master" {
			masters = append(masters, open(t, urls[i]))
		}
	}
	if len(masters) != 3 {
		t.Fatalf("%d masters", len(masters))
	}
	for i, c := range masters {
		for n := range 900 {
			c.add("SET", "key"+string(rune('a'+i))+strings.Repeat("z", n), "v") // a third of them is this node's
		}
		if err := c.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 900 {
			if _, err := c.reply(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The writer's keys have one slot, and the slot one master.
	home := urls[cluster.Master(cluster.Slot("{tag}"))]
	open(t, home).run(t, "XGROUP CREATE stream{tag}1 g $ MKSTREAM")
	w := write(t, home, "{tag}")
	w.rounds(t, 20)
	from := []string{"redis+cluster://" + strings.Join(cluster.Addrs(), ",")}
	said, err := step(t, Options{From: from, To: to, Compare: true, Pause: time.Minute}, (*Migration).Cutover)
	if err != nil || !strings.Contains(said, "3 source(s)") {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, from, to)
}

func TestFilesOfRealServersAreLoaded(t *testing.T) {
	for _, program := range []string{realserver.Redis7, realserver.Valkey9} {
		t.Run(program, func(t *testing.T) {
			p := realserver.NewProcess(t, program, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
			p.Start()
			from := "redis://" + p.Addr()
			c := open(t, from)
			fill(t, c, 200, true)
			c.run(t, "SAVE")
			for _, path := range []string{p.Dir + "/dump.rdb", p.Dir} {
				to := startEbb(t)
				if said, err := step(t, Options{From: []string{path}, To: to}, (*Migration).Follow); err != nil {
					t.Errorf("%s: %v\n%s", path, err, said)
				}
				mustEqual(t, []string{from}, to)
			}
		})
	}
}

// XREADGROUP that finds nothing to read creates its consumer on the master alone.
func TestAConsumerThatWaitsIsNoDifference(t *testing.T) {
	for _, program := range []string{realserver.Redis7, realserver.Redis8, realserver.Valkey9} {
		t.Run(program, func(t *testing.T) {
			from, to := realURL(t, program), startEbb(t)
			o := Options{From: []string{from}, To: to, Once: true, Compare: true, Pause: time.Minute}
			c := open(t, from)
			c.run(t, "XADD s 1-1 i 1")
			c.run(t, "XGROUP CREATE s g 0")
			c.run(t, "XREADGROUP GROUP g busy STREAMS s >")
			if said, err := step(t, o, (*Migration).Follow); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			c.run(t, "XREADGROUP GROUP g idle STREAMS s >")
			c.run(t, "XREADGROUP GROUP g other STREAMS s 0")
			mustEqual(t, []string{from}, to)
			if said, err := step(t, o, (*Migration).Cutover); err != nil {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}

// Redis and Valkey refuse PING too when a snapshot has failed: a server with a full disk is one to move away from.
func TestAServerWhoseSnapshotsFailMoves(t *testing.T) {
	for _, program := range []string{realserver.Redis7, realserver.Valkey9} {
		for _, scan := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s scan %t", program, scan), func(t *testing.T) {
				dir := t.TempDir()
				from, to := realURL(t, program, "--save", "3600 1", "--dir", dir), startEbb(t)
				c := open(t, from)
				fill(t, c, 20, false)
				if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "full"), 0o700); err != nil {
					t.Fatal(err)
				}
				c.run(t, "BGSAVE")
				ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
				defer cancel()
				var err error
				for err == nil && ctx.Err() == nil {
					_, err = c.do(ctx, "PING")
				}
				if err == nil || !strings.Contains(err.Error(), "MISCONF") {
					t.Fatal(err)
				}
				o := Options{From: []string{from}, To: to, Scan: scan}
				m, _ := migrating(t, o)
				if _, err := m.Check(t.Context()); err != nil {
					t.Error(err)
				}
				if said, err := step(t, o, (*Migration).Cutover); err != nil {
					t.Fatalf("%v\n%s", err, said)
				}
				mustEqual(t, []string{from}, to)
			})
		}
	}
}

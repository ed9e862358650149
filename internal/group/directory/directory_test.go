package directory

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/draw"
)

// three returns a group of three data nodes. Shard 1 has master 1, the in-sync set {1, 2} and k = 1.
func three(t *testing.T) *Directory {
	t.Helper()
	d := New()
	for id := NodeID(1); id <= 3; id++ {
		apply(t, d, Command{Kind: AddNode, Node: id, Address: "a", Data: true, Voter: true}, 0)
		apply(t, d, Command{Kind: Register, Node: id, Incarnation: 1, Process: uint64(id)}, 0)
	}
	apply(t, d, Command{Kind: AddNode, Node: 4, Address: "w", Voter: true}, 0)
	apply(t, d, Command{Kind: Register, Node: 4, Incarnation: 1, Process: 4}, 0)
	apply(t, d, Command{Kind: Create, Shard: 1, Node: 1, K: 1, Members: []Member{{1, 1}, {2, 1}}}, 0)
	return d
}

// apply applies a command. It fails the test unless the refusal is want and the invariants hold.
func apply(t *testing.T, d *Directory, c Command, want Refusal) Answer {
	t.Helper()
	a := d.Apply(c)
	if a.Refused != want {
		t.Fatalf("%+v: refusal %d (%v), want %d", c, a.Refused, a.Refused, want)
	}
	if err := d.Check(); err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	return a
}

// at returns the command with the present epoch and version of shard 1.
func at(d *Directory, c Command) Command {
	s, _ := d.Shard(1)
	c.Shard, c.Epoch, c.Version = 1, s.Epoch, s.Version
	return c
}

// insync fails the test unless shard 1 has the in-sync set want.
func insync(t *testing.T, d *Directory, want ...Member) {
	t.Helper()
	if s, _ := d.Shard(1); !slices.Equal(s.InSync, want) {
		t.Fatalf("in sync are %v, want %v", s.InSync, want)
	}
}

func TestACommandThatHasSeenAnotherVersionIsRefused(t *testing.T) {
	d := three(t)
	old := at(d, Command{Kind: Expand, Node: 3, Incarnation: 1})
	apply(t, d, old, 0)
	before, _ := d.Shard(1)
	apply(t, d, old, Stale)
	newer := at(d, Command{Kind: Shrink, Node: 3, Incarnation: 1})
	newer.Epoch++
	apply(t, d, newer, Stale)
	if after, _ := d.Shard(1); !reflect.DeepEqual(before, after) {
		t.Errorf("a stale command changed %+v to %+v", before, after)
	}
}

func TestARefusalAtThePresentVersionRaisesTheVersion(t *testing.T) {
	d := three(t)
	refused := at(d, Command{Kind: Shrink, Node: 2, Incarnation: 1})
	a := apply(t, d, refused, TooFew)
	if got := a.Shards[0].Version; got != refused.Version+1 {
		t.Fatalf("the version is %d after a refusal at %d", got, refused.Version)
	}
	apply(t, d, at(d, Command{Kind: Expand, Node: 3, Incarnation: 1}), 0)
	apply(t, d, refused, Stale) // a refused command cannot be applied later
	insync(t, d, Member{1, 1}, Member{2, 1}, Member{3, 1})
}

func TestANewIncarnationLeavesTheInSyncSet(t *testing.T) {
	d := three(t)
	before, _ := d.Shard(1)
	a := apply(t, d, Command{Kind: Register, Node: 2, Incarnation: 2, Process: 9}, 0)
	insync(t, d, Member{1, 1})
	if after := a.Shards[0]; after.Version != before.Version+1 || after.Epoch != before.Epoch {
		t.Errorf("epoch and version were %d and %d, and are %d and %d", before.Epoch, before.Version, after.Epoch, after.Version)
	}
	if !before.In(Member{2, 1}) {
		t.Error("a state that was handed out has changed")
	}
}

func TestANodeThatLostNothingKeepsItsPlace(t *testing.T) {
	d := three(t)
	apply(t, d, Command{Kind: Register, Node: 2, Incarnation: 1, Process: 9, Level: Disk, Kept: true}, 0)
	insync(t, d, Member{1, 1}, Member{2, 1})
	// A node at level memory cannot keep its data through a restart.
	apply(t, d, Command{Kind: Register, Node: 2, Incarnation: 1, Process: 10, Level: Memory, Kept: true}, OldMember)
}

func TestAnOlderRegisterChangesNothing(t *testing.T) {
	d := three(t)
	apply(t, d, Command{Kind: Register, Node: 2, Incarnation: 5, Process: 9}, 0)
	apply(t, d, at(d, Command{Kind: Expand, Node: 2, Incarnation: 5}), 0)
	a := apply(t, d, Command{Kind: Register, Node: 2, Incarnation: 4, Process: 8}, OldMember)
	if a.Node.Incarnation != 5 {
		t.Errorf("the answer names incarnation %d, want 5, the one to exceed", a.Node.Incarnation)
	}
	insync(t, d, Member{1, 1}, Member{2, 5})
}

// A node without its files does not know its incarnation. It must not take that of an earlier process, whose
// acknowledgements still count.
func TestAnIncarnationBelongsToOneProcess(t *testing.T) {
	d := three(t)
	register := Command{Kind: Register, Node: 2, Incarnation: 1, Process: 99}
	apply(t, d, register, OldMember)
	register.Process = 2
	apply(t, d, register, 0) // the same process repeats its Register
	insync(t, d, Member{1, 1}, Member{2, 1})
	apply(t, d, Command{Kind: Register, Node: 2, Process: 99}, Unknown)
	apply(t, d, Command{Kind: Register, Node: 7, Incarnation: 1, Process: 99}, Unknown)
}

func TestExpandAddsTheRegisteredIncarnationAlone(t *testing.T) {
	d := three(t)
	apply(t, d, Command{Kind: Register, Node: 3, Incarnation: 2, Process: 9}, 0)
	apply(t, d, at(d, Command{Kind: Expand, Node: 3, Incarnation: 1}), OldMember)
	apply(t, d, at(d, Command{Kind: Expand, Node: 3, Incarnation: 2}), 0)
	apply(t, d, at(d, Command{Kind: Expand, Node: 3, Incarnation: 2}), AlreadyInSync)
	apply(t, d, at(d, Command{Kind: Expand, Node: 4, Incarnation: 1}), NoData)
	apply(t, d, at(d, Command{Kind: Expand, Node: 5, Incarnation: 1}), Unknown)
	insync(t, d, Member{1, 1}, Member{2, 1}, Member{3, 2})
}

func TestShrinkLeavesKAndOneMembers(t *testing.T) {
	d := three(t)
	apply(t, d, at(d, Command{Kind: Shrink, Node: 2, Incarnation: 1}), TooFew)
	apply(t, d, at(d, Command{Kind: Expand, Node: 3, Incarnation: 1}), 0)
	apply(t, d, at(d, Command{Kind: Shrink, Node: 2, Incarnation: 7}), NotInSync)
	apply(t, d, at(d, Command{Kind: Shrink, Node: 1, Incarnation: 1}), IsMaster)
	apply(t, d, at(d, Command{Kind: Shrink, Node: 2, Incarnation: 1}), 0)
	insync(t, d, Member{1, 1}, Member{3, 1})
}

func TestPromoteTakesAMemberInSync(t *testing.T) {
	d := three(t)
	before, _ := d.Shard(1)
	apply(t, d, at(d, Command{Kind: Promote, Node: 3}), NotInSync)
	a := apply(t, d, at(d, Command{Kind: Promote, Node: 2}), 0)
	if s := a.Shards[0]; s.Epoch != before.Epoch+1 || s.Master != (Member{2, 1}) || len(s.InSync) != 2 {
		t.Errorf("%+v became %+v", before, s)
	}
}

func TestPromoteDropsTheOldMasterIfEnoughRemain(t *testing.T) {
	d := three(t)
	apply(t, d, at(d, Command{Kind: Promote, Node: 2, Drop: true}), 0)
	insync(t, d, Member{1, 1}, Member{2, 1}) // fewer than k+1 = 2 members would remain
	apply(t, d, at(d, Command{Kind: Expand, Node: 3, Incarnation: 1}), 0)
	apply(t, d, at(d, Command{Kind: Promote, Node: 1, Drop: true}), 0)
	insync(t, d, Member{1, 1}, Member{3, 1})
	apply(t, d, at(d, Command{Kind: Promote, Node: 1, Drop: true}), 0) // the master itself, after a restart
	insync(t, d, Member{1, 1}, Member{3, 1})
}

func TestKRisesToTheMembersInSyncMinusOne(t *testing.T) {
	d := three(t)
	apply(t, d, at(d, Command{Kind: SetK, K: 2}), TooFew)
	apply(t, d, at(d, Command{Kind: SetK, K: -1}), TooFew)
	apply(t, d, at(d, Command{Kind: SetK, K: 0}), 0)
	apply(t, d, at(d, Command{Kind: SetK, K: 1}), 0)
	apply(t, d, Command{Kind: Register, Node: 2, Incarnation: 2, Process: 9}, 0)
	apply(t, d, at(d, Command{Kind: SetK, K: 1}), 0) // K does not rise
}

func TestRemoveNodeLeavesMastersAndTheLastMembers(t *testing.T) {
	d := three(t)
	apply(t, d, Command{Kind: RemoveNode, Node: 1}, IsMaster)
	apply(t, d, Command{Kind: RemoveNode, Node: 2}, TooFew)
	apply(t, d, at(d, Command{Kind: Expand, Node: 3, Incarnation: 1}), 0)
	before, _ := d.Shard(1)
	a := apply(t, d, Command{Kind: RemoveNode, Node: 2}, 0)
	insync(t, d, Member{1, 1}, Member{3, 1})
	if a.Shards[0].Version != before.Version+1 {
		t.Errorf("the version was %d, and is %d after a member was removed", before.Version, a.Shards[0].Version)
	}
	apply(t, d, Command{Kind: RemoveNode, Node: 2}, Unknown)
	apply(t, d, Command{Kind: Register, Node: 2, Incarnation: 9, Process: 9}, Unknown)
	apply(t, d, Command{Kind: AddNode, Node: 2, Address: "a"}, Exists) // the ID of a removed node is not used again
	apply(t, d, Command{Kind: AddNode, Node: 5, Address: "a"}, 0)
	apply(t, d, Command{Kind: AddNode, Node: 5, Address: "a"}, 0)
	apply(t, d, Command{Kind: AddNode, Node: 5, Address: "b"}, Exists)
}

func TestRecoverWantsTheLossAccepted(t *testing.T) {
	d := three(t)
	apply(t, d, Command{Kind: Register, Node: 1, Incarnation: 2, Process: 9}, 0)
	apply(t, d, Command{Kind: Register, Node: 2, Incarnation: 2, Process: 9}, 0)
	insync(t, d)
	apply(t, d, at(d, Command{Kind: Promote, Node: 3}), NotInSync)
	apply(t, d, at(d, Command{Kind: Recover, Node: 3}), LossRefused)
	apply(t, d, at(d, Command{Kind: Recover, Node: 4, AcceptLoss: true}), NoData)
	apply(t, d, at(d, Command{Kind: Recover, Node: 7, AcceptLoss: true}), Unknown)
	before, _ := d.Shard(1)
	a := apply(t, d, at(d, Command{Kind: Recover, Node: 3, AcceptLoss: true}), 0)
	if s := a.Shards[0]; s.Epoch != before.Epoch+1 || s.Master != (Member{3, 1}) || s.Losses != 1 {
		t.Errorf("%+v became %+v", before, s)
	}
	insync(t, d, Member{3, 1})
}

func TestCreateTakesRegisteredMembers(t *testing.T) {
	d := three(t)
	apply(t, d, Command{Kind: Create, Shard: 1, Node: 1, Members: []Member{{1, 1}}}, Exists)
	apply(t, d, Command{Kind: Create, Shard: 2, Node: 1, Members: []Member{{1, 2}}}, OldMember)
	apply(t, d, Command{Kind: Create, Shard: 2, Node: 1, Members: []Member{{2, 1}}}, NotInSync)
	apply(t, d, Command{Kind: Create, Shard: 2, Node: 1, Members: []Member{{4, 1}}}, NoData)
	apply(t, d, Command{Kind: Create, Shard: 2, Node: 1, Members: []Member{{9, 1}}}, Unknown)
	apply(t, d, Command{Kind: Create, Shard: 2, Node: 1, K: -1, Members: []Member{{1, 1}}}, TooFew)
	apply(t, d, Command{Kind: Expand, Shard: 2}, Unknown)
	apply(t, d, Command{Kind: Create, Shard: 2, Node: 1, Members: []Member{{1, 1}}}, 0)
	apply(t, d, Command{}, Unknown)
}

func TestASnapshotRestoresTheState(t *testing.T) {
	d := three(t)
	apply(t, d, at(d, Command{Kind: Promote, Node: 2}), 0)
	apply(t, d, Command{Kind: Register, Node: 3, Incarnation: 1 << 60, Process: 1<<64 - 1, Level: Disk}, 0)
	other := New()
	if err := other.Restore(d.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(d, other) {
		t.Errorf("got %+v, want %+v", other, d)
	}
	if n := len(d.Snapshot()); n > 120 {
		t.Errorf("the snapshot of four nodes and a shard has %d bytes", n)
	}
}

func TestADamagedSnapshotIsRefused(t *testing.T) {
	whole := three(t).Snapshot()
	kept := three(t)
	for i := range whole {
		for _, flip := range []byte{1, 0x80, 0xff} {
			bad := append([]byte(nil), whole...)
			bad[i] ^= flip
			if err := kept.Restore(bad); !errors.Is(err, ErrDamaged) {
				t.Fatalf("byte %d changed by %#x: %v, want ErrDamaged", i, flip, err)
			}
		}
		if err := kept.Restore(whole[:i]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut to %d bytes: %v, want ErrDamaged", i, err)
		}
	}
	if !reflect.DeepEqual(kept, three(t)) {
		t.Error("a refused snapshot changed the state")
	}
}

// A valid checksum does not make the content valid.
func TestASnapshotThatBreaksARuleIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(d *Directory){
		"a member of an old incarnation": func(d *Directory) { d.shards[0].InSync = []Member{{2, 7}} },
		"members out of order":           func(d *Directory) { d.shards[0].InSync = []Member{{2, 1}, {1, 1}} },
		"a node beyond the highest id":   func(d *Directory) { d.last = 2 },
		"nodes out of order":             func(d *Directory) { d.nodes[0], d.nodes[1] = d.nodes[1], d.nodes[0] },
		"a witness as master":            func(d *Directory) { d.shards[0].Master.Node = 4 },
		"epoch 0":                        func(d *Directory) { d.shards[0].Epoch = 0 },
		"two shards of one id":           func(d *Directory) { d.shards = append(d.shards, d.shards[0]) },
	} {
		d := three(t)
		spoil(d)
		if err := New().Restore(d.Snapshot()); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
	}
}

func TestAnUnknownFormatIsNotCalledDamage(t *testing.T) {
	newer := three(t).Snapshot()
	newer[0] = snapshotFormat + 1
	body := newer[:len(newer)-4]
	sum := checksum(body)
	newer = append(body, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
	if err := New().Restore(newer); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("a snapshot of a newer format: %v", err)
	}
	command := AppendCommand(nil, Command{Kind: Expand})
	command[0] = commandFormat + 1
	if _, err := DecodeCommand(command); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("a command of a newer format: %v", err)
	}
}

// command generates a command about few nodes, so that the directory accepts many of them.
func command() *rapid.Generator[Command] {
	return rapid.Custom(func(t *rapid.T) Command {
		small := rapid.Uint64Range(0, 4)
		c := Command{Kind: Kind(rapid.IntRange(1, int(Recover)).Draw(t, "kind")), Shard: ShardID(rapid.IntRange(1, 2).Draw(t, "shard")),
			Node: NodeID(small.Draw(t, "node")), Incarnation: small.Draw(t, "incarnation"), Process: small.Draw(t, "process"),
			K: rapid.IntRange(0, 2).Draw(t, "k"), Level: SyncLevel(rapid.IntRange(0, 1).Draw(t, "level")),
			Voter: rapid.Bool().Draw(t, "voter"), Data: rapid.IntRange(0, 4).Draw(t, "data") > 0, Kept: rapid.Bool().Draw(t, "kept"),
			Drop: rapid.Bool().Draw(t, "drop"), AcceptLoss: rapid.Bool().Draw(t, "loss"), Address: rapid.StringN(0, 3, 9).Draw(t, "address")}
		for range rapid.IntRange(0, 2).Draw(t, "members") {
			c.Members = append(c.Members, Member{NodeID(small.Draw(t, "node")), small.Draw(t, "incarnation")})
		}
		return c
	})
}

func TestRandomCommandsKeepTheInvariants(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		d := New()
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			c := command().Draw(t, "command")
			before, known := d.Shard(c.Shard)
			if known && rapid.IntRange(0, 5).Draw(t, "present") > 0 {
				c.Epoch, c.Version = before.Epoch, before.Version
			}
			a := d.Apply(c)
			after, _ := d.Shard(c.Shard)
			switch {
			case d.Check() != nil:
				t.Fatal(d.Check())
			case after.Epoch < before.Epoch || after.Version < before.Version:
				t.Fatalf("%+v became %+v", before, after)
			case a.Refused == Stale && !reflect.DeepEqual(before, after):
				t.Fatalf("a stale command changed %+v to %+v", before, after)
			case known && !reflect.DeepEqual(before, after) && after.Version == before.Version:
				t.Fatalf("%+v became %+v, of the same version", before, after)
			}
		}
		other := New()
		if err := other.Restore(d.Snapshot()); err != nil || string(other.Snapshot()) != string(d.Snapshot()) {
			t.Fatalf("restored: %v", err)
		}
	})
}

func TestACommandIsReadAsItWasWritten(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		c := command().Draw(t, "command")
		c.Epoch, c.Version = rapid.Uint64().Draw(t, "epoch"), rapid.Uint64().Draw(t, "version")
		b := AppendCommand(nil, c)
		got, err := DecodeCommand(b)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("%+v was read as %+v, %v", c, got, err)
		}
		for i := range b {
			if _, err := DecodeCommand(b[:i]); !errors.Is(err, ErrDamaged) {
				t.Fatalf("cut to %d of %d bytes: %v, want ErrDamaged", i, len(b), err)
			}
		}
	})
}

func TestAnAnswerIsReadAsItWasWritten(t *testing.T) {
	draw.Check(t, func(rt *rapid.T) {
		d := three(t)
		for range rapid.IntRange(0, 5).Draw(rt, "commands") {
			d.Apply(command().Draw(rt, "command"))
		}
		a := d.Apply(command().Draw(rt, "last"))
		b := AppendAnswer(nil, a)
		got, err := DecodeAnswer(b)
		if err != nil || got.Refused != a.Refused || got.Node != a.Node || len(got.Shards) != len(a.Shards) ||
			string(AppendAnswer(nil, got)) != string(b) {
			rt.Fatalf("%+v was read as %+v, %v", a, got, err)
		}
		for i := range b {
			if _, err := DecodeAnswer(b[:i]); !errors.Is(err, ErrDamaged) {
				rt.Fatalf("cut to %d of %d bytes: %v, want ErrDamaged", i, len(b), err)
			}
		}
		b[0]++
		if _, err := DecodeAnswer(b); err == nil || errors.Is(err, ErrDamaged) {
			rt.Fatalf("an answer of a newer format: %v", err)
		}
	})
}

func TestEachRefusalSaysWhy(t *testing.T) {
	for r := Stale; r <= LossRefused; r++ {
		if len(r.Error()) < 10 {
			t.Errorf("refusal %d: %q", uint8(r), r.Error())
		}
	}
	if got := (LossRefused + 1).Error(); got != "refusal 11" {
		t.Errorf("an unknown refusal: %q", got)
	}
}

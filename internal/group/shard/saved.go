package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// Saved is the content of the file group.state, from which a restarted node proves that it has kept its data. A node
// writes the file when its Register is answered, before it does anything else, and only at level disk.
type Saved struct {
	Member directory.Member
	Always bool // this incarnation acknowledges only synced writes (appendfsync always)
}

// StateFile is the name of the file of Saved, in the folder of its group.
const StateFile = "group.state"

// savedFormat is the first byte of the file. The fields follow, and a CRC-32C.
const savedFormat = 1

// ErrSaved is the error of ParseSaved for a damaged or incomplete file.
var ErrSaved = errors.New("group.state is damaged")

// Bytes returns the encoded file.
func (s Saved) Bytes() []byte {
	always := byte(0)
	if s.Always {
		always = 1
	}
	b := binary.AppendUvarint([]byte{savedFormat, always}, uint64(s.Member.Node))
	b = binary.AppendUvarint(b, s.Member.Incarnation)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// ParseSaved decodes the content of a file group.state. It returns ErrSaved if the bytes are damaged.
func ParseSaved(b []byte) (Saved, error) {
	if len(b) < 8 {
		return Saved{}, fmt.Errorf("%w: the file has %d bytes, want at least 8", ErrSaved, len(b))
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if got := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)); got != sum {
		return Saved{}, fmt.Errorf("%w: the file has checksum %08x, its content %08x", ErrSaved, sum, got)
	}
	if body[0] != savedFormat {
		return Saved{}, fmt.Errorf("group.state has format %d, want %d: a newer version of ebb has written it", body[0], savedFormat)
	}
	id, n := binary.Uvarint(body[2:])
	incarnation, m := binary.Uvarint(body[2+max(n, 0):])
	if n <= 0 || m <= 0 || 2+n+m != len(body) || id > 1<<32-1 {
		return Saved{}, fmt.Errorf("%w: the file has bytes behind its last field, or ends within one", ErrSaved)
	}
	return Saved{Member: directory.Member{Node: directory.NodeID(id), Incarnation: incarnation}, Always: body[1] == 1}, nil
}

// Restart returns the Register of a node that starts, without Process and Level. file is the content of group.state,
// nil without one. The node keeps its incarnation (Kept) if the file is intact and says Always, if the node also
// acknowledges only synced writes from now on (always), and if its log was loaded to the end (intact). Otherwise it
// registers the next incarnation.
func Restart(id directory.NodeID, file []byte, always, intact bool) directory.Command {
	c := directory.Command{Kind: directory.Register, Node: id, Incarnation: 1}
	s, err := ParseSaved(file)
	if err != nil || s.Member.Node != id {
		return c // the directory's answer names the incarnation to exceed
	}
	if s.Always && always && intact {
		c.Incarnation, c.Kept = s.Member.Incarnation, true
		return c
	}
	c.Incarnation = s.Member.Incarnation + 1
	return c
}

// Again returns the next Register to send after the directory has refused c with OldMember.
func Again(c directory.Command, a directory.Answer) directory.Command {
	c.Incarnation, c.Kept = a.Node.Incarnation+1, false
	return c
}

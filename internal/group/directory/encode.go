package directory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The formats of a snapshot, a command and an answer. Numbers are varints (encoding/binary); a text follows its
// length.
//
//	snapshot  format 1 byte, the highest ID, nodes, shards, CRC-32C of all before it 4 bytes
//	command   format 1 byte, kind, fields
//	answer    format 1 byte, fields
//
// A later version that adds a field raises the format number, and still reads the older formats.
const (
	snapshotFormat = 1
	commandFormat  = 1
	answerFormat   = 1
)

// maxCount limits the lengths that the decoders accept, so that damaged input cannot make them allocate much. A group
// has a few nodes, and each node a few shards.
const maxCount = 1 << 16

// ErrDamaged is the error of Restore, DecodeCommand and DecodeAnswer for input that Snapshot, AppendCommand and
// AppendAnswer did not write.
var ErrDamaged = errors.New("directory: the data is damaged")

// Snapshot returns the encoded state. O(state).
func (d *Directory) Snapshot() []byte {
	b := binary.AppendUvarint([]byte{snapshotFormat}, uint64(d.last))
	b = binary.AppendUvarint(b, uint64(len(d.nodes)))
	for _, n := range d.nodes {
		b = appendNode(b, n)
	}
	b = appendShards(b, d.shards)
	return binary.BigEndian.AppendUint32(b, checksum(b))
}

// Restore replaces the state by that of a snapshot. It returns ErrDamaged for damaged input, and a different error
// for a format that this version does not know. The state stays the same after an error.
func (d *Directory) Restore(snapshot []byte) error {
	if len(snapshot) < 5 {
		return fmt.Errorf("%w: the snapshot has %d bytes, want at least 5", ErrDamaged, len(snapshot))
	}
	body, sum := snapshot[:len(snapshot)-4], binary.BigEndian.Uint32(snapshot[len(snapshot)-4:])
	if got := checksum(body); got != sum {
		return fmt.Errorf("%w: the snapshot has checksum %08x, its content %08x", ErrDamaged, sum, got)
	}
	if body[0] != snapshotFormat {
		return fmt.Errorf("directory: the snapshot has format %d, want %d: a newer version of ebb has written it", body[0], snapshotFormat)
	}
	r := reader{what: "the snapshot", rest: body[1:]}
	next := Directory{last: NodeID(r.number(1<<32 - 1)), faults: d.faults}
	for range r.number(maxCount) {
		next.nodes = append(next.nodes, r.node())
	}
	next.shards = r.shards()
	if err := r.end(); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err := next.Check(); err != nil {
		return fmt.Errorf("%w: the snapshot has a valid checksum, but its content breaks a rule: %w", ErrDamaged, err)
	}
	*d = next
	return nil
}

// AppendCommand appends the encoding of a command to b. DecodeCommand decodes it.
func AppendCommand(b []byte, c Command) []byte {
	b = appendNumbers(append(b, commandFormat), uint64(c.Kind), uint64(c.Shard), c.Epoch, c.Version, uint64(c.Node), c.Incarnation,
		c.Process, uint64(c.K), uint64(c.Level), flags(c.Voter, c.Data, c.Kept, c.Drop, c.AcceptLoss))
	return appendMembers(appendText(b, c.Address), c.Members)
}

// DecodeCommand returns the command in b. It returns ErrDamaged for damaged input.
func DecodeCommand(b []byte) (Command, error) {
	if len(b) == 0 {
		return Command{}, fmt.Errorf("%w: the command has no bytes", ErrDamaged)
	}
	if b[0] != commandFormat {
		return Command{}, fmt.Errorf("directory: the command has format %d, want %d: a newer version of ebb has written it", b[0], commandFormat)
	}
	r := reader{what: "the command", rest: b[1:]}
	c := Command{Kind: Kind(r.number(uint64(Recover))), Shard: ShardID(r.number(1<<32 - 1)), Epoch: r.number(most), Version: r.number(most),
		Node: NodeID(r.number(1<<32 - 1)), Incarnation: r.number(most), Process: r.number(most), K: int(r.number(maxCount)),
		Level: SyncLevel(r.number(uint64(Disk)))}
	r.flags(&c.Voter, &c.Data, &c.Kept, &c.Drop, &c.AcceptLoss)
	c.Address, c.Members = r.text(), r.members()
	if err := r.end(); err != nil {
		return Command{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return c, nil
}

// AppendAnswer appends the encoding of an answer to b. DecodeAnswer decodes it.
func AppendAnswer(b []byte, a Answer) []byte {
	b = appendNumbers(append(b, answerFormat), uint64(a.Refused))
	return appendShards(appendNode(b, a.Node), a.Shards)
}

// DecodeAnswer returns the answer in b. It returns ErrDamaged for damaged input.
func DecodeAnswer(b []byte) (Answer, error) {
	if len(b) == 0 {
		return Answer{}, fmt.Errorf("%w: the answer has no bytes", ErrDamaged)
	}
	if b[0] != answerFormat {
		return Answer{}, fmt.Errorf("directory: the answer has format %d, want %d: a newer version of ebb has written it", b[0], answerFormat)
	}
	r := reader{what: "the answer", rest: b[1:]}
	a := Answer{Refused: Refusal(r.number(255)), Node: r.node()}
	a.Shards = r.shards()
	if err := r.end(); err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return a, nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func appendNumbers(b []byte, all ...uint64) []byte {
	for _, n := range all {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendNode(b []byte, n Node) []byte {
	return appendText(appendNumbers(b, uint64(n.ID), n.Incarnation, n.Process, flags(n.Voter, n.Data), uint64(n.Level)), n.Address)
}

func appendShards(b []byte, all []Shard) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, s := range all {
		b = appendNumbers(b, uint64(s.ID), s.Epoch, s.Version, uint64(s.Master.Node), s.Master.Incarnation, uint64(s.K), s.Losses)
		b = appendMembers(b, s.InSync)
	}
	return b
}

func appendMembers(b []byte, all []Member) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, m := range all {
		b = appendNumbers(b, uint64(m.Node), m.Incarnation)
	}
	return b
}

// flags returns the flags as the bits of a number, the first one as the lowest bit.
func flags(all ...bool) (n uint64) {
	for i, set := range all {
		if set {
			n |= 1 << i
		}
	}
	return n
}

// most is the limit of numbers that may have any value.
const most = 1<<64 - 1

// reader decodes values. After the first error its methods return zero values; end returns the error.
type reader struct {
	what string // the subject of the errors, such as "the command"
	rest []byte
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

// number returns the next number, or fails if it is above limit.
func (r *reader) number(limit uint64) uint64 {
	if r.err != nil {
		return 0
	}
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail(fmt.Errorf("%s ends within a number", r.what))
		return 0
	}
	if n > limit {
		r.fail(fmt.Errorf("%s has the number %d, want at most %d", r.what, n, limit))
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) text() string {
	n := r.number(uint64(len(r.rest)))
	if r.err != nil || n > uint64(len(r.rest)) {
		r.fail(fmt.Errorf("%s ends within a text", r.what))
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *reader) flags(all ...*bool) {
	n := r.number(1<<len(all) - 1)
	for i, p := range all {
		*p = n>>i&1 == 1
	}
}

func (r *reader) members() (all []Member) {
	for range r.number(maxCount) {
		all = append(all, Member{NodeID(r.number(1<<32 - 1)), r.number(most)})
		if r.err != nil {
			return nil
		}
	}
	return all
}

func (r *reader) node() Node {
	n := Node{ID: NodeID(r.number(1<<32 - 1)), Incarnation: r.number(most), Process: r.number(most)}
	r.flags(&n.Voter, &n.Data)
	n.Level = SyncLevel(r.number(uint64(Disk)))
	n.Address = r.text()
	return n
}

func (r *reader) shards() (all []Shard) {
	for range r.number(maxCount) {
		all = append(all, r.shard())
		if r.err != nil {
			return nil
		}
	}
	return all
}

func (r *reader) shard() Shard {
	s := Shard{ID: ShardID(r.number(1<<32 - 1)), Epoch: r.number(most), Version: r.number(most)}
	s.Master = Member{NodeID(r.number(1<<32 - 1)), r.number(most)}
	s.K, s.Losses = int(r.number(maxCount)), r.number(most)
	s.InSync = r.members()
	return s
}

// end returns the first error, or an error if bytes are left.
func (r *reader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("%s has %d extra bytes behind its end", r.what, len(r.rest))
	}
	return r.err
}

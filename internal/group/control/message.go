package control

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/shard"
	"github.com/ebbdb/ebb/internal/group/voter"
)

// Nodes exchange these calls (internal/group/port). A request begins with one byte, its kind:
//
//	hello      nothing                                  ─▶ the name of the voter, whether it is in a group
//	heartbeat  the name of the voter, data, where it    ─▶ 0 and an answer with the states of the shards
//	           serves clients, sentinel-port, a            (earlier versions: nothing)
//	           report, min-sync-replicas
//	propose    a command                                ─▶ 0 and the answer, 1 if another node leads, or 2 and an error
//
// Numbers are varints; a text follows its length.
const (
	kindHello     byte = 'h'
	kindHeartbeat byte = 'b'
	kindPropose   byte = 'p'
)

const (
	proposed byte = iota
	notLeader
	failed
)

// maxK is an upper bound of min-sync-replicas in messages.
const maxK = 255

var errMessage = errors.New("cannot read a message of another node: the nodes may run different versions of ebb")

// hello is the answer to a hello request.
type hello struct {
	server  voter.Server
	founded bool
}

func (h hello) append(b []byte) []byte {
	return append(appendText(b, h.server.String()), flag(h.founded))
}

func parseHello(b []byte) (hello, error) {
	name, rest, ok := text(b)
	server, err := voter.ParseServer(name)
	if !ok || err != nil || len(rest) != 1 || rest[0] > 1 {
		return hello{}, errMessage
	}
	return hello{server, rest[0] == 1}, nil
}

// heartbeat is the message by which a node reports that it is alive, and its state.
type heartbeat struct {
	server   voter.Server
	data     bool
	clients  string // the address at which it serves clients, host:port; "" for a witness
	sentinel uint64 // the port of Sentinel's protocol; 0: none
	k        uint64 // min-sync-replicas, which takes effect if this node becomes the first master
	report   shard.Report
}

func (h heartbeat) append(b []byte) []byte {
	b = append(appendText(append(b, kindHeartbeat), h.server.String()), flag(h.data))
	b = appendText(b, h.clients)
	for _, n := range []uint64{h.sentinel, uint64(h.report.From.Node), h.report.From.Incarnation, h.report.Master, h.report.End,
		uint64(h.report.Time), h.k} {
		b = binary.AppendUvarint(b, n)
	}
	return append(b, flag(h.report.Stuck)|flag(h.report.Proven)<<1)
}

// parseHeartbeat parses a heartbeat without its kind.
func parseHeartbeat(b []byte) (h heartbeat, err error) {
	name, rest, ok := text(b)
	if h.server, err = voter.ParseServer(name); !ok || err != nil || len(rest) == 0 || rest[0] > 1 {
		return heartbeat{}, errMessage
	}
	h.data = rest[0] == 1
	if h.clients, rest, ok = text(rest[1:]); !ok {
		return heartbeat{}, errMessage
	}
	var numbers [7]uint64
	for i := range numbers {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return heartbeat{}, errMessage
		}
		numbers[i], rest = n, rest[size:]
	}
	if len(rest) != 1 || rest[0] > 2 || numbers[0] > 65535 || numbers[1] != uint64(h.server.Node) || numbers[5] > 1<<62 || numbers[6] > maxK {
		return heartbeat{}, errMessage
	}
	h.sentinel, h.k = numbers[0], numbers[6]
	h.report = shard.Report{From: directory.Member{Node: h.server.Node, Incarnation: numbers[2]}, Master: numbers[3], End: numbers[4],
		Time: int64(numbers[5]), Stuck: rest[0] == 1, Proven: rest[0] == 2}
	return h, nil
}

// appendOutcome appends the outcome of a proposal to b.
func appendOutcome(b []byte, a directory.Answer, err error) []byte {
	switch {
	case err == nil:
		return directory.AppendAnswer(append(b, proposed), a)
	case errors.Is(err, voter.ErrNotLeader):
		return append(b, notLeader)
	}
	return append(append(b, failed), err.Error()...)
}

func parseOutcome(b []byte) (directory.Answer, error) {
	if len(b) == 0 {
		return directory.Answer{}, errMessage
	}
	switch b[0] {
	case proposed:
		return directory.DecodeAnswer(b[1:])
	case notLeader:
		return directory.Answer{}, voter.ErrNotLeader
	case failed:
		return directory.Answer{}, fmt.Errorf("the leader of the group's directory: %s", b[1:])
	}
	return directory.Answer{}, errMessage
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// text parses a text with its length before it, and returns the bytes behind it.
func text(b []byte) (s string, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, false
	}
	return string(b[size : size+int(n)]), b[size+int(n):], true
}

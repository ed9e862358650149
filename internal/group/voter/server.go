package voter

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// Server identifies a voter: a node with one particular file. In raft its names are
//
//	ID       3.9f86d081884c7d65                    node and store
//	address  3.9f86d081884c7d65@host:7379          a connection names the voter that it wants
type Server struct {
	Node    directory.NodeID
	Store   uint64 // the random number in the voter's file; never 0
	Address string // host:port of the group's port
}

// String returns the server in the form of its raft address.
func (s Server) String() string { return string(s.address()) }

// Name returns the server's raft ID: node and store.
func (s Server) Name() string { return fmt.Sprintf("%d.%016x", s.Node, s.Store) }

func (s Server) id() raft.ServerID { return raft.ServerID(s.Name()) }

func (s Server) address() raft.ServerAddress { return raft.ServerAddress(s.Name() + "@" + s.Address) }

// ParseServer parses a server's String.
func ParseServer(address string) (Server, error) {
	name, at, ok := strings.Cut(address, "@")
	id, store, dot := strings.Cut(name, ".")
	node, err := strconv.ParseUint(id, 10, 32)
	number, err2 := strconv.ParseUint(store, 16, 64)
	if !ok || !dot || err != nil || err2 != nil || node == 0 || number == 0 || len(store) != 16 {
		return Server{}, fmt.Errorf("%q is not the name of a voter: want one such as 3.9f86d081884c7d65@host:7379", address)
	}
	return Server{directory.NodeID(node), number, at}, nil
}

// parseServer returns the server with a raft ID and a raft address.
func parseServer(id raft.ServerID, address raft.ServerAddress) (Server, error) {
	s, err := ParseServer(string(address))
	if err == nil && s.id() != id {
		err = fmt.Errorf("the voter %q has the address %q, which is that of another voter", id, address)
	}
	return s, err
}

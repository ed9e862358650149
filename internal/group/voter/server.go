package voter

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// Server names a voter: a node with a certain file. Raft's names of it are
//
//	ID       3.9f86d081884c7d65                    node and store
//	address  3.9f86d081884c7d65@host:7379          connections name the voter that they want
type Server struct {
	Node    directory.NodeID
	Store   uint64 // the random number in its file; never 0
	Address string // host:port of the group's port
}

// String returns the server as messages show it.
func (s Server) String() string { return string(s.address()) }

// Name returns what names the server to others: node and store.
func (s Server) Name() string { return fmt.Sprintf("%d.%016x", s.Node, s.Store) }

func (s Server) id() raft.ServerID { return raft.ServerID(s.Name()) }

func (s Server) address() raft.ServerAddress { return raft.ServerAddress(s.Name() + "@" + s.Address) }

// ParseServer returns the server with an address, as String returns it.
func ParseServer(address string) (Server, error) {
	name, at, ok := strings.Cut(address, "@")
	id, store, dot := strings.Cut(name, ".")
	node, err := strconv.ParseUint(id, 10, 32)
	number, err2 := strconv.ParseUint(store, 16, 64)
	if !ok || !dot || err != nil || err2 != nil || node == 0 || number == 0 || len(store) != 16 {
		return Server{}, fmt.Errorf("%q does not name a voter: want one such as 3.9f86d081884c7d65@host:7379", address)
	}
	return Server{directory.NodeID(node), number, at}, nil
}

// parseServer returns the server that raft has by an ID and an address.
func parseServer(id raft.ServerID, address raft.ServerAddress) (Server, error) {
	s, err := ParseServer(string(address))
	if err == nil && s.id() != id {
		err = fmt.Errorf("the voter %q has the address %q of another one", id, address)
	}
	return s, err
}

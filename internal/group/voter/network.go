package voter

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// Streams are the connections between voters: those of internal/group/port.
type Streams interface {
	// Streams returns the listener of the streams that other voters open.
	Streams() net.Listener
	// DialStream opens a stream to the voter of a name (Server.Name) at an address. The voter that is there refuses if it has
	// another name.
	DialStream(ctx context.Context, address, name string) (net.Conn, error)
}

// pooled is the number of idle connections that raft keeps for each voter: one carries heartbeats, one entries.
const pooled = 2

// Over returns the transport of raft over streams. timeout is the limit of each message and of its answer. Closing the transport, as
// Voter.Close does, leaves the streams' owner open.
func Over(s Streams, self Server, timeout time.Duration, log *slog.Logger) Transport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: layer{s.Streams(), s, self}, MaxPool: pooled, Timeout: timeout, Logger: logger{log}})
}

// layer implements raft.StreamLayer.
type layer struct {
	net.Listener
	streams Streams
	self    Server
}

// Addr returns the name of the voter, and its address: what raft tells other voters.
func (l layer) Addr() net.Addr { return serverAddr{l.self} }

// Dial opens a stream to a voter.
func (l layer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	s, err := ParseServer(string(address))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return l.streams.DialStream(ctx, s.Address, s.Name())
}

// serverAddr is a Server as a net.Addr.
type serverAddr struct{ Server }

// Network returns "tcp".
func (serverAddr) Network() string { return "tcp" }

package voter

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// Streams opens the connections between voters. port.Port implements it.
type Streams interface {
	// Streams returns the listener for streams of other voters.
	Streams() net.Listener
	// DialStream opens a stream to the voter with a name (Server.Name) at an address. A voter with a different name
	// refuses.
	DialStream(ctx context.Context, address, name string) (net.Conn, error)
}

// pooled is the number of idle connections that raft keeps to each voter: one for heartbeats and one for entries.
const pooled = 2

// Over returns raft's transport over streams. timeout is the limit of each message and of its answer. Closing the
// transport, as Voter.Close does, does not close the owner of the streams.
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

// Addr returns the voter's name and address, as raft sends them to other voters.
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

package conn

import (
	"context"

	"github.com/ebbdb/ebb/internal/drivers"
)

// PendingReply returns err, the error of a call that ends before the reply to its command has come, so that what takes back the
// call's effects can wait for that reply. A Driver uses it where the command may run after the commands of later calls, because
// these travel on other connections. reply returns the reply when it has come; ok is false if it can come no more, and if its ctx
// has ended. It may be called more than once.
func PendingReply(err error, reply func(ctx context.Context) (v Value, ok bool)) error {
	return drivers.PendingReply(err, reply)
}

// NoReply returns err, the error of a call whose command was sent and got no reply: its connection has ended, or its time limit
// has passed. The command may still reach the server, because proxies close a connection before they have passed on what it
// carried. again has a function run some time later, in a goroutine that the Driver's Close waits for; life ends with the Driver.
func NoReply(err error, again func(fn func(life context.Context))) error {
	return drivers.NoReply(err, again)
}

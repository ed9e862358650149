package remote

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/kit"
)

// GraceAfterEnd is the time for which a command waits for its reply after its callers have gone. A caller that takes back what
// its call may have done waits for that reply: see drivers.AwaitReply.
const GraceAfterEnd = kit.GraceAfterEnd

// brief is the time to a deadline that EndsSoon calls near.
const brief = 250 * time.Millisecond

// EndsSoon reports whether the deadline of ctx is near. A driver then runs the command in a goroutine of its own, with a later
// deadline: client libraries close a connection whose only call reaches its deadline, and then no reply tells when the server
// has read the command.
func EndsSoon(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ok && time.Until(at) < brief
}

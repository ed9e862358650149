package near

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/conn"
)

// ErrNoMember is in the chain of the error of a search around a member that the index does not
// have.
var ErrNoMember = errors.New("there is no such member")

// failed adds the index and the operation to an error.
func (x *Index) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	var r conn.ReplyError
	if errors.As(err, &r) && (strings.Contains(string(r), "could not decode requested zset member") || // ebb, Redis
		strings.HasPrefix(string(r), "ERR member ")) { // Valkey 9: ERR member <name> does not exist
		err = ErrNoMember
	}
	return fmt.Errorf("near %q: %s: %w", x.name, doing, err)
}

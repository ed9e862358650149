package routing

import (
	"strings"

	"github.com/ebbdb/ebb/resp"
)

// Untouched reports whether an error reply says that nothing was run, for a reason that
// passes: another node has the key, or the server is not ready. A script that writes
// where it must not is stopped at its first write.
func Untouched(v resp.Value) bool {
	if v.Kind != resp.KindError {
		return false
	}
	code, rest, _ := strings.Cut(v.Str, " ")
	switch code {
	case "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY":
		return true
	case "UNBLOCKED": // by a failover or a moved slot, and not by CLIENT UNBLOCK
		return strings.HasPrefix(rest, "force unblock")
	case "ERR":
		return strings.HasPrefix(rest, "max number of clients reached")
	}
	return false
}

// Redirect reads MOVED and ASK.
func Redirect(v resp.Value) (addr string, ask, ok bool) {
	if v.Kind != resp.KindError {
		return "", false, false
	}
	words := strings.Fields(v.Str)
	if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return "", false, false
	}
	return words[2], words[0] == "ASK", true
}

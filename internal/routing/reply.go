package routing

import (
	"strings"

	"github.com/ebbdb/ebb/resp"
)

// Untouched reports whether an error reply says that the command did not run, for a
// temporary reason: another node has the key, or the server is not ready. A script that
// must not write is stopped before its first write.
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

// Redirect returns the address in a reply MOVED or ASK. ask reports that it is ASK; ok is
// false for other replies.
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

package replication

import (
	"errors"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/oplog"
)

// Announced holds the options that a client has sent with REPLCONF before it requests the
// stream. The zero value is a client that has sent none.
type Announced struct {
	port    int
	ip      string
	eof     bool          // capa eof: it accepts snapshots without a length
	psync2  bool          // capa psync2: it accepts a new name of the stream in +CONTINUE
	ebb     bool          // capa ebb: it supports ebb's own commands
	knows   oplog.Dialect // the commands that it supports besides those of Redis 7.0; for clients without capa ebb
	rdbOnly bool          // it wants a snapshot and no stream
	data    bool          // rdb-filter-only: the snapshot has the functions and no data
	group   string        // the greeting of a member of a group; "": the client is not a member
}

// validHost reports whether s can be an address or a host name: letters, digits and
// .-_:%[]. INFO, ROLE, the log and metrics show it. "" is not an address, and valid.
func validHost(s string) bool {
	for _, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && !('0' <= c && c <= '9') && strings.IndexByte(".-_:%[]", c) < 0 {
			return false
		}
	}
	return true
}

// Take handles one option of REPLCONF, in lower case, and its value. The text of an error is the error reply without
// "ERR ".
func (a *Announced) Take(option, value string) error {
	switch option {
	case "listening-port":
		port, ok := numeral.ParseInt([]byte(value))
		if !ok {
			return errors.New("value is not an integer or out of range")
		}
		if port < 0 || port > 65535 {
			return errors.New("REPLCONF listening-port must be 0 to 65535")
		}
		a.port = int(port)
	case "ip-address":
		if len(value) > 255 {
			return errors.New("REPLCONF ip-address provided by replica instance is too long: " + value[:64] + "...")
		}
		if !validHost(value) {
			return errors.New("REPLCONF ip-address must be an address or a host name")
		}
		a.ip = value
	case "capa":
		switch strings.ToLower(value) {
		case "eof":
			a.eof = true
		case "psync2":
			a.psync2 = true
		case "ebb":
			a.ebb = true
		case "rdb-channel-repl": // Redis from 8.0 on sends this with any configuration
			a.knows = max(a.knows, oplog.Redis8)
		}
	case "rdb-only":
		a.rdbOnly = value != "0"
	case "rdb-filter-only":
		for _, what := range strings.Fields(strings.ToLower(value)) {
			if what != "functions" {
				return errors.New("Unsupported rdb-filter-only option: " + what)
			}
		}
		a.data = true
	case "version": // Valkey from 8.1 on sends this
		if major, err := strconv.Atoi(strings.SplitN(value, ".", 2)[0]); err == nil && major >= 9 {
			a.knows = oplog.Valkey9
		}
	case "group":
		if len(value) > maxGreeting || !printable(value) {
			return errors.New("REPLCONF group must be at most " + strconv.Itoa(maxGreeting) + " printable characters")
		}
		a.group = value
	case "getack":
	case "ack", "fack":
		return errors.New("REPLCONF ACK is for replicas: send PSYNC first")
	default:
		return errors.New("Unrecognized REPLCONF option: " + option)
	}
	return nil
}

// maxGreeting is the largest number of bytes of a greeting.
const maxGreeting = 256

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return s != ""
}

// describeCapa returns the capabilities of a replica, for the log.
func (a *Announced) describeCapa() string {
	var l []string
	for name, on := range map[string]bool{"eof": a.eof, "psync2": a.psync2, "ebb": a.ebb} {
		if on {
			l = append(l, name)
		}
	}
	return strings.Join(l, " ")
}

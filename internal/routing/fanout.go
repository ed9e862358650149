package routing

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/resp"
)

// FanOutFunc runs a command that concerns all masters of a cluster. There is at least one
// master; the addresses are sorted. ask runs the command on the master at an index of
// addrs; a cursor that is not "" replaces the command's own. The function calls ask for
// one master after the other, until one fails; the error names that master.
type FanOutFunc func(addrs []string, ask RunOn) (resp.Value, error)

// RunOn runs a command of a FanOutFunc on the master at index at of the addresses. A cursor that is not "" replaces the command's own.
type RunOn func(at int, cursor string) (resp.Value, error)

// FanOut says how a command that concerns all masters of a cluster runs, and how their
// replies become one.
type FanOut uint8

const (
	FanOutNone FanOut = iota // the command does not concern all masters
	FanOutLast               // the last reply
	FanOutSum                // the sum of the integers
	FanOutJoin               // the elements of all arrays
	FanOutAny                // the first reply that is not null
	FanOutScan               // one master after the other, by the cursor
)

// FanOutOf returns the function that runs a command which concerns all masters, by its
// name and its second word ("" if there is none); nil for all other commands.
func FanOutOf(name, second string) FanOutFunc {
	c := Find(name, second)
	if c == nil {
		return nil
	}
	switch c.FanOut {
	case FanOutLast:
		return last
	case FanOutSum:
		return sum
	case FanOutJoin:
		return join
	case FanOutAny:
		return some
	case FanOutScan:
		return func(addrs []string, ask RunOn) (resp.Value, error) { return scan(second, addrs, ask) }
	}
	return nil
}

// each calls ask for each master until one fails or enough returns true. An error reply
// counts as a failure too.
func each(addrs []string, ask RunOn, enough func(v resp.Value) bool) error {
	for at, addr := range addrs {
		v, err := ask(at, "")
		if err == nil {
			err = v.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
		if enough(v) {
			break
		}
	}
	return nil
}

func last(addrs []string, ask RunOn) (last resp.Value, err error) {
	err = each(addrs, ask, func(v resp.Value) bool { last = v; return false })
	return last, err
}

func some(addrs []string, ask RunOn) (some resp.Value, err error) {
	err = each(addrs, ask, func(v resp.Value) bool { some = v; return !v.IsNull() })
	return some, err
}

func sum(addrs []string, ask RunOn) (resp.Value, error) {
	sum := resp.Value{Kind: resp.KindInt}
	err := each(addrs, ask, func(v resp.Value) bool { sum.Int += v.Int; return false })
	return sum, err
}

func join(addrs []string, ask RunOn) (resp.Value, error) {
	all := resp.Value{Kind: resp.KindArray}
	err := each(addrs, ask, func(v resp.Value) bool { all.Elems = append(all.Elems, v.Elems...); return false })
	return all, err
}

// scan runs SCAN on one master after the other, by address. Its cursor is "node/cursor",
// and "0" at both ends. It may miss keys of a slot that moves meanwhile, or return them
// twice.
func scan(cursor string, addrs []string, ask RunOn) (resp.Value, error) {
	at := 0
	if addr, inner, ok := strings.Cut(cursor, "/"); ok {
		cursor = inner
		for at < len(addrs) && addrs[at] < addr {
			at++
		}
		if at == len(addrs) {
			return scanReply("0", nil), nil
		}
		if addrs[at] != addr {
			cursor = "0" // that one is no longer a master
		}
	} else if cursor != "0" && cursor != "" { // without a cursor, a server replies with the error
		return resp.Value{Kind: resp.KindError, Str: "ERR invalid cursor"}, nil
	}
	v, err := ask(at, cursor)
	if err != nil || v.Err() != nil || len(v.Elems) != 2 {
		return v, err
	}
	next := v.Elems[0].String()
	switch {
	case next != "0":
		next = addrs[at] + "/" + next
	case at+1 < len(addrs):
		next = addrs[at+1] + "/0"
	}
	return scanReply(next, v.Elems[1].Elems), nil
}

func scanReply(cursor string, keys []resp.Value) resp.Value {
	return resp.Value{Kind: resp.KindArray, Elems: []resp.Value{{Kind: resp.KindBulk, Str: cursor}, {Kind: resp.KindArray, Elems: keys}}}
}

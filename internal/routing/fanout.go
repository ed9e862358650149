package routing

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/resp"
)

// FanOutFunc runs a command that concerns all masters of a cluster. There is at least one;
// their addresses are sorted. ask runs it on the one at a place, with another cursor for
// the command's own unless that is "". They are asked one after the other, until one
// fails; the error names it.
type FanOutFunc func(addrs []string, ask RunOn) (resp.Value, error)

// RunOn runs a command of a FanOutFunc on one master.
type RunOn func(at int, cursor string) (resp.Value, error)

// FanOut says how a command that concerns all masters of a cluster runs, and how their
// replies become one.
type FanOut uint8

const (
	FanOutNone FanOut = iota // it does not concern all masters
	FanOutLast               // the last reply
	FanOutSum                // the sum of the integers
	FanOutJoin               // the elements of all arrays
	FanOutAny                // the first reply that is not null
	FanOutScan               // one master after the other, by the cursor
)

// FanOutOf returns how a command runs, by its name and its second word (""), that concerns
// all masters; nil for all other commands.
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

// each asks until one fails or enough returns true. The error is that of a reply too.
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

// scan is SCAN over one master after the other, by address. Its cursor is
// "node/cursor", and "0" at both ends. Keys of a slot that moves meanwhile may be missed
// or come twice.
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
	} else if cursor != "0" && cursor != "" { // without one, a server says what is wrong
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

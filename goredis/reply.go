package goredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/resp"
)

// plainArgs converts the arguments to types that go-redis writes as they are. The name
// becomes a string.
func plainArgs(args []any) ([]any, error) {
	plain := make([]any, len(args))
	for i, a := range args {
		switch a.(type) {
		case string, int, int64, uint64:
			plain[i] = a
			continue
		case []byte:
			if i > 0 {
				plain[i] = a
				continue
			}
		}
		s, err := driverutil.ArgText(a)
		if err != nil {
			return nil, err
		}
		plain[i] = s
	}
	return plain, nil
}

// tracked is a command that knows whether it was written to a connection, as a whole or in
// part. go-redis calls Args when it writes the command. If a hook of the program calls
// Args earlier, the command counts as written, and the driver does not send it again.
type tracked struct {
	redis.Cmd
	sent bool
}

// Args implements redis.Cmder.
func (c *tracked) Args() []any {
	c.sent = true
	return c.Cmd.Args()
}

// newTracked returns a command of plain arguments.
func newTracked(ctx context.Context, plain []any) *tracked {
	return &tracked{Cmd: *redis.NewCmd(ctx, plain...)}
}

// answer returns the result of a command. An error reply is a Value; an error means that
// there was no reply. whole is the error of its batch: go-redis does not always pass that
// on to the commands, which then have neither an error nor a value.
func (c *tracked) answer(ctx context.Context, whole error) remote.Answer {
	if c.Err() == nil && c.Val() == nil && whole != nil {
		c.SetErr(whole)
	}
	v, err := reply(ctx, &c.Cmd)
	return remote.Answer{V: v, Err: err, Ran: c.sent && (err != nil || !routing.Untouched(v))}
}

// reply returns the reply of a command, or the error if there was none.
func reply(ctx context.Context, cmd *redis.Cmd) (conn.Value, error) {
	x, err := cmd.Result()
	if err == nil {
		return valueOf(x), nil
	}
	if v, ok := errorValue(err); ok {
		return v, nil
	}
	return conn.Value{}, lost(ctx, cmd.Name(), err)
}

// policy is the policy of a single server, for functions that do not have the driver.
var policy = remote.Policy{Name: "ebb"}

// lost returns the error of a call for which go-redis got no reply.
func lost(ctx context.Context, doing string, err error) error {
	if errors.Is(err, redis.ErrClosed) {
		return conn.ErrClosed
	}
	return driverutil.Unavailable(ctx, doing, err)
}

// errorValue converts the errors that go-redis returns for null and error replies back to
// Values. Errors that are joined are not the reply to the call: they are those of Sentinels that
// know no master, and the call was not sent.
func errorValue(err error) (conn.Value, bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		if err == redis.Nil {
			return conn.Value{Kind: resp.KindNull}, true
		}
		if r, ok := err.(redis.Error); ok {
			return conn.Value{Kind: resp.KindError, Str: r.Error()}, true
		}
	}
	return conn.Value{}, false
}

// valueOf converts a reply that go-redis decoded to a Value. The keys of a map are sorted.
func valueOf(x any) conn.Value {
	switch x := x.(type) {
	case nil:
		return conn.Value{Kind: resp.KindNull}
	case string:
		return conn.Value{Kind: resp.KindBulk, Str: x}
	case int64:
		return conn.Value{Kind: resp.KindInt, Int: x}
	case float64:
		return conn.Value{Kind: resp.KindDouble, Float: x}
	case bool:
		v := conn.Value{Kind: resp.KindBool}
		if x {
			v.Int = 1
		}
		return v
	case error:
		if v, ok := errorValue(x); ok {
			return v
		}
		return conn.Value{Kind: resp.KindError, Str: "ERR " + x.Error()}
	case []any:
		v := conn.Value{Kind: resp.KindArray, Elems: slices.Grow([]conn.Value(nil), len(x))}
		for _, e := range x {
			v.Elems = append(v.Elems, valueOf(e))
		}
		return v
	case map[any]any:
		return mapValue(x)
	case interface{ String() string }: // big numbers
		return conn.Value{Kind: resp.KindBigNumber, Str: x.String()}
	}
	return conn.Value{Kind: resp.KindError, Str: fmt.Sprintf("ERR the reply has the unknown Go type %T", x)}
}

func mapValue(m map[any]any) conn.Value {
	type pair struct{ k, v conn.Value }
	pairs := make([]pair, 0, len(m))
	for k, e := range m {
		pairs = append(pairs, pair{valueOf(k), valueOf(e)})
	}
	sort.Slice(pairs, func(i, j int) bool { return pairs[i].k.String() < pairs[j].k.String() })
	v := conn.Value{Kind: resp.KindMap, Elems: slices.Grow([]conn.Value(nil), 2*len(pairs))}
	for _, p := range pairs {
		v.Elems = append(v.Elems, p.k, p.v)
	}
	return v
}

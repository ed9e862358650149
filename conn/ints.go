package conn

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/resp"
)

// Ints is a reply of integers: one integer, an array of a few, or null.
type Ints struct {
	N  int      // the number of integers; 0 for null
	At [6]int64 // the first N
}

// Ints runs one command of texts whose reply is integers. It costs less than Do. Another reply,
// and more integers than an Ints holds, is resp.ErrType, as in Value.AsInt; an error reply is
// the error. The caller must not change a slice that it passes as words..., also not after the
// call.
func (c *Conn) Ints(ctx context.Context, words ...string) (Ints, error) {
	if err := checkWords(words); err != nil {
		return Ints{}, err
	}
	if ctx.Err() != nil {
		return Ints{}, Ended(ctx, words[0])
	}
	return c.runInts(ctx, words)
}

// ScriptInts does the work of Script for a script that returns integers, as Ints does that of
// Do. The first keys of the words are the script's keys, the others its arguments. It keeps no
// words.
func (c *Conn) ScriptInts(ctx context.Context, s *Script, keys int, words ...string) (Ints, error) {
	if ctx.Err() != nil {
		return Ints{}, Ended(ctx, "EVALSHA")
	}
	got, err := c.scriptInts(ctx, "EVALSHA", s.sha, s.boxed, keys, words)
	var refused ReplyError
	if err != nil && errors.As(err, &refused) && refused.Code() == "NOSCRIPT" {
		return c.scriptInts(ctx, "EVAL", s.text, s.text, keys, words)
	}
	return got, err
}

// scriptInts makes the request in the form in which it goes on.
func (c *Conn) scriptInts(ctx context.Context, name, which string, boxed any, keys int, words []string) (Ints, error) {
	if c.intArgs != nil {
		args := make([]any, 3+len(words))
		args[0], args[1], args[2] = name, boxed, keys
		for i, w := range words {
			args[3+i] = w
		}
		return c.intArgs.IntArgs(ctx, args)
	}
	all := make([]string, 3+len(words))
	all[0], all[1], all[2] = name, which, strconv.Itoa(keys)
	copy(all[3:], words)
	return c.runInts(ctx, all)
}

// runInts goes the shortest way that a Driver has.
func (c *Conn) runInts(ctx context.Context, words []string) (Ints, error) {
	switch {
	case c.intArgs != nil:
		return c.intArgs.IntArgs(ctx, boxed(words))
	case c.ints != nil:
		return c.ints.Ints(ctx, words)
	}
	return IntsOf(c.d.Do(ctx, boxed(words)))
}

// IntsOf reads a reply as Conn.Ints returns it, for Drivers. It returns a non-nil err
// unchanged.
func IntsOf(v Value, err error) (got Ints, _ error) {
	if err != nil || v.IsNull() {
		return got, err
	}
	elems := v.Elems
	switch {
	case v.Err() != nil:
		return got, v.Err()
	case v.Kind != resp.KindArray && v.Kind != resp.KindSet:
		got.N = 1
		got.At[0], err = v.AsInt()
		return got, err
	case len(elems) > len(got.At):
		return got, fmt.Errorf("%w: %d integers, with room for %d", resp.ErrType, len(elems), len(got.At))
	}
	for i := range elems {
		if got.At[i], err = elems[i].AsInt(); err != nil {
			return Ints{}, err
		}
	}
	got.N = len(elems)
	return got, nil
}

// Value returns the integers as a reply, for Drivers. An array of one integer becomes that integer.
func (i Ints) Value() Value {
	switch i.N {
	case 0:
		return Value{Kind: resp.KindNull}
	case 1:
		return Value{Kind: resp.KindInt, Int: i.At[0]}
	}
	v := Value{Kind: resp.KindArray}
	for _, n := range i.At[:i.N] {
		v.Elems = append(v.Elems, Value{Kind: resp.KindInt, Int: n})
	}
	return v
}

// boxed returns texts as arguments.
func boxed(words []string) []any {
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	return args
}

// checkWords is checkCommand for texts.
func checkWords(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("%w: there is no command", ErrArgument)
	}
	word := func(i int) string { return words[i] }
	return checkState(routing.Of(len(words), word), words[0], words[min(1, len(words)-1)])
}

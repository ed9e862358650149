package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// functions compares the libraries of functions of the sources with the target's. One that differs is looked at again, as
// keys are.
func (c *comparison) functions(ctx context.Context) error {
	var differ []string
	for round := 1; round <= sureRounds; round++ {
		from := map[string]string{}
		for _, f := range c.m.from {
			libraries, ok, err := functionsOf(ctx, f)
			if err != nil {
				return err
			}
			if !ok {
				c.m.out.line("functions are not compared: FROM %s does not list them (FUNCTION LIST)", f)
				return nil
			}
			maps.Copy(from, libraries)
		}
		if err := c.settle(ctx, round); err != nil {
			return err
		}
		to, ok, err := functionsOf(ctx, c.m.to)
		if err != nil {
			return err
		}
		if !ok && len(from) > 0 {
			c.m.out.line("functions are not compared: TO %s does not list them (FUNCTION LIST)", c.m.to)
			return nil
		}
		if differ = differentFunctions(from, to); len(differ) == 0 {
			return nil
		}
	}
	c.libs = int64(len(differ))
	c.shown = append(c.shown, differ[:min(len(differ), shownKeys)]...)
	return nil
}

func differentFunctions(from, to map[string]string) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if code, ok := to[name]; !ok {
			lines = append(lines, fmt.Sprintf("library of functions %s: TO does not have it", wire.AppendQuoted(nil, name)))
		} else if code != from[name] {
			lines = append(lines, fmt.Sprintf("library of functions %s: its code differs", wire.AppendQuoted(nil, name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if _, ok := from[name]; !ok {
			lines = append(lines, fmt.Sprintf("library of functions %s: FROM does not have it", wire.AppendQuoted(nil, name)))
		}
	}
	return lines
}

// functionsOf returns the code of a server's libraries, by name. Servers before 7.0 have none. ok is false if the user may not list them.
func functionsOf(ctx context.Context, p *peer) (code map[string]string, ok bool, _ error) {
	v, err := p.do(ctx, "FUNCTION", "LIST", "WITHCODE")
	if _, ok := errors.AsType[resp.ReplyError](err); ok {
		return nil, !p.exact, nil // PEXPIRETIME came with the functions
	}
	if err != nil {
		return nil, false, err
	}
	code = map[string]string{}
	for _, library := range v.Elems {
		var name, text string
		for i := 0; i+1 < len(library.Elems); i += 2 {
			switch library.Elems[i].Str {
			case "library_name":
				name = library.Elems[i+1].Str
			case "library_code":
				text = library.Elems[i+1].Str
			}
		}
		code[name] = text
	}
	return code, true, nil
}

package cli

import (
	"fmt"
	"os"
	"slices"
	"strconv"
)

// evalArgs converts the script's file, its keys and, after a single comma, its arguments
// to EVAL.
func (c *client) evalArgs() ([]string, error) {
	script, err := os.ReadFile(c.opt.Eval)
	if err != nil {
		return nil, fmt.Errorf("Can't open file '%s': %s", c.opt.Eval, describe(err))
	}
	keys, args := c.opt.Command, []string(nil)
	if i := slices.Index(keys, ","); i >= 0 {
		keys, args = keys[:i], keys[i+1:]
	}
	return slices.Concat([]string{"EVAL", string(script), strconv.Itoa(len(keys))}, keys, args), nil
}

// eval runs the script of a file, as often as -r says.
func (c *client) eval() int {
	args, err := c.evalArgs()
	if err != nil {
		fmt.Fprintln(c.env.Err, err)
		return 1
	}
	c.opt.Command = args
	return c.command()
}

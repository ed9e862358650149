package cli

import (
	"fmt"
	"strconv"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// scan prints all keys, one a line: quoted for people, as they are otherwise.
func (c *client) scan() int {
	cursor := "0"
	for {
		v, err := c.conn.do(c.scanArgs(cursor)...)
		if err == nil && (len(v.Elems) != 2 || v.Elems[1].Kind != resp.KindArray) {
			err = fmt.Errorf("unexpected reply to SCAN: %s", v)
		}
		if err != nil {
			fmt.Fprintln(c.env.Err, "ERROR:", describe(err))
			return 1
		}
		c.keys(v.Elems[1].Elems)
		if cursor = v.Elems[0].String(); cursor == "0" {
			return 0
		}
		if !c.pause(c.opt.Interval) {
			return 1
		}
	}
}

func (c *client) scanArgs(cursor string) []string {
	args := []string{"SCAN", cursor}
	if c.opt.Pattern != "" {
		args = append(args, "MATCH", c.opt.Pattern)
	}
	if c.opt.ScanCount > 0 {
		args = append(args, "COUNT", strconv.Itoa(c.opt.ScanCount))
	}
	if c.opt.ScanType != "" {
		args = append(args, "TYPE", c.opt.ScanType)
	}
	return args
}

func (c *client) keys(batch []resp.Value) {
	var out []byte
	for _, k := range batch {
		if c.out.format == FormatTTY {
			out = wire.AppendQuoted(out, k.Str)
		} else {
			out = append(out, k.Str...)
		}
		out = append(out, '\n')
	}
	_, _ = c.env.Out.Write(out)
}

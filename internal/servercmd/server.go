package servercmd

import (
	"fmt"
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
)

var serverSpecs = []*command.Spec{&specACL, &command.SpecCommand, &specConfig, &specDebug, &specGroup, &specHotKeys, &specInfo,
	&specLatency, &specLolwut, &specMemory, &specFailover, &specModule, &specMonitor, &specReplicaof, &specRole, &specSlaveof,
	&specSlowlog, &specShutdown, &specTime}

var specTime = command.Spec{
	Name: "time", Group: command.GroupServer, Since: "2.6.0", Complexity: "O(1)",
	Summary: "Returns the server's time: seconds since 1970, and microseconds of the current one.",
	Flags:   command.Loading | command.Stale | command.Fast | command.Inert,
	Tips:    []string{"nondeterministic_output"},
	Examples: `
> TIME
1) "1700000000"
2) "0"
~ 1500ms
> TIME
1) "1700000001"
2) "500000"
`,
	Run: runTime,
}

func runTime(c *command.Ctx) error {
	now := c.Now()
	c.Out.Array(2)
	c.Out.BulkInt(now / 1e6)
	c.Out.BulkInt(now % 1e6)
	return nil
}

var specLolwut = command.Spec{
	Name: "lolwut", Group: command.GroupServer, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Draws something, and says which version drew it.",
	Flags:   command.ReadOnly | command.Fast,
	Args:    []command.Arg{command.Opt(command.TokenArg("VERSION", command.Int("version")))},
	Replies: "A text.",
	Examples: "> LOLWUT VERSION x\n(error) ERR value is not an integer or out of range\n> LOLWUT\n\"$_Redis ver. 7.4.0, ebb " +
		admin.Version + "\\n\"\n",
	Run: runLolwut,
}

func runLolwut(c *command.Ctx) error {
	if len(c.Args) >= 3 && command.EqualFold(c.Args[1], "VERSION") {
		if _, ok := numeral.ParseInt(c.Args[2]); !ok {
			return command.ErrNotInteger
		}
	}
	c.Out.Verbatim("txt", fmt.Sprintf("%s\nThe tide goes out. Redis ver. %s, ebb %s\n", tide(66, 9), admin.RedisVersion, admin.Version))
	return nil
}

// tide draws waves that lose height from left to right.
func tide(width, height int) string {
	rows := make([][]byte, height)
	for y := range rows {
		rows[y] = []byte(strings.Repeat(" ", width))
	}
	mid := float64(height-1) / 2
	for x := range width {
		t := float64(x) / float64(width)
		level := mid + mid*math.Exp(-2.5*t)*math.Cos(t*6*math.Pi)
		top := height - 1 - int(math.Round(level))
		for y := top; y < height; y++ {
			switch {
			case y == top:
				rows[y][x] = '~'
			case (x+2*y)%7 == 0:
				rows[y][x] = '.'
			}
		}
	}
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(strings.TrimRight(string(r), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

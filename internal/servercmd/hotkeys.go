package servercmd

import (
	"slices"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/hotkeys"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/system"
)

var specHotKeys = command.Spec{
	Name: "hotkeys", Group: command.GroupServer, Since: "8.6.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands that find the keys which clients use most.",
	Sub:     []*command.Spec{&specHotKeysGet, &specHotKeysHelp, &specHotKeysReset, &specHotKeysStart, &specHotKeysStop},
}

var specHotKeysHelp = helpSince("hotkeys", "8.6.0")

var hotTips = []string{"request_policy:all_nodes", "response_policy:all_succeeded"}

const (
	errHotActive  = command.ReplyError("ERR a collection of hot keys is under way: HOTKEYS STOP ends it")
	errHotOff     = command.ReplyError("ERR hot keys are not collected: set hotkey-top-k to the number of keys, or use HOTKEYS START")
	errHotMetrics = command.ReplyError("ERR METRICS needs the number of metrics, 1 or 2, and as many of CPU and NET")
	errHotCount   = command.ReplyError("ERR COUNT must be between 1 and 128")
	errHotTime    = command.ReplyError("ERR DURATION must be between 1 and 1000000 seconds")
	errHotRatio   = command.ReplyError("ERR SAMPLE must be between 1 and 1000000")
	errHotSlots   = command.ReplyError("ERR SLOTS needs cluster-enabled, the number of slots, and as many slots from 0 to 16383")

	defaultHotKeys = 10
	maxHotNumber   = 1_000_000
)

var specHotKeysStart = command.Spec{
	Name: "hotkeys|start", Group: command.GroupServer, Since: "8.6.0", Complexity: "O(1)",
	Summary: "Begins to add up the time and the bytes of commands by key.",
	Flags:   adminFlags,
	FanOut:  command.FanOutOne,
	Tips:    hotTips,
	Args: []command.Arg{command.Block("METRICS", command.Int("count"), command.Opt(command.Token("CPU")), command.Opt(command.Token("NET"))),
		command.Opt(command.TokenArg("COUNT", command.Int("k"))), command.Opt(command.TokenArg("DURATION", command.Int("seconds"))),
		command.Opt(command.TokenArg("SAMPLE", command.Int("ratio"))),
		command.Opt(command.Block("SLOTS", command.Count("count"), command.Repeat(command.Int("slot"))))},
	Replies: "OK. The collection goes on until HOTKEYS STOP, or for DURATION seconds. It forgets the one before. " +
		"CPU adds up the time of commands, NET the bytes of requests and replies, each for all keys of the command. " +
		"Commands inside of transactions, scripts and functions count; what a master sends does not. " +
		"The server keeps 128 keys for each, and HOTKEYS GET returns COUNT of them, by default 10. SAMPLE: of this number of " +
		"commands one counts, " +
		"chosen by chance, by default each. SLOTS: only keys of these hash slots count, in a cluster.",
	Errors: []string{string(errHotActive) + ": since an earlier HOTKEYS START", string(errHotMetrics) + ": the metrics are others",
		string(errHotCount) + ": the number is outside of that", string(errHotTime) + ": the time is outside of that",
		string(errHotRatio) + ": the ratio is outside of that", string(errHotSlots) + ": the server is not a cluster, or the slots are others"},
	Examples: `
> HOTKEYS START METRICS 2 CPU NET COUNT 3
OK
> HOTKEYS STOP
OK
> HOTKEYS RESET
OK
`,
	Run: runHotKeysStart,
}

func runHotKeysStart(c *command.Ctx) error {
	o, err := parseHotKeys(c.Args[2:], c.Host.Clustered())
	if err != nil {
		return err
	}
	o.Sys, o.User = system.CPUTime()
	if session.ServiceOf(c).HotTracker().Start(o, c.Now()) != nil {
		return errHotActive
	}
	c.Out.OK()
	return nil
}

// parseHotKeys reads the arguments of HOTKEYS START.
func parseHotKeys(args [][]byte, cluster bool) (o hotkeys.Options, err error) {
	o.Keys, o.Ratio = defaultHotKeys, 1
	if len(args) < 2 || !command.EqualFold(args[0], "METRICS") {
		return o, command.ErrSyntax
	}
	metrics, _ := numeral.ParseInt(args[1])
	for args = args[2:]; len(args) > 0; args = args[1:] {
		if command.EqualFold(args[0], "CPU") && !o.CPU {
			o.CPU = true
		} else if command.EqualFold(args[0], "NET") && !o.Net {
			o.Net = true
		} else {
			break
		}
	}
	if n := command.BoolToInt(o.CPU) + command.BoolToInt(o.Net); n == 0 || n != metrics {
		return o, errHotMetrics
	}
	for ; len(args) > 0; args = args[2:] {
		if len(args) < 2 {
			return o, command.ErrSyntax
		}
		n, ok := numeral.ParseInt(args[1])
		ok = ok && n >= 1 && n <= maxHotNumber
		switch {
		case command.EqualFold(args[0], "COUNT"):
			if !ok || n > hotkeys.MaxKeys {
				return o, errHotCount
			}
			o.Keys = int(n)
		case command.EqualFold(args[0], "DURATION"):
			if !ok {
				return o, errHotTime
			}
			o.Span = n * 1e6
		case command.EqualFold(args[0], "SAMPLE"):
			if !ok {
				return o, errHotRatio
			}
			o.Ratio = int(n)
		case command.EqualFold(args[0], "SLOTS"):
			if !ok || !cluster || len(args) < int(n)+2 {
				return o, errHotSlots
			}
			if o.Slots, err = parseHotSlots(args[2 : n+2]); err != nil {
				return o, err
			}
			args = args[n:]
		default:
			return o, command.ErrSyntax
		}
	}
	if slots := o.Slots; slots != nil {
		o.Counts = func(key []byte) bool {
			_, there := slices.BinarySearch(slots, routing.Slot(key))
			return there
		}
	}
	return o, nil
}

// parseHotSlots reads hash slots, and sorts them.
func parseHotSlots(args [][]byte) (slots []int, err error) {
	for _, a := range args {
		n, ok := numeral.ParseInt(a)
		if !ok || n < 0 || n >= routing.Slots {
			return nil, errHotSlots
		}
		slots = append(slots, int(n))
	}
	slices.Sort(slots)
	return slices.Compact(slots), nil
}

var specHotKeysStop = command.Spec{
	Name: "hotkeys|stop", Group: command.GroupServer, Since: "8.6.0", Complexity: "O(1)",
	Summary: "Ends a collection of hot keys, and keeps what it has found.",
	Flags:   adminFlags,
	FanOut:  command.FanOutOne,
	Tips:    hotTips,
	Replies: "OK; nil if no collection is under way.",
	Examples: `
> HOTKEYS STOP
(nil)
`,
	Run: runHotKeysStop,
}

func runHotKeysStop(c *command.Ctx) error {
	if session.ServiceOf(c).HotTracker().Stop(c.Now()) {
		c.Out.OK()
	} else {
		c.Out.Null()
	}
	return nil
}

var specHotKeysReset = command.Spec{
	Name: "hotkeys|reset", Group: command.GroupServer, Since: "8.6.0", Complexity: "O(1)",
	Summary: "Forgets the hot keys that the server has found.",
	Flags:   adminFlags,
	FanOut:  command.FanOutOne,
	Tips:    hotTips,
	Replies: "OK. The collection of HOTKEYS START is gone, and the window that is under way starts again.",
	Errors:  []string{string(errHotActive) + ": nothing was forgotten"},
	Examples: `
> HOTKEYS RESET
OK
`,
	Run: runHotKeysReset,
}

func runHotKeysReset(c *command.Ctx) error {
	if session.ServiceOf(c).HotTracker().Reset(c.Now()) != nil {
		return errHotActive
	}
	c.Out.OK()
	return nil
}

var specHotKeysGet = command.Spec{
	Name: "hotkeys|get", Group: command.GroupServer, Since: "8.6.0", Complexity: "O(128 log 128)",
	Summary: "Returns the keys that clients use most.",
	Flags:   adminFlags,
	FanOut:  command.FanOutOne,
	Tips:    []string{"nondeterministic_output", "request_policy:all_nodes", "response_policy:special"},
	Replies: "After HOTKEYS START, and until HOTKEYS RESET, as of Redis: a map of `tracking-active`, 1 or 0; `sample-ratio`; " +
		"`selected-slots`, the slots or none for all; `all-commands-all-slots-us` and `net-bytes-all-commands-all-slots`, " +
		"the sums of all commands with keys; `collection-start-time-unix-ms` and " +
		"`collection-duration-ms`; with CPU `total-cpu-time-user-ms` and `total-cpu-time-sys-ms`, the time of the process up to " +
		"now, and `by-cpu-time-us`; with NET `by-net-bytes`. The last two have keys and numbers in turn, the greatest number first. " +
		"Sums are those of the sampled commands times `sample-ratio`, and those of keys may be too high by 1/128 of the sum.\n\n" +
		"Otherwise as of Valkey: an array of at most hotkey-top-k maps of `key`, `db` and `qps`, the calls a second, rounded, " +
		"most calls first. They are those of the last whole window of hotkey-window-seconds, and estimated from " +
		"hotkey-sampling-percentage of the commands; the array is empty before the first window has ended. CONFIG " +
		"RESETSTAT empties the windows.\n\n" +
		"The server leaves out keys of more than 1,020 bytes, and the reply keys that the user may not read.",
	Errors: []string{string(errHotOff) + ": nothing is on"},
	Examples: `
> HOTKEYS GET
(error) ERR hot keys are not collected: set hotkey-top-k to the number of keys, or use HOTKEYS START
> CONFIG SET hotkey-top-k 2 hotkey-sampling-percentage 100 hotkey-window-seconds 1
OK
> MSET a 1 b 2
OK
> INCR b
(integer) 3
~ 1000ms
> HOTKEYS GET
1) 1) "key"
   2) "b"
   3) "db"
   4) (integer) 0
   5) "qps"
   6) (integer) 2
2) 1) "key"
   2) "a"
   3) "db"
   4) (integer) 0
   5) "qps"
   6) (integer) 1
`,
	Run: runHotKeysGet,
}

func runHotKeysGet(c *command.Ctx) error {
	hot := session.ServiceOf(c).HotTracker()
	if r, ok := hot.Report(c.Now()); ok {
		putHotReport(c, &r)
		return nil
	}
	n := hot.Keys()
	w, err := hot.Last(hotkeys.MaxKeys, c.Now())
	if err != nil || n == 0 {
		return errHotOff
	}
	mayRead := c.Host.MayReadKeys(c)
	w.Keys = slices.DeleteFunc(w.Keys, func(h hotkeys.Hot) bool { return mayRead != nil && !mayRead(h.Key) })
	w.Keys = w.Keys[:min(n, len(w.Keys))]
	c.Out.Array(len(w.Keys))
	for _, h := range w.Keys {
		c.Out.Map(3)
		c.Out.BulkString("key")
		c.Out.Bulk(h.Key)
		c.Out.BulkString("db")
		c.Out.Int(int64(h.DB))
		c.Out.BulkString("qps")
		c.Out.Int(int64(h.QPS + 0.5))
	}
	return nil
}

// putHotReport replies with a collection.
func putHotReport(c *command.Ctx, r *hotkeys.Report) {
	c.Out.Map(7 + 3*int(command.BoolToInt(r.CPU)) + int(command.BoolToInt(r.Net)))
	number := func(name string, n int64) {
		c.Out.BulkString(name)
		c.Out.Int(n)
	}
	number("tracking-active", command.BoolToInt(r.Active))
	number("sample-ratio", int64(r.Ratio))
	c.Out.BulkString("selected-slots")
	c.Out.Array(len(r.Slots))
	for _, slot := range r.Slots {
		c.Out.Int(int64(slot))
	}
	number("all-commands-all-slots-us", r.Micros)
	number("net-bytes-all-commands-all-slots", r.Bytes)
	number("collection-start-time-unix-ms", r.Started/1000)
	number("collection-duration-ms", r.Took/1000)
	mayRead := c.Host.MayReadKeys(c)
	list := func(name string, all []hotkeys.Cost) {
		c.Out.BulkString(name)
		all = slices.DeleteFunc(all, func(x hotkeys.Cost) bool { return mayRead != nil && !mayRead(x.Key) })
		c.Out.Array(2 * len(all))
		for _, x := range all {
			c.Out.Bulk(x.Key)
			c.Out.Int(x.Sum)
		}
	}
	if r.CPU {
		sys, user := system.CPUTime()
		number("total-cpu-time-user-ms", (user - r.User).Milliseconds())
		number("total-cpu-time-sys-ms", (sys - r.Sys).Milliseconds())
		list("by-cpu-time-us", r.ByCPU)
	}
	if r.Net {
		list("by-net-bytes", r.ByBytes)
	}
}

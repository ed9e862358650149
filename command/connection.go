package command

var specPing = Spec{
	Name: "ping", Group: GroupConnection, Since: "1.0.0", Complexity: "O(1)",
	Summary:  "Returns the server's liveliness response.",
	Flags:    Fast,
	Args:     []Arg{Opt(Str("message"))},
	Tips:     []string{"request_policy:all_shards", "response_policy:all_succeeded"},
	Examples: "> PING\nPONG\n> PING hello\n\"hello\"\n",
	Run:      runPing,
}

func runPing(c *Ctx) error {
	if len(c.Args) > 2 {
		return WrongArity(c.Spec)
	}
	if c.Session.subs.n.Load() > 0 && c.Out.Proto != 3 {
		c.Out.Array(2)
		c.Out.BulkString("pong")
		if len(c.Args) == 2 {
			c.Out.Bulk(c.Args[1])
		} else {
			c.Out.BulkString("")
		}
		return nil
	}
	if len(c.Args) == 2 {
		c.Out.Bulk(c.Args[1])
	} else {
		c.Out.Simple("PONG")
	}
	return nil
}

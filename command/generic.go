package command

var specDel = Spec{
	Name: "del", Group: GroupGeneric, Since: "1.0.0",
	Complexity: "O(N) where N is the number of keys that will be removed.",
	Summary:    "Deletes one or more keys.",
	Flags:      Write,
	Args:       []Arg{ManyKeys("key", Remove)},
	Tips:       []string{"request_policy:multi_shard", "response_policy:agg_sum"},
	Examples:   "> SET a 1\nOK\n> SET b 2\nOK\n> DEL a b c\n(integer) 2\n",
	Run:        runDel,
}

func runDel(c *Ctx) error {
	n := int64(0)
	for _, key := range c.Args[1:] {
		if c.Tx.Del(key) {
			n++
		}
	}
	c.Out.Int(n)
	return nil
}

package command

// There is no replication: the server is a master without replicas, and answers
// as one.

func replicaArgs() []Arg {
	return []Arg{OneOf("args", Block("host-port", Str("host"), Int("port")), Block("no-one", Token("NO"), Token("ONE")))}
}

var specReplicaof = Spec{
	Name: "replicaof", Group: GroupServer, Since: "5.0.0", Complexity: "O(1)",
	Summary:  "Makes the server a master: NO ONE, which it is. It cannot be made a replica.",
	Flags:    Admin | NoScript | Stale | NoAsyncLoading,
	Args:     replicaArgs(),
	Examples: "> REPLICAOF NO ONE\nOK\n> REPLICAOF 127.0.0.1 6379\n(error) ERR there is no replication: this server is a master\n",
	Run:      runReplicaof,
}

var specSlaveof = Spec{
	Name: "slaveof", Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary:    "Is the old name of REPLICAOF.",
	Flags:      Admin | NoScript | Stale | NoAsyncLoading,
	Args:       replicaArgs(),
	Deprecated: &Deprecation{"5.0.0", "`REPLICAOF`"},
	Examples:   "> SLAVEOF NO ONE\nOK\n",
	Run:        runReplicaof,
}

func runReplicaof(c *Ctx) error {
	if EqualFold(c.Args[1], "NO") && EqualFold(c.Args[2], "ONE") {
		c.Out.OK()
		return nil
	}
	return ReplyError("ERR there is no replication: this server is a master")
}

var specFailover = Spec{
	Name: "failover", Group: GroupServer, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Would hand over to a replica; there are none, and it replies an error.",
	Flags:   Admin | NoScript | Stale,
	Args: []Arg{Opt(TokenArg("TO", Block("target", Str("host"), Int("port"), Opt(Token("FORCE"))))),
		Opt(Token("ABORT")), Opt(TokenArg("TIMEOUT", Int("milliseconds")))},
	Examples: "> FAILOVER\n(error) ERR FAILOVER requires connected replicas.\n> FAILOVER ABORT\n(error) ERR No failover in progress.\n",
	Run:      runFailover,
}

func runFailover(c *Ctx) error {
	if len(c.Args) == 2 && EqualFold(c.Args[1], "ABORT") {
		return ReplyError("ERR No failover in progress.")
	}
	return ReplyError("ERR FAILOVER requires connected replicas.")
}

package compat

// differences is the list. Its order within an area is the page's.
var differences = []Difference{
	// Commands and their descriptions.
	{"own-commands", Commands, All, "",
		"ebb has commands that the servers do not have; [own-commands.md](commands/own-commands.md) lists them.",
		"They are what ebb is for: exact deadlines of items, locks, limiters, queues."},
	{"own-options", Commands, All, "set getex hgetall smembers hscan ttl pttl persist",
		"Some commands take further options: JITTER, SLIDE, WITHTTL, and a member behind the key.",
		"An option that a server does not know is a syntax error there, so no program can depend on it."},
	{"command-list", Commands, All, "command|list command|count command|docs",
		"COMMAND LIST and COMMAND COUNT tell of ebb's commands; COMMAND DOCS has ebb's own summaries.",
		"The lists differ, and texts of Redis are not copied."},
	{"help-texts", Commands, All, "acl|help client|help cluster|help command|help config|help function|help memory|help object|help pubsub|help script|help xgroup|help xinfo|help",
		"The replies to HELP are ebb's own texts.",
		"The subcommands differ in part, and texts of Redis are not copied."},
	{"getkeys-bare", Commands, Redis7, "command|getkeys command|getkeysandflags",
		"COMMAND GETKEYS takes a command without arguments; Redis 7.0 refuses it for want of arguments.",
		"ebb does as Redis since 7.2."},

	// Replies.
	{"shortest-coordinates", Replies, Redis7, "geopos georadius georadiusbymember geosearch",
		"ebb writes coordinates with the fewest digits that read back as the same number; Redis 7.0 writes 17 decimals.",
		"ebb does as Redis since 8.0."},

	// Connections and users.
	{"acl-log-fields", Connections, Redis7, "acl|log",
		"ACL LOG has entry-id, timestamp-created and timestamp-last-updated; Redis 7.0 does not have them.",
		"ebb does as Redis since 7.2."},

	// INFO and statistics.
	{"config-defaults", Statistics, All, "config|get",
		"Some directives have another default.",
		"The page of CONFIG GET and docs/design/config.md name them."},

	// What differs between any two servers.
	{"server-identity", Nature, All, "hello info client|id client|list client|info lolwut",
		"Replies that tell of the server's name, version and process, and of its connections, are ebb's own.",
		"They describe the server that answers."},
	{"wall-clock", Nature, All, "time",
		"TIME tells of the moment.",
		"Two servers are asked one after the other."},
	{"random-choice", Nature, All, "randomkey acl|genpass",
		"Random choices differ.",
		"Each server draws by itself."},
	{"scan-cursors", Nature, All, "scan",
		"The cursors of SCAN, and the order and number of the names in a reply, are ebb's own.",
		"A cursor means a place in the server's own table. Both walks return every key that stays."},
	{"memory-sizes", Nature, All, "memory|usage memory|stats memory|doctor memory|malloc-stats",
		"Sizes in bytes are ebb's own.",
		"Records and allocators differ."},
	{"measured-times", Nature, All, "latency slowlog",
		"Measured times are not the same twice.",
		"They depend on the machine."},
	{"debug-tools", Nature, All, "debug",
		"DEBUG has ebb's own subcommands, and shows ebb's own structures.",
		"It is a tool for tests of one server."},
}

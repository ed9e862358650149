package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
)

// This command adds members together with their expiration time.

var setExSpecs = []*command.Spec{&specSAddEx}

var specSAddEx = command.Spec{
	Name: "saddex", Group: command.GroupSet, Since: "0.4.0", Complexity: "O(N) where N is the number of members being added.",
	Summary: "Adds members to a set together with their expiration time.",
	Flags:   command.Write | command.DenyOOM | command.Fast,
	Args: []command.Arg{command.Key("key", command.Update), command.OneOf("form",
		command.Block("options", command.Opt(command.OneOf("condition", command.Token("NX"), command.Token("XX"))),
			command.Opt(itemTimes("KEEPTTL")),
			command.Opt(command.TokenArg("JITTER", command.Int("percent"))),
			command.Opt(command.TokenArg("MAXLEN", command.Int("count"))), setItems.listed()),
		command.Block("short", command.Opt(command.Token("KEEPTTL")), command.Int("seconds"), command.Many("member")))},
	Replies: "The number of added members. Existing members get the expiration time as well, or lose theirs if none is given; with " +
		"KEEPTTL they keep what they have. NX leaves existing members alone, XX " +
		"adds none. " + itemTimeReplies + " With MAXLEN the command adds nothing if the set would have more unexpired " +
		"members. The short form is Dragonfly's; KEEPTTL is for existing members.",
	Errors: []string{"FULL: the set would have more members than MAXLEN allows",
		"ERR invalid number of members: nummembers is not a positive integer",
		"ERR unknown argument: X: SADDEX has no such option"},
	Examples: `
> SADDEX orders:ada NX EX 1800 MAXLEN 2 MEMBERS 2 o1 o2
(integer) 2
> SADDEX orders:ada NX EX 1800 MAXLEN 2 MEMBERS 1 o3
(error) FULL 'orders:ada' holds 2 items, 1 more would exceed MAXLEN 2
~ 1800001ms
> SADDEX orders:ada 60 o3
(integer) 1
> SMEMBERS orders:ada WITHTTL
1) 1) "o3"
   2) (integer) 60000
`,
	Run: runSAddEx,
}

func runSAddEx(c *command.Ctx) error {
	p := itemParser{c: c, f: &setItems, onlyNew: "NX", onlyOld: "XX"}
	members, err := p.members()
	if err != nil {
		return err
	}
	if err := longFields(c, len(members)); err != nil {
		return err
	}

	added, err := c.Tx.SAddEx(c.Args[1], members, p.ItemOptions)
	if err != nil {
		return err
	}

	c.Out.Int(int64(added))
	return nil
}

// members reads the two forms of SADDEX. The short form begins with a number, or with KEEPTTL and a number.
func (p *itemParser) members() ([][]byte, error) {
	args, i := p.c.Args, 2
	if command.EqualFold(args[i], "KEEPTTL") {
		i++
	}
	if _, ok := numeral.ParseInt(args[i]); !ok {
		return p.read(2, 1)
	}
	p.Keep = i == 3
	if p.time.unit = seconds; i+1 >= len(args) {
		return nil, command.WrongArity(p.c.Spec)
	}
	if err := p.time.read(p.c, args[i]); err != nil {
		return nil, err
	}
	p.Deadline = p.time.resolve(p.c)
	return args[i+1:], nil
}

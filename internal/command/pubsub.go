package command

import (
	"github.com/ebbdb/ebb/internal/pubsub"
	"github.com/ebbdb/ebb/resp"
)

var pubsubSpecs = []*Spec{&specPublish, &specPubsub, &specPsubscribe, &specPunsubscribe, &specSpublish, &specSsubscribe,
	&specSubscribe, &specSunsubscribe, &specUnsubscribe}

// subscribeFlags are those of the commands that change what a client hears.
const subscribeFlags = PubSub | NoScript | Loading | Stale

// shardKeySpec says where shard channels stand: they are routed like keys.
func shardKeySpec(last int) []KeySpec {
	return []KeySpec{{Flags: NotKey, Begin: BeginIndex, Index: 1, Find: FindRange, Last: last, Step: 1}}
}

// kindWords are the first words of the messages about a kind of subscription.
var kindWords = [3]struct{ in, out string }{{"subscribe", "unsubscribe"}, {"psubscribe", "punsubscribe"}, {"ssubscribe", "sunsubscribe"}}

var specSubscribe = Spec{
	Name: "subscribe", Group: GroupPubSub, Since: "2.0.0", Complexity: "O(N) where N is the number of channels to subscribe to.",
	Summary: "Listens for messages published to channels.",
	Flags:   subscribeFlags,
	Client:  Stateful,
	Args:    []Arg{Many("channel")},
	Replies: "A message for each channel, with the number of the client's subscriptions to channels and patterns.",
	Examples: `
> SUBSCRIBE news
1) "subscribe"
2) "news"
3) (integer) 1
2> PUBLISH news hello
(integer) 1
1< 1) "message"
2) "news"
3) "hello"
`,
	Run: func(c *Ctx) error { return runSubscribe(c, pubsub.Channel) },
}

var specPsubscribe = Spec{
	Name: "psubscribe", Group: GroupPubSub, Since: "2.0.0", Complexity: "O(N) where N is the number of patterns to subscribe to.",
	Summary: "Listens for messages published to channels that match patterns.",
	Flags:   subscribeFlags,
	Client:  Stateful,
	Args:    []Arg{Repeat(Block("pattern", Pattern("pattern")))},
	Examples: `
> PSUBSCRIBE n*
1) "psubscribe"
2) "n*"
3) (integer) 1
2> PUBLISH news hello
(integer) 1
1< 1) "pmessage"
2) "n*"
3) "news"
4) "hello"
`,
	Run: func(c *Ctx) error { return runSubscribe(c, pubsub.Pattern) },
}

var specSsubscribe = Spec{
	Name: "ssubscribe", Group: GroupPubSub, Since: "7.0.0", Complexity: "O(N) where N is the number of shard channels to subscribe to.",
	Summary:  "Listens for messages published to shard channels.",
	Flags:    subscribeFlags,
	Client:   Stateful,
	Args:     []Arg{Many("shardchannel")},
	KeySpecs: shardKeySpec(-1),
	Examples: `
> SSUBSCRIBE news
1) "ssubscribe"
2) "news"
3) (integer) 1
2> SPUBLISH news hello
(integer) 1
1< 1) "smessage"
2) "news"
3) "hello"
`,
	Run: func(c *Ctx) error { return runSubscribe(c, pubsub.Shard) },
}

func runSubscribe(c *Ctx, k pubsub.Kind) error {
	word := kindWords[k].in
	serviceOf(c).pubsub.Subscribe(sessionOf(c), k, c.Args[1:], func(name []byte, n int) { c.confirm(word, name, n) })
	sessionOf(c).stayAllowed(k, c.Args[1:])
	return nil
}

// confirm tells the client of a subscription that came or went; a nil name
// stands for none. It is a message, so CLIENT REPLY does not silence it.
func (c *Ctx) confirm(word string, name []byte, count int) {
	silent := sessionOf(c).reply != replyOn
	w, quiet := c.Out, resp.Writer{Proto: c.Out.Proto}
	if silent {
		w = &quiet
	}
	w.Push(3)
	w.BulkString(word)
	if name == nil {
		w.Null()
	} else {
		w.Bulk(name)
	}
	w.Int(int64(count))
	if silent {
		sessionOf(c).Push(quiet.Buf)
	}
}

var specUnsubscribe = Spec{
	Name: "unsubscribe", Group: GroupPubSub, Since: "2.0.0", Complexity: "O(N) where N is the number of channels to unsubscribe.",
	Summary: "Stops listening to channels, or to all of them.",
	Flags:   subscribeFlags,
	Client:  Stateful,
	Args:    []Arg{Opt(Many("channel"))},
	Examples: `
> SUBSCRIBE news
1) "subscribe"
2) "news"
3) (integer) 1
> UNSUBSCRIBE
1) "unsubscribe"
2) "news"
3) (integer) 0
> UNSUBSCRIBE
1) "unsubscribe"
2) (nil)
3) (integer) 0
`,
	Run: func(c *Ctx) error { return runUnsubscribe(c, pubsub.Channel) },
}

var specPunsubscribe = Spec{
	Name: "punsubscribe", Group: GroupPubSub, Since: "2.0.0", Complexity: "O(N) where N is the number of patterns to unsubscribe.",
	Summary: "Stops listening to patterns, or to all of them.",
	Flags:   subscribeFlags,
	Client:  Stateful,
	Args:    []Arg{Opt(Repeat(Pattern("pattern")))},
	Examples: `
> PUNSUBSCRIBE n*
1) "punsubscribe"
2) "n*"
3) (integer) 0
`,
	Run: func(c *Ctx) error { return runUnsubscribe(c, pubsub.Pattern) },
}

var specSunsubscribe = Spec{
	Name: "sunsubscribe", Group: GroupPubSub, Since: "7.0.0", Complexity: "O(N) where N is the number of shard channels to unsubscribe.",
	Summary:  "Stops listening to shard channels, or to all of them.",
	Flags:    subscribeFlags,
	Client:   Stateful,
	Args:     []Arg{Opt(Many("shardchannel"))},
	KeySpecs: shardKeySpec(-1),
	Examples: `
> SUNSUBSCRIBE
1) "sunsubscribe"
2) (nil)
3) (integer) 0
`,
	Run: func(c *Ctx) error { return runUnsubscribe(c, pubsub.Shard) },
}

// confirmBytes is how many bytes a command walks over in the time that ending a
// subscription and telling of it takes.
const confirmBytes = LongBytes / manyArgs

// runUnsubscribe ends subscriptions. Messages that came before are delivered
// before the client is told, so that it hears nothing of a channel afterwards.
func runUnsubscribe(c *Ctx, k pubsub.Kind) error {
	p := &serviceOf(c).pubsub
	names := c.Args[1:]
	if len(names) == 0 {
		if err := c.Long(sessionOf(c).subs.Len() * confirmBytes); err != nil {
			return err
		}
		names = nil // and nothing of the request's behind it
		for _, name := range p.Names(sessionOf(c), k) {
			names = append(names, []byte(name))
		}
	}
	counts := p.Unsubscribe(sessionOf(c), k, names)

	inExec := c != &sessionOf(c).ctx
	if !inExec && sessionOf(c).reply == replyOn {
		c.Out.Raw(sessionOf(c).takeQueue(nil))
	}
	for i, name := range names {
		c.confirm(kindWords[k].out, name, counts[i])
	}
	if len(names) == 0 {
		c.confirm(kindWords[k].out, nil, p.Count(sessionOf(c), k))
	}
	return nil
}

var specPublish = Spec{
	Name: "publish", Group: GroupPubSub, Since: "2.0.0",
	Complexity: "O(N+M) where N is the number of clients subscribed to the channel and M is the number of subscribed patterns of all clients.",
	Summary:    "Sends a message to those who listen to a channel.",
	Flags:      PubSub | Loading | Stale | Fast | MayReplicate,
	Args:       []Arg{Str("channel"), Str("message")},
	Replies:    "How many got it; a client that matches by channel and by pattern counts, and gets it, for each.",
	Examples: `
> PUBLISH news hello
(integer) 0
`,
	Run: runPublish,
}

func runPublish(c *Ctx) error {
	c.Out.Int(int64(c.publish(pubsub.Channel, "PUBLISH")))
	return nil
}

// publish sends the message to those who listen here, and to replicas: in a
// transaction behind its effects, so that whoever hears it there finds them.
func (c *Ctx) publish(kind pubsub.Kind, name string) int {
	s := serviceOf(c)
	if !s.DB.Log().TakesMessages() {
		return s.pubsub.Publish(kind, c.Args[1], c.Args[2], nil)
	}
	raw := resp.AppendCommand(nil, []byte(name), c.Args[1], c.Args[2])
	then := s.DB.Log().AppendMessage
	if c.Tx.Begun() {
		then = c.Tx.Message
	}
	return s.pubsub.Publish(kind, c.Args[1], c.Args[2], func() { then(raw) })
}

var specSpublish = Spec{
	Name: "spublish", Group: GroupPubSub, Since: "7.0.0", Complexity: "O(N) where N is the number of clients subscribed to the receiving shard channel.",
	Summary:  "Sends a message to those who listen to a shard channel.",
	Flags:    PubSub | Loading | Stale | Fast | MayReplicate,
	Args:     []Arg{Str("shardchannel"), Str("message")},
	KeySpecs: shardKeySpec(0),
	Examples: `
> SPUBLISH news hello
(integer) 0
`,
	Run: runSpublish,
}

func runSpublish(c *Ctx) error {
	c.Out.Int(int64(c.publish(pubsub.Shard, "SPUBLISH")))
	return nil
}

var specPubsub = Spec{
	Name: "pubsub", Group: GroupPubSub, Since: "2.8.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about channels and their subscribers.",
	Sub: []*Spec{&specPubsubChannels, &specPubsubHelp, &specPubsubNumpat, &specPubsubNumsub, &specPubsubShardchannels,
		&specPubsubShardnumsub},
}

var specPubsubHelp = pubsubHelp()

func pubsubHelp() Spec {
	s := HelpSpec("pubsub", GroupPubSub, 0)
	s.Since = "6.2.0"
	return s
}

var specPubsubChannels = Spec{
	Name: "pubsub|channels", Group: GroupPubSub, Since: "2.8.0", Complexity: "O(N) where N is the number of active channels",
	Summary: "Lists the channels that have subscribers. Patterns do not count.",
	Flags:   PubSub | Loading | Stale,
	Args:    []Arg{Opt(Pattern("pattern"))},
	Examples: `
2> SUBSCRIBE news
1) "subscribe"
2) "news"
3) (integer) 1
> PUBSUB CHANNELS
1) "news"
> PUBSUB CHANNELS x*
(empty array)
`,
	Run: func(c *Ctx) error { return runPubsubChannels(c, pubsub.Channel) },
}

var specPubsubShardchannels = Spec{
	Name: "pubsub|shardchannels", Group: GroupPubSub, Since: "7.0.0", Complexity: "O(N) where N is the number of active shard channels",
	Summary: "Lists the shard channels that have subscribers.",
	Flags:   PubSub | Loading | Stale,
	Args:    []Arg{Opt(Pattern("pattern"))},
	Examples: `
> PUBSUB SHARDCHANNELS
(empty array)
`,
	Run: func(c *Ctx) error { return runPubsubChannels(c, pubsub.Shard) },
}

func runPubsubChannels(c *Ctx, k pubsub.Kind) error {
	var pattern []byte
	switch {
	case len(c.Args) > 3:
		return wrongSubcommand(c)
	case len(c.Args) == 3:
		pattern = c.Args[2]
	}
	if err := c.Long(serviceOf(c).pubsub.Sizes()[k] * confirmBytes); err != nil {
		return err
	}
	names := serviceOf(c).pubsub.Channels(k, pattern)
	c.Out.Array(len(names))
	for _, n := range names {
		c.Out.BulkString(n)
	}
	return nil
}

var specPubsubNumpat = Spec{
	Name: "pubsub|numpat", Group: GroupPubSub, Since: "2.8.0", Complexity: "O(1)",
	Summary: "Counts the different patterns that are subscribed to.",
	Flags:   PubSub | Loading | Stale,
	Examples: `
> PUBSUB NUMPAT
(integer) 0
`,
	Run: runPubsubNumpat,
}

func runPubsubNumpat(c *Ctx) error {
	c.Out.Int(int64(serviceOf(c).pubsub.Sizes()[pubsub.Pattern]))
	return nil
}

var specPubsubNumsub = Spec{
	Name: "pubsub|numsub", Group: GroupPubSub, Since: "2.8.0", Complexity: "O(N) where N is the number of requested channels",
	Summary: "Counts the subscribers of channels. Patterns do not count.",
	Flags:   PubSub | Loading | Stale,
	Args:    []Arg{Opt(Many("channel"))},
	Examples: `
2> SUBSCRIBE news
1) "subscribe"
2) "news"
3) (integer) 1
> PUBSUB NUMSUB news gossip
1) "news"
2) (integer) 1
3) "gossip"
4) (integer) 0
`,
	Run: func(c *Ctx) error { return runPubsubNumsub(c, pubsub.Channel) },
}

var specPubsubShardnumsub = Spec{
	Name: "pubsub|shardnumsub", Group: GroupPubSub, Since: "7.0.0", Complexity: "O(N) where N is the number of requested shard channels",
	Summary: "Counts the subscribers of shard channels.",
	Flags:   PubSub | Loading | Stale,
	Args:    []Arg{Opt(Many("shardchannel"))},
	Examples: `
> PUBSUB SHARDNUMSUB news
1) "news"
2) (integer) 0
`,
	Run: func(c *Ctx) error { return runPubsubNumsub(c, pubsub.Shard) },
}

func runPubsubNumsub(c *Ctx, k pubsub.Kind) error {
	c.Out.Array(2 * (len(c.Args) - 2))
	for _, name := range c.Args[2:] {
		c.Out.Bulk(name)
		c.Out.Int(int64(serviceOf(c).pubsub.Subscribers(k, name)))
	}
	return nil
}

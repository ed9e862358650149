package servercmd

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/pubsub"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/wire"
)

var pubsubSpecs = []*command.Spec{&specPublish, &specPubsub, &specPsubscribe, &specPunsubscribe, &specSpublish, &specSsubscribe,
	&specSubscribe, &specSunsubscribe, &specUnsubscribe}

// subscribeFlags are the flags of the commands that change a client's subscriptions.
const subscribeFlags = command.PubSub | command.NoScript | command.Loading | command.Stale | command.InSubscription

// shardKeySpec describes the positions of shard channels in a request: clients route them like keys.
func shardKeySpec(last int) []command.KeySpec {
	return []command.KeySpec{{Flags: command.NotKey, Begin: command.BeginIndex, Index: 1, Find: command.FindRange, Last: last, Step: 1}}
}

// kindWords are the first words of the messages about each kind of subscription.
var kindWords = [3]struct{ in, out string }{{"subscribe", "unsubscribe"}, {"psubscribe", "punsubscribe"}, {"ssubscribe", "sunsubscribe"}}

var specSubscribe = command.Spec{
	Name: "subscribe", Group: command.GroupPubSub, Since: "2.0.0", Complexity: "O(N) where N is the number of channels to subscribe to.",
	Summary: "Subscribes to channels.",
	Flags:   subscribeFlags,
	Client:  command.Stateful,
	Args:    []command.Arg{command.Many("channel")},
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
	Run: func(c *command.Ctx) error { return runSubscribe(c, pubsub.Channel) },
}

var specPsubscribe = command.Spec{
	Name: "psubscribe", Group: command.GroupPubSub, Since: "2.0.0", Complexity: "O(N) where N is the number of patterns to subscribe to.",
	Summary: "Subscribes to channels that match patterns.",
	Flags:   subscribeFlags,
	Client:  command.Stateful,
	Args:    []command.Arg{command.Repeat(command.Block("pattern", command.Pattern("pattern")))},
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
	Run: func(c *command.Ctx) error { return runSubscribe(c, pubsub.Pattern) },
}

var specSsubscribe = command.Spec{
	Name: "ssubscribe", Group: command.GroupPubSub, Since: "7.0.0",
	Complexity: "O(N) where N is the number of shard channels to subscribe to.",
	Summary:    "Subscribes to shard channels.",
	Flags:      subscribeFlags,
	Client:     command.Stateful,
	Args:       []command.Arg{command.Many("shardchannel")},
	KeySpecs:   shardKeySpec(-1),
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
	Run: func(c *command.Ctx) error { return runSubscribe(c, pubsub.Shard) },
}

func runSubscribe(c *command.Ctx, k pubsub.Kind) error {
	s, word := session.Of(c), kindWords[k].in
	if s.Full(s.Subscriptions().Bytes() + command.ArgsBytes(c.Args)) {
		return command.ErrApart
	}
	s.Subscribe(k, c.Args[1:], func(name []byte, n int) { confirm(c, word, name, n) })
	return nil
}

// confirm notifies the client of a subscription that was added or removed; name is nil if there is none. It
// is a message, so CLIENT REPLY does not suppress it.
func confirm(c *command.Ctx, word string, name []byte, count int) {
	silent := !session.Of(c).Replies()
	w, quiet := c.Out, wire.Writer{Proto: c.Out.Proto}
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
		session.Of(c).Push(quiet.Buf)
	}
}

var specUnsubscribe = command.Spec{
	Name: "unsubscribe", Group: command.GroupPubSub, Since: "2.0.0", Complexity: "O(N) where N is the number of channels to unsubscribe.",
	Summary: "Unsubscribes from channels, or from all of them.",
	Flags:   subscribeFlags,
	Client:  command.Stateful,
	Args:    []command.Arg{command.Opt(command.Many("channel"))},
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
	Run: func(c *command.Ctx) error { return runUnsubscribe(c, pubsub.Channel) },
}

var specPunsubscribe = command.Spec{
	Name: "punsubscribe", Group: command.GroupPubSub, Since: "2.0.0", Complexity: "O(N) where N is the number of patterns to unsubscribe.",
	Summary: "Unsubscribes from patterns, or from all of them.",
	Flags:   subscribeFlags,
	Client:  command.Stateful,
	Args:    []command.Arg{command.Opt(command.Repeat(command.Pattern("pattern")))},
	Examples: `
> PUNSUBSCRIBE n*
1) "punsubscribe"
2) "n*"
3) (integer) 0
`,
	Run: func(c *command.Ctx) error { return runUnsubscribe(c, pubsub.Pattern) },
}

var specSunsubscribe = command.Spec{
	Name: "sunsubscribe", Group: command.GroupPubSub, Since: "7.0.0", Complexity: "O(N) where N is the number of shard channels to unsubscribe.",
	Summary:  "Unsubscribes from shard channels, or from all of them.",
	Flags:    subscribeFlags,
	Client:   command.Stateful,
	Args:     []command.Arg{command.Opt(command.Many("shardchannel"))},
	KeySpecs: shardKeySpec(-1),
	Examples: `
> SUNSUBSCRIBE
1) "sunsubscribe"
2) (nil)
3) (integer) 0
`,
	Run: func(c *command.Ctx) error { return runUnsubscribe(c, pubsub.Shard) },
}

// confirmBytes is the number of bytes that a command can scan in the time that it takes to end a subscription
// and to confirm it.
const confirmBytes = command.LongBytes / session.ManyArgs

// runUnsubscribe ends subscriptions. The session delivers earlier messages before the confirmation, so that
// the client gets no message of a channel after the confirmation.
func runUnsubscribe(c *command.Ctx, k pubsub.Kind) error {
	s, names := session.Of(c), c.Args[1:]
	if len(names) == 0 {
		if err := c.Long(s.Subscriptions().Len() * confirmBytes); err != nil {
			return err
		}
		names = nil // the rest of the request does not count
		for _, name := range s.SubscribedTo(k) {
			names = append(names, []byte(name))
		}
	}
	counts := s.Unsubscribe(k, names)

	s.SendQueued(c)
	for i, name := range names {
		confirm(c, kindWords[k].out, name, counts[i])
	}
	if len(names) == 0 {
		confirm(c, kindWords[k].out, nil, s.SubscriptionCount(k))
	}
	return nil
}

var specPublish = command.Spec{
	Name: "publish", Group: command.GroupPubSub, Since: "2.0.0",
	Complexity: "O(N+M) where N is the number of clients subscribed to the channel and M is the number of subscribed patterns of all clients.",
	Summary:    "Sends a message to the subscribers of a channel.",
	Flags:      command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate,
	Args:       []command.Arg{command.Str("channel"), command.Str("message")},
	Replies:    "The number of receivers; a client that is subscribed to the channel and to matching patterns counts, and gets the message, once for each.",
	Examples: `
> PUBLISH news hello
(integer) 0
`,
	Run: runPublish,
}

func runPublish(c *command.Ctx) error {
	c.Out.Int(int64(publish(c, pubsub.Channel, "PUBLISH")))
	return nil
}

// publish sends the message to the subscribers of this server, and to replicas. In a transaction it follows
// the effects, so that a client that gets the message on a replica finds them there. If it follows a write of
// its batch, it reveals data: then it is sent with the reply to the write.
func publish(c *command.Ctx, kind pubsub.Kind, name string) int {
	s, begun := session.ServiceOf(c), c.Tx.Begun()
	bare := !begun && !session.Of(c).HasWritten()
	if !s.DB.Log().TakesMessages() {
		return s.Publish(kind, c.Args[1], c.Args[2], bare, nil)
	}
	raw := wire.AppendCommand(nil, []byte(name), c.Args[1], c.Args[2])
	then := s.DB.Log().AppendMessage
	if begun {
		then = c.Tx.Message
	}
	return s.Publish(kind, c.Args[1], c.Args[2], bare, func() { then(raw) })
}

var specSpublish = command.Spec{
	Name: "spublish", Group: command.GroupPubSub, Since: "7.0.0", Complexity: "O(N) where N is the number of clients subscribed to the receiving shard channel.",
	Summary:  "Sends a message to the subscribers of a shard channel.",
	Flags:    command.PubSub | command.Loading | command.Stale | command.Fast | command.MayReplicate,
	Args:     []command.Arg{command.Str("shardchannel"), command.Str("message")},
	KeySpecs: shardKeySpec(0),
	Examples: `
> SPUBLISH news hello
(integer) 0
`,
	Run: runSpublish,
}

func runSpublish(c *command.Ctx) error {
	c.Out.Int(int64(publish(c, pubsub.Shard, "SPUBLISH")))
	return nil
}

var specPubsub = command.Spec{
	Name: "pubsub", Group: command.GroupPubSub, Since: "2.8.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about channels and their subscribers.",
	Sub: []*command.Spec{&specPubsubChannels, &specPubsubHelp, &specPubsubNumpat, &specPubsubNumsub, &specPubsubShardchannels,
		&specPubsubShardnumsub},
}

var specPubsubHelp = pubsubHelp()

func pubsubHelp() command.Spec {
	s := command.HelpSpec("pubsub", command.GroupPubSub, 0)
	s.Since = "6.2.0"
	return s
}

var specPubsubChannels = command.Spec{
	Name: "pubsub|channels", Group: command.GroupPubSub, Since: "2.8.0", Complexity: "O(N) where N is the number of active channels",
	Summary: "Lists the channels that have subscribers. Patterns do not count.",
	Flags:   command.PubSub | command.Loading | command.Stale | command.Inert,
	Args:    []command.Arg{command.Opt(command.Pattern("pattern"))},
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
	Run: func(c *command.Ctx) error { return runPubsubChannels(c, pubsub.Channel) },
}

var specPubsubShardchannels = command.Spec{
	Name: "pubsub|shardchannels", Group: command.GroupPubSub, Since: "7.0.0", Complexity: "O(N) where N is the number of active shard channels",
	Summary: "Lists the shard channels that have subscribers.",
	Flags:   command.PubSub | command.Loading | command.Stale | command.Inert,
	Args:    []command.Arg{command.Opt(command.Pattern("pattern"))},
	Examples: `
> PUBSUB SHARDCHANNELS
(empty array)
`,
	Run: func(c *command.Ctx) error { return runPubsubChannels(c, pubsub.Shard) },
}

func runPubsubChannels(c *command.Ctx, k pubsub.Kind) error {
	var pattern []byte
	switch {
	case len(c.Args) > 3:
		return wrongSubcommand(c)
	case len(c.Args) == 3:
		pattern = c.Args[2]
	}
	if err := c.Long(session.ServiceOf(c).ChannelCount(k) * confirmBytes); err != nil {
		return err
	}
	names := session.ServiceOf(c).Channels(k, pattern)
	c.Out.Array(len(names))
	for _, n := range names {
		c.Out.BulkString(n)
	}
	return nil
}

var specPubsubNumpat = command.Spec{
	Name: "pubsub|numpat", Group: command.GroupPubSub, Since: "2.8.0", Complexity: "O(1)",
	Summary: "Counts the different patterns that have subscribers.",
	Flags:   command.PubSub | command.Loading | command.Stale | command.Inert,
	Examples: `
> PUBSUB NUMPAT
(integer) 0
`,
	Run: runPubsubNumpat,
}

func runPubsubNumpat(c *command.Ctx) error {
	c.Out.Int(int64(session.ServiceOf(c).ChannelCount(pubsub.Pattern)))
	return nil
}

var specPubsubNumsub = command.Spec{
	Name: "pubsub|numsub", Group: command.GroupPubSub, Since: "2.8.0", Complexity: "O(N) where N is the number of requested channels",
	Summary: "Counts the subscribers of channels. Patterns do not count.",
	Flags:   command.PubSub | command.Loading | command.Stale | command.Inert,
	Args:    []command.Arg{command.Opt(command.Many("channel"))},
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
	Run: func(c *command.Ctx) error { return runPubsubNumsub(c, pubsub.Channel) },
}

var specPubsubShardnumsub = command.Spec{
	Name: "pubsub|shardnumsub", Group: command.GroupPubSub, Since: "7.0.0", Complexity: "O(N) where N is the number of requested shard channels",
	Summary: "Counts the subscribers of shard channels.",
	Flags:   command.PubSub | command.Loading | command.Stale | command.Inert,
	Args:    []command.Arg{command.Opt(command.Many("shardchannel"))},
	Examples: `
> PUBSUB SHARDNUMSUB news
1) "news"
2) (integer) 0
`,
	Run: func(c *command.Ctx) error { return runPubsubNumsub(c, pubsub.Shard) },
}

func runPubsubNumsub(c *command.Ctx, k pubsub.Kind) error {
	c.Out.Array(2 * (len(c.Args) - 2))
	for _, name := range c.Args[2:] {
		c.Out.Bulk(name)
		c.Out.Int(int64(session.ServiceOf(c).Subscribers(k, name)))
	}
	return nil
}

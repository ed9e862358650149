package command

import (
	"strings"
	"testing"
)

func noRun(*Ctx) error { return nil }

// Fixture completes a spec with what every spec needs.
func Fixture(s Spec) *Spec {
	if s.Group == "" {
		s.Group = GroupGeneric
	}
	s.Since, s.Complexity, s.Summary = "1.0.0", "O(1)", "Stands for a command."
	s.Examples = "> " + strings.ToUpper(strings.ReplaceAll(s.Name, "|", " ")) + "\n"
	if s.Run == nil && len(s.Sub) == 0 {
		s.Run = noRun
	}
	if len(s.Args) > 0 {
		s.Flags |= Blind
	}
	return &s
}

// Fixtures are grammars of every shape that Redis has, under the names of its commands.
func Fixtures() []*Spec {
	expiration := OneOf("expiration", TokenArg("EX", Int("seconds")).Since("2.6.12"), TokenArg("PX", Int("milliseconds")).Since("2.6.12"),
		TokenArg("EXAT", UnixTime("unix-time-seconds")).Since("6.2.0"), TokenArg("PXAT", UnixTime("unix-time-milliseconds")).Since("6.2.0"),
		Token("KEEPTTL").Since("6.0.0"))
	timeout := func() Arg { return Double("timeout") }
	side := func() Arg { return OneOf("where", Token("LEFT"), Token("RIGHT")) }
	eval := []Arg{Str("script"), Count("numkeys"), Opt(ManyKeys("key", Update|Access)), Opt(Many("arg"))}
	zunion := []Arg{Count("numkeys"), ManyKeys("key", Read), Opt(TokenArg("WEIGHTS", Repeat(Int("weight")))),
		Opt(TokenArg("AGGREGATE", OneOf("aggregate", Token("SUM"), Token("MIN"), Token("MAX"))))}
	return []*Spec{
		Fixture(Spec{Name: "get", Group: GroupString, Flags: ReadOnly | Fast, Args: []Arg{Key("key", Read)}}),
		Fixture(Spec{Name: "set", Group: GroupString, Flags: Write | DenyOOM, Args: []Arg{Key("key", Update|Access|VariableFlags), Str("value"),
			Opt(OneOf("condition", Token("NX"), Token("XX"))).Since("2.6.12"), Opt(Token("GET")).Since("6.2.0"), Opt(expiration)}}),
		Fixture(Spec{Name: "mset", Group: GroupString, Flags: Write | DenyOOM,
			Args: []Arg{Repeat(Block("key_value", Key("key", Overwrite), Str("value")))}}),
		Fixture(Spec{Name: "rename", Flags: Write, Args: []Arg{Key("key", Access|Delete), Key("newkey", Overwrite)}}),
		Fixture(Spec{Name: "blpop", Group: GroupList, Flags: Write | Blocking, Args: []Arg{ManyKeys("key", Access|Delete), timeout()}}),
		Fixture(Spec{Name: "blmpop", Group: GroupList, Flags: Write | Blocking,
			Args: []Arg{timeout(), Count("numkeys"), ManyKeys("key", Access|Delete),
				side(), Opt(TokenArg("COUNT", Int("count")))}}),
		Fixture(Spec{Name: "zunion", Group: GroupSortedSet, Flags: ReadOnly,
			Args: append(zunion[:len(zunion):len(zunion)], Opt(Token("WITHSCORES")))}),
		Fixture(Spec{Name: "zunionstore", Group: GroupSortedSet, Flags: Write | DenyOOM,
			Args: append([]Arg{Key("destination", Overwrite)}, zunion...)}),
		Fixture(Spec{Name: "zadd", Group: GroupSortedSet, Flags: Write | DenyOOM | Fast, Args: []Arg{Key("key", Update),
			Opt(OneOf("condition", Token("NX"), Token("XX"))).Since("3.0.2"), Opt(OneOf("comparison", Token("GT"), Token("LT"))).Since("6.2.0"),
			Opt(Token("CH").As("change")).Since("3.0.2"), Opt(Token("INCR").As("increment")).Since("3.0.2"),
			Repeat(Block("score_member", Double("score"), Str("member")))}}),
		Fixture(Spec{Name: "xread", Group: GroupStream, Flags: ReadOnly | Blocking, Args: []Arg{Opt(TokenArg("COUNT", Int("count"))),
			Opt(TokenArg("BLOCK", Int("milliseconds"))), Block("STREAMS", ManyKeys("key", Read), Many("id"))}}),
		Fixture(Spec{Name: "xreadgroup", Group: GroupStream, Flags: Write | Blocking,
			Args: []Arg{TokenArg("GROUP", Block("group_consumer", Str("group"), Str("consumer"))),
				Opt(TokenArg("COUNT", Int("count"))), Opt(TokenArg("BLOCK", Int("milliseconds"))), Opt(Token("NOACK")),
				Block("STREAMS", ManyKeys("key", Read), Many("id"))}}),
		Fixture(Spec{Name: "eval", Group: GroupScripting, Flags: NoScript | Stale | SkipMonitor | NoMandatoryKeys | MayReplicate, Args: eval}),
		Fixture(Spec{Name: "ssubscribe", Group: GroupPubSub, Flags: PubSub | NoScript | Loading | Stale,
			Args: []Arg{ManyKeys("shardchannel", NotKey)}}),
		Fixture(Spec{Name: "sort", Flags: Write | DenyOOM, Categories: CatSet | CatSortedSet | CatList | CatDangerous, Without: CatKeyspace,
			KeyOptions: &KeyOptions{First: KeyRef{1, Read}, From: 2, Take: TakeLast,
				Options: []KeyOption{{Word: "LIMIT", Args: 2}, {Word: "BY", Args: 1}, {Word: "GET", Args: 1},
					{Word: "STORE", Args: 1, Key: Overwrite}}},
			KeySpecs: []KeySpec{{Flags: Read, Begin: BeginIndex, Index: 1, Find: FindRange, Step: 1}, {Flags: Read}, {Flags: Overwrite}},
			Args: []Arg{Key("key", Read), Opt(TokenArg("BY", Pattern("pattern"))).Spec(1),
				Opt(Block("LIMIT", Int("offset"), Int("count")).As("offset_count")),
				Opt(RepeatToken(TokenArg("GET", Pattern("pattern")))).Spec(1), Opt(OneOf("order", Token("ASC"), Token("DESC"))),
				Opt(Token("ALPHA").As("sorting")), Opt(TokenArg("STORE", Key("destination", Overwrite)).Spec(2))}}),
		Fixture(Spec{Name: "georadiusbymember", Group: GroupGeo, Flags: Write | DenyOOM,
			Args: []Arg{Key("key", Read), Str("member"), Double("radius"),
				OneOf("unit", Token("M"), Token("KM"), Token("FT"), Token("MI")), Opt(Token("WITHCOORD")),
				Opt(Token("WITHDIST")), Opt(Token("WITHHASH")),
				Opt(Block("count", TokenArg("COUNT", Int("count")), Opt(Token("ANY")))), Opt(OneOf("order", Token("ASC"), Token("DESC"))),
				Opt(TokenArg("STORE", Key("key", Overwrite))), Opt(TokenArg("STOREDIST", Key("key", Overwrite)))}}),
		Fixture(Spec{Name: "object", Sub: []*Spec{
			Fixture(Spec{Name: "object|encoding", Flags: ReadOnly, Args: []Arg{Key("key", Meta)}})}}),
	}
}

func FixtureTable(t testing.TB) *Table {
	t.Helper()
	table, err := NewTable(append(Fixtures(), &SpecCommand)...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestABadSpecIsRejectedWithOneSentence(t *testing.T) {
	sub := func(s Spec) []*Spec { return []*Spec{Fixture(s)} }
	for _, x := range []struct {
		want  string
		spoil func(s *Spec)
	}{
		{"has no summary", func(s *Spec) { s.Summary = "" }},
		{"the summary must end in a full stop", func(s *Spec) { s.Summary = "Does" }},
		{"has no name", func(s *Spec) { s.Name = "" }},
		{"the name must be lower case", func(s *Spec) { s.Name = "Foo" }},
		{"the name has a blank", func(s *Spec) { s.Name = "foo bar" }},
		{"the name is longer than 32 bytes", func(s *Spec) { s.Name = strings.Repeat("x", 33) }},
		{"does not say since when", func(s *Spec) { s.Since = "" }},
		{`group "toys" is unknown`, func(s *Spec) { s.Group = "toys" }},
		{"has no complexity", func(s *Spec) { s.Complexity = "" }},
		{"has no examples", func(s *Spec) { s.Examples = "\n" }},
		{`the examples have no line that starts with "> "`, func(s *Spec) { s.Examples = "FOO\nOK\n" }},
		{"has no Run", func(s *Spec) { s.Run = nil }},
		{"is both Write and ReadOnly", func(s *Spec) { s.Flags = Write | ReadOnly }},
		{"is DenyOOM but not Write", func(s *Spec) { s.Flags = DenyOOM }},
		{"is both Fast and Slow", func(s *Spec) { s.Flags = Fast | Slow }},
		{"is Inert, and changes data or is ReadOnly", func(s *Spec) { s.Flags = Write | Inert }},
		{"is both Reveals and Blind", func(s *Spec) { s.Flags = Reveals | Blind }},
		{"must be Blind or Reveals: whether its reply or effect depends on what a value is, not only on its length",
			func(s *Spec) { s.Args = []Arg{Key("key", Read)} }},
		{"MovableKeys is derived", func(s *Spec) { s.Flags = MovableKeys }},
		{"a subcommand must stand in its container's Sub", func(s *Spec) { s.Name = "a|b" }},
		{`a subcommand's name must begin with "foo|"`, func(s *Spec) { s.Sub = sub(Spec{Name: "bar|get"}) }},
		{"a container has no arguments of its own", func(s *Spec) { s.Sub = sub(Spec{Name: "foo|get"}); s.Args = []Arg{Str("x")} }},
		{"ArityOverride needs an ArityReason", func(s *Spec) { s.ArityOverride = -7 }},
		{"ArityOverride 1 is what the grammar says already", func(s *Spec) { s.ArityOverride, s.ArityReason = 1, "so" }},
		{"ArityReason without an ArityOverride", func(s *Spec) { s.ArityReason = "so" }},
		{"a key needs an access: Read, Meta, Update, Insert, Delete, Overwrite, Remove", func(s *Spec) { s.Args = []Arg{Key("key", 0)} }},
		{"writes a key without the flag Write", func(s *Spec) { s.Args = []Arg{Key("key", Update)} }},
		{`key "key" stands where no key spec can describe it: give Keys and KeySpecs`,
			func(s *Spec) { s.Args = []Arg{Opt(Str("x")), Key("key", Read)} }},
		{"an unknown key spec needs KeyOptions or Keys", func(s *Spec) { s.KeySpecs = []KeySpec{{Flags: Read}} }},
		{`count "n" has nothing repeated behind it`, func(s *Spec) { s.Args = []Arg{Count("n"), Str("x")} }},
		{`argument "b" is empty`, func(s *Spec) { s.Args = []Arg{Block("b")} }},
		{"argument 1 has no name", func(s *Spec) { s.Args = []Arg{Str("")} }},
		{`argument "x" repeats a token it does not have`, func(s *Spec) { s.Args = []Arg{RepeatToken(Str("x"))} }},
	} {
		s := Fixture(Spec{Name: "foo"})
		x.spoil(s)
		_, err := NewTable(s)
		if err == nil || !strings.HasSuffix(err.Error(), ": "+x.want) {
			t.Errorf("got %v, want %q", err, x.want)
		}
	}
}

func TestADuplicateIsRejected(t *testing.T) {
	if _, err := NewTable(Fixture(Spec{Name: "foo"}), Fixture(Spec{Name: "foo"})); err == nil ||
		err.Error() != `command "foo": defined twice` {
		t.Fatal(err)
	}
	twice := Fixture(Spec{Name: "foo", Sub: []*Spec{Fixture(Spec{Name: "foo|a"}), Fixture(Spec{Name: "foo|a"})}})
	if _, err := NewTable(twice); err == nil || err.Error() != `command "foo|a": defined twice` {
		t.Fatal(err)
	}
}

func TestTablesDoNotShareWhatTheyDerive(t *testing.T) {
	specs := Fixtures()
	a, err := NewTable(specs...)
	if err != nil {
		t.Fatal(err)
	}
	if specs[0].Arity() != 0 || a.Lookup([]byte("get")).Arity() != 2 {
		t.Fatal("NewTable wrote into the specs it was given")
	}
	for id := range a.Len() {
		if a.Spec(id).ID() != id {
			t.Fatalf("spec %d has the ID %d", id, a.Spec(id).ID())
		}
	}
	if sub := a.LookupFull("object|encoding"); sub == nil || sub.Parent() != a.Lookup([]byte("object")) {
		t.Fatal("a subcommand does not know its container")
	}
}

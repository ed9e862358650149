package acl

import (
	"errors"
	"testing"
)

// small is a catalog with everything that rules can speak of.
func small() Rules {
	return Rules{Catalog: NewCatalog([]string{"read", "write", "admin"}, []Command{
		{"get", 1, -1}, {"set", 2, -1}, {"config", 0, -1}, {"select", 0, -1}, {"config|get", 4, 2}, {"config|set", 4, 2}, {"mget", 1, -1},
	})}
}

// built applies rules to a new user.
func built(t *testing.T, r Rules, ops ...string) *User {
	t.Helper()
	u := New("u", r)
	if op, err := u.ApplyAll(r, ops); err != nil {
		t.Fatalf("%q: %v", op, err)
	}
	return u.Seal()
}

func args(words ...string) (b [][]byte) {
	for _, w := range words {
		b = append(b, []byte(w))
	}
	return b
}

func TestRulesAreWrittenBackAsTheyWereGiven(t *testing.T) {
	r := small()
	for _, x := range []struct {
		ops  []string
		want string
	}{
		{nil, "user u off resetchannels -@all"},
		{[]string{"on", "nopass", "~*", "&*", "+@all"}, "user u on nopass ~* &* +@all"},
		{[]string{"+@all", "-config|get"}, "user u off resetchannels +@all -config|get"},
		{[]string{"+@all", "-@read"}, "user u off resetchannels +@all -@read"},
		{[]string{"+get", "+mget"}, "user u off resetchannels -@all +get +mget"},
		{[]string{"+get", "+mget", "+set", "-mget"}, "user u off resetchannels -@all +get +set -mget"},
		{[]string{"+config", "-config|set"}, "user u off resetchannels -@all +config -config|set"},
		{[]string{"+config|get"}, "user u off resetchannels -@all +config|get"},
		{[]string{"+SELECT|1", "+select|One", "+select|ONE"}, "user u off resetchannels -@all +select|1 +select|one"},
		{[]string{"+select|1", "+select"}, "user u off resetchannels -@all +select"},
		{[]string{"%R~a", "%W~a", "%R~b", "%w~c", "&x", "&x", "&"}, "user u off ~a %R~b %W~c resetchannels &x & -@all"},
		{[]string{">p", ">p", "#" + Hash([]byte("q")), "<p"}, "user u off #" + Hash([]byte("q")) + " resetchannels -@all"},
		{[]string{"(+get ~a)", "(%R~b &x +@write)"}, "user u off resetchannels -@all (~a resetchannels -@all +get) (%R~b " +
			"resetchannels &x -@all +@write)"},
		{[]string{"on", ">p", "+@all", "~*", "(+get)", "skip-sanitize-payload", "reset"}, "user u off sanitize-payload resetchannels -@all"},
	} {
		if got := built(t, r, x.ops...).String(); got != x.want {
			t.Errorf("%q\n got %s\nwant %s", x.ops, got, x.want)
		}
	}
}

func TestWrongRulesAreRefusedWithTheirReason(t *testing.T) {
	r := small()
	for _, x := range []struct {
		op   string
		want error
	}{
		{"bogus", ErrSyntax}, {"+nope", ErrUnknown}, {"-nope", ErrUnknown}, {"+@nope", ErrUnknown}, {"+", ErrUnknown},
		{"+config|nope", ErrUnknown}, {"-select|1", ErrUnknown}, {"+select|", ErrSyntax}, {"+config|get|x", ErrFirstArg},
		{"%", ErrSyntax}, {"%~a", ErrSyntax}, {"%RR~a", ErrSyntax}, {"%RX~a", ErrSyntax}, {"~a b", ErrSyntax}, {"&a b", ErrSyntax},
		{"<none", ErrPassword}, {"#abc", ErrHash}, {"!abc", ErrHash}, {"(on)", ErrSyntax}, {"(+nope)", ErrUnknown}, {`(~a "")`, ErrSyntax},
	} {
		if err := New("u", r).Apply(r, x.op); !errors.Is(err, x.want) {
			t.Errorf("%q: got %v, want %v", x.op, err, x.want)
		}
	}
	u := built(t, r, "~*", "&*")
	if err := u.Clone().Apply(r, "~a"); err != ErrKeys {
		t.Errorf("a pattern behind ~*: %v", err)
	}
	if err := u.Clone().Apply(r, "&a"); err != ErrChannels {
		t.Errorf("a channel behind &*: %v", err)
	}
}

func TestSelectorAllowsWhatItsRulesSay(t *testing.T) {
	u := built(t, small(), "+get", "+select|1", "~a*", "%R~r", "%W~w", "&ch*")
	s := &u.Selectors()[0]
	for _, x := range []struct {
		what      string
		got, want bool
	}{
		{"get", s.MayRun(0, args("get", "k")), true},
		{"set", s.MayRun(1, args("set", "k", "v")), false},
		{"select 1", s.MayRun(3, args("select", "1")), true},
		{"select 2", s.MayRun(3, args("select", "2")), false},
		{"read and write ab", s.MayTouch([]byte("ab"), Read|Write), true},
		{"read r", s.MayTouch([]byte("r"), Read), true},
		{"write r", s.MayTouch([]byte("r"), Write), false},
		{"read and write r", s.MayTouch([]byte("r"), Read|Write), false},
		{"write w", s.MayTouch([]byte("w"), Write), true},
		{"look at w", s.MayTouch([]byte("w"), 0), true},
		{"look at x", s.MayTouch([]byte("x"), 0), false},
		{"hear ch1", s.MayUse([]byte("ch1"), false), true},
		{"hear the pattern ch1", s.MayUse([]byte("ch1"), true), false},
		{"hear the pattern ch*", s.MayUse([]byte("ch*"), true), true},
		{"every key", s.TouchesAll(Read), false},
		{"every key, by pattern", built(t, small(), "%R~*").Selectors()[0].TouchesAll(Read), true},
		{"write every key, by pattern", built(t, small(), "%R~*").Selectors()[0].TouchesAll(Write), false},
		{"unlimited", u.Unlimited, false},
		{"unlimited, in a selector", built(t, small(), "(+@all ~* &*)").Unlimited, true},
	} {
		if x.got != x.want {
			t.Errorf("%s: %v, want %v", x.what, x.got, x.want)
		}
	}
}

func TestChecksAllocateNothing(t *testing.T) {
	s := &built(t, small(), "+get", "+select|one", "~a*", "%R~r*", "&c*").Selectors()[0]
	request, key, channel := args("select", "ONE"), []byte("rest"), []byte("channel")
	if n := testing.AllocsPerRun(100, func() {
		if !s.MayRun(3, request) || !s.MayTouch(key, Read) || !s.MayUse(channel, false) {
			t.Error("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCloneIsIndependent(t *testing.T) {
	r := small()
	u := built(t, r, "on", ">p", "+select|1", "~a", "&c", "(+get)")
	before := u.String()
	v := u.Clone()
	if _, err := v.ApplyAll(r, []string{"<p", ">q", "+select|2", "%R~b", "&d", "+@all", "clearselectors"}); err != nil {
		t.Fatal(err)
	}
	if after := u.String(); after != before {
		t.Errorf("was %s\n is %s", before, after)
	}
}

func TestPasswords(t *testing.T) {
	r := small()
	right, wrong := Hash([]byte("right")), Hash([]byte("wrong"))
	u := built(t, r, "on", ">other", ">right")
	if !u.Accepts(right) || u.Accepts(wrong) {
		t.Error("passwords are not told apart")
	}
	if !built(t, r, "on", "nopass").Accepts(wrong) || built(t, r, "off", "nopass").Accepts(wrong) || built(t, r, "on").Accepts(wrong) {
		t.Error("nopass, off or no password at all")
	}
}

func TestKeepsChannels(t *testing.T) {
	r := small()
	for _, x := range []struct {
		old, now []string
		want     bool
	}{
		{[]string{"&a"}, []string{"&a", "&b"}, true},
		{[]string{"&a", "&b"}, []string{"&a"}, false},
		{[]string{"&*"}, []string{"&a"}, false},
		{[]string{"&a"}, []string{"&*"}, true},
		{[]string{"&a"}, []string{"(&a)"}, true},
		{[]string{"&ab"}, []string{"&a*"}, false}, // pattern by pattern, as in Redis: then each subscription is looked at
	} {
		if got := built(t, r, x.now...).KeepsChannels(built(t, r, x.old...)); got != x.want {
			t.Errorf("from %q to %q: %v", x.old, x.now, got)
		}
	}
}

func TestFileMistakesAreReportedTogether(t *testing.T) {
	text := "user a on +nope +no\n# no comments\nuser\nuser a\nuser b bogus bogus\nuser c (+get\n\n  user d on  nopass \n"
	want := "f:1: Error in applying operation '+nope': Unknown command or category name in ACL. " +
		"f:1: Error in applying operation '+no': Unknown command or category name in ACL. " +
		"f:2 should start with user keyword followed by the username. f:3 should start with user keyword followed by the username. " +
		"WARNING: Duplicate user 'a' found on line 4. f:5: Syntax error. f:6: Unmatched parenthesis in selector definition." +
		"WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	users, mistakes := ParseFile("f", text, small())
	if users != nil || mistakes != want {
		t.Errorf("got  %s\nwant %s", mistakes, want)
	}
	users, mistakes = ParseFile("f", "user x on ~a (+get\t ~b)\n", small())
	if mistakes != "" || len(users) != 1 || users[0].String() != "user x on ~a resetchannels -@all (~b resetchannels -@all +get)" {
		t.Errorf("%v %s", users, mistakes)
	}
}

package routing

import (
	"slices"
	"strings"
	"testing"
)

func TestKeysAreFoundWhereverTheyStand(t *testing.T) {
	for line, want := range map[string]string{
		"GET k":                                "k",
		"mget a b":                             "a b",
		"EVALSHA digest 2 a b arg":             "a b",
		"EVAL text 0 arg":                      "",
		"FCALL f 1 k":                          "k",
		"XREADGROUP GROUP g c STREAMS a b > >": "a b",
		"BLMPOP 0 2 a b LEFT":                  "a b",
		"ZADD k 1 m":                           "k",
		"OBJECT ENCODING k":                    "k",
		"BITOP AND d a b":                      "d a b",
		"RL.TAKE k 5 60000":                    "k",
		"LOCK.ACQUIRE k owner 1000":            "k",
		"DQ.POP k 1000":                        "k",
		"SPUBLISH c m":                         "c",
		"PUBLISH c m":                          "",
		"PING":                                 "",
		"INFO server":                          "",
		"CONFIG SET a b":                       "",
		"SCRIPT LOAD x":                        "",
		"FT.NOBODYKNOWS k x":                   "k",
	} {
		words := strings.Fields(line)
		var keys []string
		for _, at := range Keys(len(words), func(i int) string { return words[i] }) {
			keys = append(keys, words[at])
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// The slots are those of the cluster specification's example and of a server.
func TestSlotsAreThoseOfTheServers(t *testing.T) {
	for key, want := range map[string]int{"123456789": 0x31c3 % Slots, "foo": 12182, "{foo}bar": 12182, "a{foo}b{x}": 12182, "": 0} {
		if got := Slot(key); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
	if Slot("{}a") == Slot("") {
		t.Error("an empty tag is none")
	}
}

func TestKeysOfOneSlotAreToldApart(t *testing.T) {
	if first, err := OneSlot("a transaction", slices.Values([]string{"{a}1", "{a}2", "a"})); first != "{a}1" || err != nil {
		t.Errorf("%q, %v", first, err)
	}
	if _, err := OneSlot("a transaction", slices.Values([]string{"a", "b"})); err == nil || !strings.Contains(err.Error(), "{tag}") {
		t.Errorf("two slots: %v", err)
	}
	if first, err := OneSlot("a transaction", slices.Values([]string(nil))); first != "" || err != nil {
		t.Errorf("no keys: %q, %v", first, err)
	}
}

func TestAnUnknownCommandMayWrite(t *testing.T) {
	for line, want := range map[string]bool{
		"GET k": false, "SET k": true, "evalsha digest": true, "FCALL f": true, "EVALSHA_RO digest": false,
		"CONFIG GET": false, "XGROUP CREATE": true, "FT.NOBODYKNOWS k": true, "PING": false, "LOCK.ACQUIRE k": true,
	} {
		name, second, _ := strings.Cut(line, " ")
		if MayWrite(name, second) != want {
			t.Errorf("%s: %v", line, !want)
		}
	}
}

// A request that is too short for its command has the keys that it has: a client in a
// cluster must survive what the server will refuse.
func TestRequestsThatAreTooShortHaveNoKeysBeyondTheirEnd(t *testing.T) {
	for _, line := range []string{"SET k", "XCLAIM k", "ZADD k", "BITFIELD k", "MIGRATE h p", "SORT", "DQ.CONFIG q DEADLETTER", "GEORADIUS",
		"EVAL text", "EVAL text 9 k", "XREAD STREAMS", "DELEX k", "EXPIRY RULE"} {
		words := strings.Fields(line)
		for n := 1; n <= len(words); n++ {
			for _, at := range Keys(n, func(i int) string { return words[:n][i] }) {
				if at >= n {
					t.Errorf("%v: a key at %d", words[:n], at)
				}
			}
		}
	}
}

func TestTheTableFindsEveryCommandInAnyCase(t *testing.T) {
	for i := range Commands() {
		c := &commands[i]
		name, sub, _ := strings.Cut(c.Name, "|")
		if Find(name, sub) != c || Find(strings.ToUpper(name), strings.ToUpper(sub)) != c {
			t.Errorf("%s is not found", c.Name)
		}
	}
	for _, name := range []string{"", "ge", "gett", "config get", "\x00", strings.Repeat("x", 1000)} {
		if c := Find(name, "get"); c != nil {
			t.Errorf("%q is found as %s", name, c.Name)
		}
	}
	if c := Find("config", "nothing"); c == nil || c.Name != "config" {
		t.Errorf("an unknown subcommand is %v, want its container", c)
	}
}

func TestTheCommandsOfTheProbeAreInTheTable(t *testing.T) {
	for _, name := range ProbeCommands {
		if Find(name, "") == nil {
			t.Errorf("%s is not a command", name)
		}
	}
}

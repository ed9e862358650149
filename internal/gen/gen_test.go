package gen

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/resp"
)

func table(t *testing.T) *command.Table {
	t.Helper()
	run := func(*command.Ctx) error { return nil }
	spec := func(s command.Spec) *command.Spec {
		s.Group, s.Since, s.Complexity, s.Summary = command.GroupHash, "1.0.0", "O(1)", "Stands for a command."
		return &s
	}
	set, err := command.NewTable(
		spec(command.Spec{Name: "hput", Run: run, Flags: command.Write | command.Blind, Examples: "> HPUT h f v\n(integer) 1\n~ 10ms\n",
			History: []command.Change{{Since: "2.0.0", Text: "Took many."}},
			Args: []command.Arg{command.Key("key", command.Update),
				command.Opt(command.OneOf("condition", command.Token("NX"), command.Token("XX"))), command.Many("field")}}),
		spec(command.Spec{Name: "hctl", Sub: []*command.Spec{
			spec(command.Spec{Name: "hctl|get", Run: run, Examples: "> HCTL GET\nOK\n"})}}))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestAPageSaysEverythingAboutItsCommand(t *testing.T) {
	pages := Pages(table(t))
	text := string(pages["hput.md"])
	for _, want := range []string{Marker + "# HPUT\n\nStands for a command.\n\n    HPUT key [NX | XX] field [field ...]\n",
		"| Since | 1.0.0 |", "| Complexity | O(1) |", "| Flags | write blind |", "| ACL categories | @write @hash @slow |", "| Arity | -3 |",
		"| Keys | argument 1 (RW update) |", "| `[NX \\| XX]` | oneof | optional |", "| &emsp;`NX` | pure-token |  |",
		"* 2.0.0: Took many.", "```\n> HPUT h f v\n(integer) 1\n~ 10ms\n```", "(../../testdata/transcripts/hash/hput.txt)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if text := string(pages["hctl.md"]); !strings.Contains(text, "| [HCTL GET](hctl-get.md) | Stands for a command. |") {
		t.Errorf("the container does not link its subcommand:\n%s", text)
	}
	if text := string(pages["index.md"]); !strings.Contains(text,
		"## Hash\n\n| Command | Summary | Transcript |\n|---|---|---|\n"+
			"| [HCTL](hctl.md) | Stands for a command. |  |\n| [HCTL GET](hctl-get.md) |") {
		t.Errorf("the index:\n%s", text)
	}
}

func TestRepliesMayBeLists(t *testing.T) {
	const long = "many words that fill a line and then some more of them, until the line ends, " +
		"and goes on below, where it is indented as the item is"
	run := func(*command.Ctx) error { return nil }
	set, err := command.NewTable(&command.Spec{Name: "hput", Group: command.GroupHash, Since: "0.1.0", Complexity: "O(1)", Summary: "Puts.",
		Run: run, Examples: "> HPUT\nOK\n", Replies: "Two:\n\n1. " + long + "\n2. the other\n\n* a * b\n",
		Errors: []string{"ERR no: not 1: " + long}})
	if err != nil {
		t.Fatal(err)
	}
	pages := Pages(set)
	broken := strings.Replace(long, " as the", "\n   as the", 1)
	for name, want := range map[string]string{
		"hput.md": "## Replies\n\nTwo:\n\n1. " + broken + "\n2. the other\n\n* a * b\n\n## Errors\n\n* `ERR no: not 1`: many",
		ownPage: "### [HPUT](hput.md)\n\n    HPUT\n\nTwo:\n\n1. " + broken + "\n2. the other\n\n* a * b\n\nErrors:\n\n* `ERR no: not 1`: " +
			strings.Replace(long, " it", "\n  it", 1) + "\n",
	} {
		if text := string(pages[name]); !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", name, want, text)
		}
	}
}

func TestALineDoesNotBeginWithAMark(t *testing.T) {
	words := strings.Repeat("word ", width/5)
	for _, mark := range []string{"*", "-", "1.", "#", ">", "|"} {
		if got := wrap(words + mark + " more"); strings.Contains(got, "\n"+mark) {
			t.Errorf("%q begins a line:\n%s", mark, got)
		}
	}
}

func TestCheckNamesWhatIsStaleAndWriteMendsIt(t *testing.T) {
	dir, pages := t.TempDir(), Pages(table(t))
	if err := Check(dir, pages); err == nil || !strings.Contains(err.Error(), "hctl-get.md, hctl.md, hput.md, index.md") {
		t.Fatalf("an empty directory: %v", err)
	}
	if _, err := Write(dir, pages); err != nil {
		t.Fatal(err)
	}
	if err := Check(dir, pages); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"hput.md": "edited", "gone.md": Marker + "old", "family.md": "by hand"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := Check(dir, pages); err == nil || !strings.HasSuffix(err.Error(), ": gone.md, hput.md") {
		t.Fatalf("two stale files: %v", err)
	}
	touched, err := Write(dir, pages)
	if err != nil || strings.Join(touched, " ") != "gone.md hput.md" || Check(dir, pages) != nil {
		t.Fatal(touched, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "family.md")); err != nil || string(text) != "by hand" {
		t.Fatalf("a page written by hand was touched: %q, %v", text, err)
	}
}

func TestMissingTranscriptsAreNamed(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, Transcripts, "hash"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, Transcripts, "hash", "hput.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(MissingTranscripts(root, table(t)), " "); got != "testdata/transcripts/hash/hctl-get.txt" {
		t.Fatal(got)
	}
}

func TestWhatIsMissingOfAServerHasAReason(t *testing.T) {
	all, err := servercmd.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	missed := map[string]bool{}
	for _, s := range servers {
		missing, unexplained := Missing(s.commands, all)
		if len(unexplained) > 0 {
			t.Errorf("commands of %s that are not there, without a reason: %s", s.name, strings.Join(unexplained, ", "))
		}
		for _, name := range missing {
			head, _, _ := strings.Cut(name, "|")
			missed[name], missed[head] = true, true
		}
	}
	for name := range reasons {
		if !missed[name] {
			t.Errorf("there is a reason why %s is missing, and it is there", name)
		}
	}
}

// The lists are what the servers say.
func TestTheListsOfCommandsAreTheServers(t *testing.T) {
	for i, program := range []string{realserver.Redis7, realserver.Redis8, realserver.Valkey9} {
		t.Run(program, func(t *testing.T) {
			conn := transcript.NewServer(realserver.Start(t, program))
			defer conn.Close()
			if err := conn.Send(1, []string{"COMMAND"}); err != nil {
				t.Fatal(err)
			}
			v, _ := conn.Next(1)
			var names []string
			var add func(info resp.Value)
			add = func(info resp.Value) {
				names = append(names, strings.ToLower(info.Elems[0].Str))
				for _, sub := range info.Elems[9].Elems {
					add(sub)
				}
			}
			for _, info := range v.Elems {
				add(info)
			}
			slices.Sort(names)
			if want := strings.Fields(servers[i].commands); !slices.Equal(names, slices.Sorted(slices.Values(want))) {
				t.Errorf("the list of %s has %d commands, the server %d", servers[i].name, len(want), len(names))
			}
		})
	}
}

func TestThePageOfDifferencesHasEachWithItsServers(t *testing.T) {
	text := string(Compatibility()["compatibility.md"])
	for _, a := range compat.Areas {
		for _, d := range compat.List(a) {
			if !strings.Contains(text, "\n| "+d.ID+" | "+d.Servers.String()+" | ") {
				t.Errorf("%s is not on the page", d.ID)
			}
		}
	}
}

// The data that other packages have of the commands is that of the Specs.
func TestGeneratedSourcesAreFresh(t *testing.T) {
	table, err := servercmd.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	all, err := Routing(table)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(all, routing.Commands()) {
		t.Error("the table of internal/routing is stale; run `make docs`")
	}
	files, err := Sources(table)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join("../..", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale; run `make docs`: %v", name, err)
		}
	}
}

// A Spec that clients or plain replicas could not follow is refused, by the table or by the
// generator: what a new command needs cannot be forgotten.
func TestASpecThatClientsCannotFollowIsRefused(t *testing.T) {
	run := func(*command.Ctx) error { return nil }
	for want, s := range map[string]command.Spec{
		"no argument says how long it waits": {Flags: command.Write | command.Blocking | command.Blind,
			Args: []command.Arg{command.Key("key", command.Update), command.Int("patience")}},
		"say by FanOut what a client does": {Tips: []string{"request_policy:all_shards"}},
		"FanOut without the tip":           {FanOut: command.FanOutSum},
		"without StreamControl":            {Flags: command.Write, Stream: command.StreamControl},
		"StreamEffect without the flag":    {Stream: command.StreamEffect},
		"give the Spec KeyOptions": {Flags: command.Blind, Args: []command.Arg{command.Opt(command.TokenArg("BY", command.Pattern("pattern")))},
			KeySpecs: []command.KeySpec{{Flags: command.Read}},
			Keys:     func(dst []command.KeyRef, _ [][]byte) ([]command.KeyRef, error) { return dst, nil }},
	} {
		s.Name, s.Group, s.Since, s.Complexity, s.Summary, s.Examples, s.Run = "foo", command.GroupGeneric, "1.0.0", "O(1)", "Does.", "> FOO\nOK\n", run
		table, err := command.NewTable(&s)
		if err == nil {
			_, err = Routing(table)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

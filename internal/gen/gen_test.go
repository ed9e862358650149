package gen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/command"
	"github.com/ebbdb/ebb/internal/compat"
)

func table(t *testing.T) *command.Table {
	t.Helper()
	run := func(*command.Ctx) error { return nil }
	spec := func(s command.Spec) *command.Spec {
		s.Group, s.Since, s.Complexity, s.Summary = command.GroupHash, "1.0.0", "O(1)", "Stands for a command."
		return &s
	}
	set, err := command.NewTable(
		spec(command.Spec{Name: "hput", Run: run, Flags: command.Write, Examples: "> HPUT h f v\n(integer) 1\n~ 10ms\n",
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
	pages := Pages("", table(t))
	text := string(pages["hput.md"])
	for _, want := range []string{Marker + "# HPUT\n\nStands for a command.\n\n    HPUT key [NX | XX] field [field ...]\n",
		"| Since | 1.0.0 |", "| Complexity | O(1) |", "| Flags | write |", "| ACL categories | @write @hash @slow |", "| Arity | -3 |",
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
		"## Hash\n\n| Command | Summary | Transcript | Cases | Requests |\n|---|---|---|---|---|\n| [HCTL](hctl.md) | Stands for a command. |  |  |  |\n| [HCTL GET](hctl-get.md) |") {
		t.Errorf("the index:\n%s", text)
	}
}

func TestCheckNamesWhatIsStaleAndWriteMendsIt(t *testing.T) {
	dir, pages := t.TempDir(), Pages("", table(t))
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

func TestWhatIsMissingOfRedisHasAReason(t *testing.T) {
	all, err := command.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	if _, unexplained := Missing(all); len(unexplained) > 0 {
		t.Errorf("commands of redis-server 7.0 that are not there, without a reason: %s", strings.Join(unexplained, ", "))
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

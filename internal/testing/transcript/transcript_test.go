package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// script is a Target that sends prepared replies, and records the requests.
type script struct {
	answers [][]resp.Value // one for each request
	inbox   map[int][]resp.Value
	sent    []string
	now     time.Duration
}

func answering(answers ...[]resp.Value) *script {
	return &script{answers: answers, inbox: map[int][]resp.Value{}}
}

func (s *script) Send(conn int, args []string) error {
	s.sent = append(s.sent, Line(args))
	if len(s.answers) > 0 {
		s.inbox[conn] = append(s.inbox[conn], s.answers[0]...)
		s.answers = s.answers[1:]
	}
	return nil
}

func (s *script) Next(conn int) (v resp.Value, ok bool) {
	if len(s.inbox[conn]) == 0 {
		return v, false
	}
	v, s.inbox[conn] = s.inbox[conn][0], s.inbox[conn][1:]
	return v, true
}

func (s *script) Unread(conn int, v []resp.Value) { s.inbox[conn] = append(v, s.inbox[conn]...) }

func (s *script) Advance(d time.Duration) error { s.now += d; return nil }

func integers(n ...int64) (vals []resp.Value) {
	for _, i := range n {
		vals = append(vals, resp.Value{Kind: resp.KindInt, Int: i})
	}
	return vals
}

func bulks(s ...string) resp.Value {
	v := resp.Value{Kind: resp.KindArray}
	for _, x := range s {
		v.Elems = append(v.Elems, resp.Value{Kind: resp.KindBulk, Str: x})
	}
	return v
}

func playText(t *testing.T, text string, s *script) error {
	t.Helper()
	cases, err := Parse("file.txt", text)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) != 1 {
		t.Fatalf("%d cases", len(cases))
	}
	return Play(&cases[0], s, Rules{})
}

func TestAFileIsSplitIntoCases(t *testing.T) {
	cases, err := Parse("f", "# one\n# oracle: none, because\n# more\n> GET \"a b\" (unordered)\n\n(nil)\n~ 1500ms\n\n# two\n"+
		"2> PING\nPONG\n2< hello\nmore\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) != 2 || cases[0].Title != "one" || cases[0].Oracle != "none, because" || cases[1].Title != "two" || cases[1].Line != 9 {
		t.Fatalf("%+v", cases)
	}
	a := cases[0].Steps
	if len(a) != 2 || a[0].Args[1] != "a b" || !a[0].Unordered || a[0].Reply[0] != "(nil)" || a[1].Wait != 1500*time.Millisecond {
		t.Fatalf("%+v", a)
	}
	b := cases[1].Steps
	if len(b) != 2 || b[0].Conn != 2 || b[1].Kind != Message || strings.Join(b[1].Reply, "|") != "hello|more" {
		t.Fatalf("%+v", b)
	}
}

func TestAMistakeIsShownWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"# a\nOK\n":             `f:2: a reply without a request: "OK"`,
		"> GET \"a\n":           "f:1: unbalanced quotes",
		"> GET a\n(nil)\n~ 1\n": `f:3: "1" is not a duration`,
	} {
		if _, err := Parse("f", text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestWhatIsCapturedIsSentAndCompared(t *testing.T) {
	s := answering(integers(5), integers(9), integers(5))
	err := playText(t, "# x\n> A\n(integer) $first\n> B k$first $other\n(integer) $second > $first\n> C\n(integer) $first\n", s)
	if err != nil || s.sent[1] != "B k5 $other" {
		t.Fatal(err, s.sent)
	}
	s = answering(integers(5), integers(4))
	if err := playText(t, "> A\n(integer) $a\n> B\n(integer) $b > $a\n", s); err == nil {
		t.Fatal("4 > 5")
	}
}

func TestADifferenceIsShownLineByLine(t *testing.T) {
	s := answering([]resp.Value{bulks("a", "b")})
	err := playText(t, "# x\n> A\n1) \"a\"\n2) \"c\"\n", s)
	want := "file.txt:2: x: the reply differs\n    1> A\n      1) \"a\"\n    - 2) \"c\"\n    + 2) \"b\"\n"
	if err == nil || err.Error() != want {
		t.Fatalf("got\n%v\nwant\n%s", err, want)
	}
}

func TestElementsWithoutOrderAreCompared(t *testing.T) {
	nested := bulks("b", "a")
	nested.Elems = append(nested.Elems, bulks("x", "y"))
	ok := answering([]resp.Value{nested})
	if err := playText(t, "> K (unordered)\n1) 1) \"x\"\n   2) \"y\"\n2) \"a\"\n3) \"b\"\n", ok); err != nil {
		t.Error(err)
	}
	bad := answering([]resp.Value{bulks("a", "a")})
	if err := playText(t, "> K (unordered)\n1) \"a\"\n2) \"b\"\n", bad); err == nil {
		t.Error("a, a is not a, b")
	}
}

func TestEveryMessageMustBeShown(t *testing.T) {
	s := answering(append(integers(1), bulks("message")))
	if err := playText(t, "> A\n(integer) 1\n1< 1) \"message\"\n", s); err != nil {
		t.Error(err)
	}
	s = answering(append(integers(1), bulks("message")))
	if err := playText(t, "> A\n(integer) 1\n", s); err == nil || !strings.Contains(err.Error(), "not shown") {
		t.Error(err)
	}
}

func TestAnEllipsisStandsForAnyLines(t *testing.T) {
	for text, good := range map[string]bool{
		"> A\n1) \"a\"\n...\n":             true,
		"> A\n...\n3) \"c\"\n":             true,
		"> A\n...\n2) \"b\"\n":             false,
		"> A\n1) \"a\"\n...\n3) \"c\"\n":   true,
		"> A\n1) \"x\"\n...\n":             false,
		"> A\n1) \"$_\"\n...\n3) \"$_\"\n": true,
	} {
		s := answering([]resp.Value{bulks("a", "b", "c")})
		if err := playText(t, text, s); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAFileIsRewrittenToWhatIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.txt")
	text := "# one\n\n> A \"x y\"\n(nil)\n> B\n(integer) $n\n~ 5ms\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cases, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	s := answering([]resp.Value{bulks("a", "b")})
	cases[0].Steps[1].Args = []string{"B"}
	if err := Play(&Case{Steps: cases[0].Steps[:1]}, s, Rules{Record: true}); err != nil {
		t.Fatal(err)
	}
	if err := Update(path, cases); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	want := "# one\n\n> A \"x y\"\n1) \"a\"\n2) \"b\"\n> B\n(integer) $n\n~ 5ms\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
}

func TestARequestIsWrittenWithTheQuotesItNeeds(t *testing.T) {
	for _, args := range [][]string{{"SET", "a b", ""}, {"a\x00\r\n\"'", "plain", "$1"}} {
		back, ok := wire.SplitArgs(Line(args))
		if !ok || strings.Join(back, "|") != strings.Join(args, "|") {
			t.Errorf("%q: %s: %q", args, Line(args), back)
		}
	}
}

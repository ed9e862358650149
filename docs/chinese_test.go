package docs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// chineseIndex lists the Chinese pages. It follows no English page.
const chineseIndex = "zh-CN/README.md"

// A chinesePage is a Chinese page and the English page that it follows.
type chinesePage struct {
	name, english string // paths
	hash          string // of the English page, as the Chinese page has it
	text, follows []byte // the contents of both
}

// chinesePages reads all Chinese pages except the index.
func chinesePages(t *testing.T) (all []chinesePage) {
	t.Helper()
	firstLine := regexp.MustCompile(`^<!-- follows (\S+\.md) ([0-9a-f]{16}) -->\n`)
	for _, pattern := range []string{"../*.zh-CN.md", "zh-CN/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if filepath.ToSlash(name) == chineseIndex {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			m := firstLine.FindSubmatch(text)
			if m == nil {
				t.Errorf("the first line of %s does not name the English page that it follows", name)
				continue
			}
			p := chinesePage{name: name, english: filepath.Join(filepath.Dir(name), string(m[1])), hash: string(m[2]), text: text}
			if p.follows, err = os.ReadFile(p.english); err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
	}
	if len(all) < 2 {
		t.Errorf("%d Chinese pages were found; want README.zh-CN.md and those of zh-CN", len(all))
	}
	return all
}

// A Chinese page names the English page that it follows, with the first digits of its hash. When the English page changes, the
// test names the Chinese one: translate the change, and put the new hash into its first line.
func TestChinesePagesFollowTheEnglishOnes(t *testing.T) {
	for _, p := range chinesePages(t) {
		sum := sha256.Sum256(p.follows)
		if got := hex.EncodeToString(sum[:])[:len(p.hash)]; got != p.hash {
			t.Errorf("%s is stale: %s has changed since %s, its hash is now %s", p.name, p.english, p.hash, got)
		}
	}
}

// A reader copies commands and code from a page. They are the same in both languages; only comments are translated.
func TestChinesePagesShowTheCommandsAndTheCodeOfTheEnglishOnes(t *testing.T) {
	for _, p := range chinesePages(t) {
		if got, want := shown(string(p.text)), shown(string(p.follows)); !slices.Equal(got, want) {
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Errorf("%s has other commands or other code than %s, from %q on; want %q", p.name, p.english,
						got[min(i, len(got)):], want[min(i, len(want)):])
					break
				}
			}
		}
	}
}

// comment matches what stands behind the code of a line.
var comment = regexp.MustCompile(`\s*(//|#) .*`)

// shown returns the lines of a page that a reader may copy: the Go between fences, and the lines of a transcript that begin with a
// prompt, without comments and with equal space.
func shown(page string) (all []string) {
	inside := false
	for line := range strings.Lines(page) {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "```"):
			inside = !inside
		case inside, strings.HasPrefix(line, "    ") && (strings.HasPrefix(text, "$ ") || strings.HasPrefix(text, "127.0.0.1:6379> ")),
			strings.HasPrefix(line, "    go "), strings.HasPrefix(line, "    ebb "):
			if text = strings.TrimSpace(comment.ReplaceAllString(text, "")); text != "" {
				all = append(all, text)
			}
		}
	}
	return all
}

func TestTheChineseIndexListsAllPages(t *testing.T) {
	index, err := os.ReadFile(chineseIndex)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range chinesePages(t) {
		if dir, name := filepath.Split(p.name); filepath.Base(dir) == "zh-CN" &&
			!regexp.MustCompile(`\]\(`+regexp.QuoteMeta(name)+`[)#]`).Match(index) {
			t.Errorf("%s does not link to %s", chineseIndex, name)
		}
	}
}

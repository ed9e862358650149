package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A block is a part of a page that a reader sees as one text: a paragraph, an item of a list, a heading or a row of a table.
type block struct {
	line int
	text string
}

var (
	fence = regexp.MustCompile("^\\s*(```+|~~~+)")
	// begins matches a line that begins a block, although no blank line stands before it.
	begins = regexp.MustCompile(`^\s*(?:#+ |[*+-] |\d+\. |\||>|<!--)`)
	// html matches what GitHub does not show.
	html = regexp.MustCompile(`(?s)<!--.*?-->`)
)

// blocks returns the blocks of a page, without its code between fences and its indented code.
func blocks(page string) (all []block) {
	page = html.ReplaceAllStringFunc(page, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	closing, blank, code := "", true, false
	for i, line := range strings.Split(page, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case closing != "":
			if m != nil && strings.HasPrefix(m[1], closing) {
				closing, blank = "", true
			}
			continue
		case m != nil:
			closing = m[1]
			continue
		case strings.TrimSpace(line) == "":
			blank = true
			continue
		}
		code = strings.HasPrefix(line, "    ") && (blank || code)
		switch {
		case code:
		case blank || begins.MatchString(line) || strings.HasPrefix(all[len(all)-1].text, "#"):
			all = append(all, block{i + 1, line})
		default:
			all[len(all)-1].text += "\n" + line
		}
		blank = false
	}
	return all
}

// withoutCode returns a text without its code spans. ok is false if a backquote has no partner.
func withoutCode(text string) (rest string, ok bool) {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '`')
		if i < 0 {
			b.WriteString(text)
			return b.String(), true
		}
		b.WriteString(text[:i])
		if i > 0 && text[i-1] == '\\' {
			text = text[i+1:]
			continue
		}
		n := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
		end := i + n
		for {
			j := strings.IndexByte(text[end:], '`')
			if j < 0 {
				return b.String(), false
			}
			end += j
			m := len(text[end:]) - len(strings.TrimLeft(text[end:], "`"))
			if end += m; m == n {
				break
			}
		}
		b.WriteString("``")
		text = text[end:]
	}
}

// boldFault returns what is wrong with the marks of bold text; "": nothing.
func boldFault(text string) string {
	parts := strings.Split(strings.ReplaceAll(text, `\*`, ""), "**")
	if len(parts)%2 == 0 {
		return "has an odd number of **"
	}
	for i := 1; i < len(parts); i += 2 {
		if parts[i] != strings.TrimSpace(parts[i]) || parts[i] == "" {
			return fmt.Sprintf("is not bold, because a space stands inside of the marks: %q", parts[i])
		}
	}
	return ""
}

// cells returns the number of cells of a row, 0 if the row has no end. As on GitHub, a bar inside of code needs a backslash too.
func cells(row string) int {
	row = strings.TrimSpace(strings.ReplaceAll(row, `\|`, ""))
	if len(row) < 2 || !strings.HasSuffix(row, "|") {
		return 0
	}
	return strings.Count(row, "|") - 1
}

// formFaults returns the faults of a page's markup, each with its line.
func formFaults(page string) (faults []string) {
	fault := func(b block, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%d: ", b.line)+fmt.Sprintf(format, args...))
	}
	width, last := 0, -1 // the cells of the table's first row, and the line of the last row
	for _, b := range blocks(page) {
		text, ok := withoutCode(b.text)
		if !ok {
			fault(b, "a backquote has no partner")
		}
		if s := boldFault(text); s != "" {
			fault(b, "the text %s", s)
		}
		if !strings.HasPrefix(b.text, "|") {
			continue
		}
		if n := cells(b.text); b.line != last+1 {
			width = n
		} else if n != width {
			fault(b, "the row has %d cells, and the first row of its table %d", n, width)
		}
		last = b.line
	}
	return faults
}

// link matches a link inside the tree: the path of a page, or nothing, and a heading.
var link = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^):\s]+))?\)`)

var (
	linked   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	unnamed  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	headings = regexp.MustCompile(`^#+ (.*)$`)
)

// anchors returns the names of a page's headings in links, as GitHub makes them.
func anchors(page string) (all []string) {
	seen := map[string]int{}
	for _, b := range blocks(page) {
		m := headings.FindStringSubmatch(b.text)
		if m == nil {
			continue
		}
		name := unnamed.ReplaceAllString(strings.ToLower(linked.ReplaceAllString(m[1], "$1")), "")
		name = strings.ReplaceAll(name, " ", "-")
		if n := seen[name]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", name, n))
		} else {
			all = append(all, name)
		}
		seen[name]++
	}
	return all
}

// pages returns the pages of the tree by their paths from this folder.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && d.Name() != ".github"
			if hidden || d.Name() == "testdata" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		page, err := os.ReadFile(path)
		all[path] = string(page)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 500 {
		t.Errorf("%d pages were found; there are more than 500", len(all))
	}
	return all
}

// deadLinks returns the links of a page that lead to no file or to no heading, each with its line.
func deadLinks(path, page string, all map[string]string) (dead []string) {
	for _, b := range blocks(page) {
		text, _ := withoutCode(b.text)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to, target := path, page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(m[1]))
				if _, err := os.Stat(to); err != nil {
					dead = append(dead, fmt.Sprintf("%d: there is no file %s", b.line, m[1]))
					continue
				}
				target = all[to]
			}
			if m[2] != "" && !slices.Contains(anchors(target), m[2]) {
				dead = append(dead, fmt.Sprintf("%d: %s has no heading %q; it has %q", b.line, to, m[2], anchors(target)))
			}
		}
	}
	return dead
}

// Each link of a page that names no other site leads to a file of the tree, and to a heading of it.
func TestTheLinksOfPagesLeadSomewhere(t *testing.T) {
	all := pages(t)
	for path, page := range all {
		for _, s := range deadLinks(path, page, all) {
			t.Errorf("%s:%s", path, s)
		}
	}
}

// The marks of code and of bold text have partners, and the rows of a table have as many cells as its first row: GitHub shows
// marks without a partner as they are, and drops cells.
func TestTheMarkupOfPagesIsComplete(t *testing.T) {
	for path, page := range pages(t) {
		for _, s := range formFaults(page) {
			t.Errorf("%s:%s", path, s)
		}
	}
}

func TestFaultsOfMarkupAreFound(t *testing.T) {
	for page, want := range map[string]int{
		"**bold** and `code`":                    0,
		"**bold* and `code`":                     1,
		"a `code\n\nand `more`":                  1,
		"**two\nlines**":                         0,
		"** spaced**":                            1,
		"* **item**\n* **open\n\ntext** on":      2,
		"```\n** `\n```\n\n    ** `":             0,
		"`a ** b` and ``a ` b``":                 0,
		"| a | b |\n|---|---|\n| 1 | 2 |":        0,
		"| a | b |\n|---|---|\n| 1 | 2 | 3 |":    1,
		"| a | b |\n|---|---|\n| `x\\|y` | 2 |":  0,
		"| a | b |\n|---|---|\n| `x|y` | 2 |":    1,
		"| a | b |\n|---|---|\n| 1 | 2":          1,
		"| a |\n|---|\n\n| a | b |\n|---|---|\n": 0,
		"# head\nthe `text":                      1,
		"<!-- ** ` -->\ntext":                    0,
	} {
		if got := formFaults(page); len(got) != want {
			t.Errorf("%q has the faults %q, want %d", page, got, want)
		}
	}
	other := map[string]string{"code_test.go": ""}
	for page, want := range map[string]int{
		"# A head: `x`, [y](z)\n[a](#a-head-x-y)": 1, // z does not exist
		"# A head\n[a](#a-head) [b](#b-head)":     1,
		"[a](code_test.go) [b](no.md)":            1,
		"[a](https://example.com/x#y) `[a](no)`":  0,
		"# x\n# x\n[a](#x-1)":                     0,
	} {
		if got := deadLinks("page.md", page, other); len(got) != want {
			t.Errorf("%q has the dead links %q, want %d", page, got, want)
		}
	}
}

package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	subjectColumns = 72
	shortChange    = 20 // lines that a commit without a body changes, at most
)

// reviewCode matches codes of a list that readers of the history do not have, such as "(F1, F4)".
var reviewCode = regexp.MustCompile(`\([A-Z]{1,2}\d{1,3}(?:, ?[A-Z]{1,2}\d{1,3})*\)`)

// question matches subjects such as "queue: what the campaign found", which do not say what has changed.
var question = regexp.MustCompile(`: (what|how (much|many|long)) `)

// leftover matches the files in which pgregory.net/rapid keeps the draws of failures. .gitignore has them, so git add -f adds them alone.
var leftover = regexp.MustCompile(`(^|/)testdata/rapid/`)

// trailer matches lines such as "Signed-off-by: ...".
var trailer = regexp.MustCompile(`(?m)^[A-Z][A-Za-z]*(-[a-z]+)+: .*$`)

// checkCommits checks the messages of the commits since base, and returns errFailed if one breaks a rule of CONTRIBUTING.md. It does not
// judge what has landed, which nothing can mend. Where the history does not reach back to base, as in a shallow clone, it checks none.
func checkCommits(out io.Writer) error {
	if _, err := git("rev-parse", "--quiet", "--verify", base()+"^{commit}"); err != nil {
		fmt.Fprintf(out, "the messages of commits are not checked: there is no commit %s\n", base())
		return nil
	}
	// Each commit begins with NUL; its message and the numbers of changed lines follow.
	log, err := git("log", "--no-merges", "--numstat", "--format=%x00%h%n%s%n%b%x01", base()+"..HEAD")
	if err != nil {
		return err
	}
	failed := false
	for commit := range strings.SplitSeq(log, "\x00") {
		if broken := brokenRule(commit); broken != "" {
			failed = true
			id, _, _ := strings.Cut(commit, "\n")
			fmt.Fprintf(out, "FAIL: commit %s: %s\n", id, broken)
		}
	}
	if failed {
		return errFailed
	}
	return nil
}

// brokenRule returns the rule that a commit breaks, "" if it breaks none.
func brokenRule(commit string) string {
	message, stat, _ := strings.Cut(commit, "\x01")
	lines := strings.SplitN(message, "\n", 3) // id, subject, body
	if len(lines) < 3 {
		return ""
	}
	changed := 0
	for s := bufio.NewScanner(strings.NewReader(stat)); s.Scan(); {
		fields := strings.SplitN(s.Text(), "\t", 3) // added lines, removed ones, the file
		if len(fields) < 3 {
			continue
		}
		added, _ := strconv.Atoi(fields[0]) // "-" of a file that is not text
		removed, _ := strconv.Atoi(fields[1])
		if changed += added + removed; added > 0 && leftover.MatchString(fields[2]) {
			return fmt.Sprintf("it adds %s, which a random test that failed has left behind", fields[2])
		}
	}
	switch n := utf8.RuneCountInString(lines[1]); {
	case n > subjectColumns:
		return fmt.Sprintf("the subject has %d columns; it must have at most %d", n, subjectColumns)
	case reviewCode.MatchString(lines[1]):
		return fmt.Sprintf("the subject has the code %s, which the history does not explain", reviewCode.FindString(lines[1]))
	case question.MatchString(lines[1]):
		return "the subject does not say what has changed: name it"
	case strings.Contains(lines[1], "; "):
		return "the subject has a semicolon: two matters are two commits"
	case strings.TrimSpace(trailer.ReplaceAllString(lines[2], "")) == "" && changed > shortChange:
		return fmt.Sprintf("it changes %d lines; above %d it must have a body: what was, what is, and why", changed, shortChange)
	}
	return ""
}

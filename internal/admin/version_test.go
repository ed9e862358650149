package admin

import (
	"os"
	"regexp"
	"testing"
)

// The version is that of the newest heading, with -dev as long as that is not released.
func TestTheVersionIsThatOfTheChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile(`(?m)^## ([0-9]+\.[0-9]+\.[0-9]+) \((\d|unreleased)`).FindSubmatch(text)
	if heading == nil {
		t.Fatal("CHANGELOG.md has no version")
	}
	want := string(heading[1])
	if string(heading[2]) == "unreleased" {
		want += "-dev"
	}
	if Version != want {
		t.Errorf("Version is %s, CHANGELOG.md wants %s", Version, want)
	}
}

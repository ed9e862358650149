package admin

import (
	"os"
	"regexp"
	"testing"
)

// The version is that of the newest release.
func TestTheVersionIsThatOfTheChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	release := regexp.MustCompile(`(?m)^## ([0-9]+\.[0-9]+\.[0-9]+) \(\d`).FindSubmatch(text)
	if release == nil || string(release[1]) != Version {
		t.Errorf("Version is %s, the newest release of CHANGELOG.md %s", Version, release)
	}
}

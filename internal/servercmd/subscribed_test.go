package servercmd_test

import (
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/servercmd"
)

// The error of a subscribed RESP2 client names the commands that it may send, and these have the flag, with the sharded forms.
func TestASubscribedClientMaySendTheCommandsThatItsErrorNames(t *testing.T) {
	table, err := servercmd.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for id := range table.Len() {
		if s := table.Spec(id); s.Has(command.InSubscription) {
			got = append(got, s.Name)
		}
	}
	slices.Sort(got)
	want := []string{"ping", "psubscribe", "punsubscribe", "quit", "reset", "ssubscribe", "subscribe", "sunsubscribe", "unsubscribe"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

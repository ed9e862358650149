package routing

import (
	"strings"
	"sync"

	"github.com/ebbdb/ebb/internal/command"
)

// quick are the names of the commands that never wait and take next to no time, in
// capital and in small letters; scripts are as quick as they are written.
var quick = sync.OnceValue(func() map[string]struct{} {
	names := map[string]struct{}{}
	add := func(name string) {
		names[strings.ToLower(name)], names[strings.ToUpper(name)] = struct{}{}, struct{}{}
	}
	for _, name := range []string{"evalsha", "evalsha_ro", "lock.acquire", "sem.acquire"} {
		add(name)
	}
	table, err := Table()
	if err != nil {
		return names
	}
	for _, spec := range table.Commands() {
		if spec.Has(command.Fast) && !spec.Has(command.Blocking) && len(spec.Sub) == 0 {
			add(spec.Name)
		}
	}
	return names
})

// Quick reports whether a command, by its name, may go with others, so that its reply
// comes with theirs: it never waits, but for LOCK.ACQUIRE and SEM.ACQUIRE with the word
// WAIT, and takes next to no time.
func Quick(name string) bool {
	_, ok := quick()[name]
	return ok
}

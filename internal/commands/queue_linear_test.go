package commands_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/ebbdb/ebb/internal/testing/history"
)

// hourLease is a lease that does not end within a history.
const hourLease = "3600000"

// jobIDs are the ids of the jobs; the last three jobs have priority 1, the others 0.
const jobIDs = "012345"

// jobQueue is the model's state of one queue: the ids of the due jobs in their order, and a bit for each
// leased job.
type jobQueue struct {
	ready  string
	leased uint
}

// jobQueues is the model's state: a queue for each of the keys a, b and c.
type jobQueues [3]jobQueue

// apply runs a command on the model and returns the reply, shortened as by firstField.
func (k *jobQueues) apply(args []string) string {
	q := &k[strings.IndexByte("abc", args[1][0])]
	if args[0] == "DQ.POP" {
		if q.ready == "" {
			return "(nil)"
		}
		id := q.ready[:1]
		q.ready, q.leased = q.ready[1:], q.leased|1<<(id[0]-'0')
		return id
	}
	id := args[2]
	bit := uint(1) << (id[0] - '0')
	at := strings.Index(q.ready, id)
	there := at >= 0 || q.leased&bit != 0
	if args[0] == "DQ.CANCEL" {
		q.leased &^= bit
		q.ready = strings.ReplaceAll(q.ready, id, "")
		return map[bool]string{true: "1", false: "0"}[there]
	}
	if there { // DQ.ADD
		return "(nil)"
	}
	if at = len(q.ready); id < "3" { // behind the jobs with the same priority
		q.ready += id
		return id
	}
	if i := strings.IndexAny(q.ready, "012"); i >= 0 {
		at = i
	}
	q.ready = q.ready[:at] + id + q.ready[at:]
	return id
}

// firstField shortens a reply to the job's id.
func firstField(reply string) string {
	if reply == "" {
		return "(nil)"
	}
	id, _, _ := strings.Cut(reply, " ")
	return id
}

var queueLinearModel = porcupine.Model{
	Init: func() any { return jobQueues{} },
	Step: func(state, input, output any) (bool, any) {
		k := state.(jobQueues)
		got := strings.Split(output.(string), "\x00")
		for i, args := range input.(history.Atom) {
			if i >= len(got) || k.apply(args) != firstField(got[i]) {
				return false, k
			}
		}
		return len(got) == len(input.(history.Atom)), k
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%q -> %q", input, output) },
}

func randomQueueCommand(rng *rand.Rand) []string {
	key, id := history.Keys[rng.IntN(len(history.Keys))], rng.IntN(len(jobIDs))
	switch rng.IntN(5) {
	case 0:
		return []string{"DQ.CANCEL", key, jobIDs[id : id+1]}
	case 1, 2:
		return []string{"DQ.POP", key, "LEASE", hourLease}
	}
	return []string{"DQ.ADD", key, jobIDs[id : id+1], "payload", "PRIORITY", strconv.Itoa(id / 3)}
}

func TestDelayQueuesAreLinearizable(t *testing.T) {
	for round := range history.Rounds {
		if !history.Check(t, queueLinearModel, history.RecordCommands(t, uint64(round), randomQueueCommand)) {
			return
		}
	}
}

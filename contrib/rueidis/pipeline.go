package rueidisebb

import (
	"context"
	"sync"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// job is one command of a batch.
type job struct {
	words []string
	slot  uint16 // of a cluster
	last  remote.Answer
}

// pipeline runs a batch. In a cluster, a command for all nodes runs after the commands
// before it and before those after it. The order of the other commands holds in each slot.
func (d *driver) pipeline(ctx context.Context, cmds [][]string, w *wait) ([]conn.Value, error) {
	jobs := make([]*job, len(cmds))
	for i, words := range cmds {
		jobs[i] = &job{words: words}
	}
	for rest := jobs; len(rest) > 0; {
		n := 0
		for n < len(rest) && (!d.cluster || fanOutOf(rest[n].words) == nil) {
			n++
		}
		if n > 0 {
			d.batch(ctx, rest[:n], w)
		} else {
			n = 1
			v, err := fanOutOf(rest[0].words)(ctx, d, w, rest[0].words)
			rest[0].last = remote.Answer{V: v, Err: err, Ran: true}
		}
		rest = rest[n:]
	}
	values, ran := make([]conn.Value, len(jobs)), false
	for i, j := range jobs {
		if j.last.Err != nil {
			return nil, j.last.Err
		}
		values[i], ran = j.last.V, ran || j.last.Ran
	}
	if !ran {
		return nil, d.policy.Refusal("pipeline", values[0])
	}
	return values, nil
}

// batch sends jobs until each has a final answer, or the policy allows no further try. It
// sends a job again that did not run, unless a later job of its slot has run: then the
// error stays in its reply. On one server all jobs are in one slot.
func (d *driver) batch(ctx context.Context, jobs []*job, w *wait) {
	pending := jobs
	_, _ = d.policy.Persist(ctx, "pipeline", func() remote.Answer {
		if w != nil {
			d.roundReplicated(ctx, pending, w)
		} else {
			d.round(ctx, pending)
		}
		ran := map[uint16]bool{} // slots in which a later job has run
		var again []*job
		for i := len(pending) - 1; i >= 0; i-- {
			j := pending[i]
			switch {
			case !d.policy.Again(ctx, j.last):
				ran[j.slot] = true
			case !ran[j.slot]:
				again = append([]*job{j}, again...)
			}
		}
		if len(again) == 0 {
			return remote.Answer{Ran: true}
		}
		pending = again
		return again[0].last
	})
}

// build builds the command of a job.
func (d *driver) build(j *job) rueidis.Completed {
	c := d.routed(j.words)
	if d.cluster {
		j.slot = c.Slot()
	}
	return c
}

// round sends jobs once, all at the same time.
func (d *driver) round(ctx context.Context, jobs []*job) {
	batch, names := make([]rueidis.Completed, len(jobs)), make([]string, len(jobs))
	keyed, keyless := false, false
	for i, j := range jobs {
		batch[i], names[i] = d.build(j), j.words[0]
		keyed, keyless = keyed || j.slot != noSlot, keyless || j.slot == noSlot
	}
	answers, err := await(ctx, d, "pipeline", func() []remote.Answer {
		answers := make([]remote.Answer, len(batch))
		if keyed && keyless { // rueidis sends a batch with both kinds to one slot only
			for i, cmd := range batch {
				answers[i] = d.answer(ctx, names[i], d.client.Do(ctx, cmd))
			}
			return answers
		}
		for i, r := range d.client.DoMulti(ctx, batch...) {
			answers[i] = d.answer(ctx, names[i], r)
		}
		return answers
	})
	for i, j := range jobs {
		if j.last = (remote.Answer{Err: err, Ran: true}); err == nil {
			j.last = answers[i]
		}
	}
}

// mostGroups is the number of slots of a batch that are sent at the same time; each has a
// connection of its own.
const mostGroups = 16

// roundReplicated sends jobs once. The jobs of a slot share a connection, which then waits
// for the replicas.
func (d *driver) roundReplicated(ctx context.Context, jobs []*job, w *wait) {
	groups := map[uint16][]*job{}
	for _, j := range jobs {
		if d.cluster {
			j.slot = noSlot
			if key := keyOf(j.words); key != "" {
				j.slot = uint16(routing.Slot(key))
			}
		}
		groups[j.slot] = append(groups[j.slot], j)
	}
	room := make(chan struct{}, mostGroups)
	var all sync.WaitGroup
	for _, group := range groups {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			d.sendGroup(ctx, group, w)
		})
	}
	all.Wait()
}

// sendGroup sends the jobs of one slot.
func (d *driver) sendGroup(ctx context.Context, group []*job, w *wait) {
	key, cmds := "", make([][]string, len(group))
	for i, j := range group {
		cmds[i] = j.words
		if key == "" {
			key = keyOf(j.words)
		}
	}
	var answers []remote.Answer
	a := d.dedicated(ctx, key, func(c rueidis.DedicatedClient, ask bool) (remote.Answer, bool) {
		answers = d.sendOn(ctx, c, ask, w, cmds...)
		sound := true
		for _, a := range answers {
			sound = sound && a.Err == nil
		}
		return remote.Together(answers), sound
	})
	for i, j := range group {
		if j.last = a; answers != nil {
			j.last = answers[i]
		}
	}
}

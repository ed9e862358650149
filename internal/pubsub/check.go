package pubsub

import "fmt"

// Check verifies the invariants of the broker, for tests. It costs O(n) for n
// subscriptions, with the lock held.
func (b *Broker) Check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var total int64
	for k := range b.topics {
		all := &b.topics[k]
		if len(all.byName) != len(all.list) {
			return fmt.Errorf("kind %d: the map has %d topics, the list %d", k, len(all.byName), len(all.list))
		}
		for i, t := range all.list {
			if t.at != i || all.byName[t.name] != t {
				return fmt.Errorf("kind %d: topic %q is at %d of the list and says %d, or is not in the map", k, t.name, i, t.at)
			}
			if err := t.check(Kind(k)); err != nil {
				return err
			}
			total += int64(len(t.subs))
		}
	}
	if n := b.active.Load(); n != total {
		return fmt.Errorf("the broker counts %d subscriptions, the topics have %d", n, total)
	}
	return nil
}

// check verifies the subscriptions of one topic.
func (t *topic) check(k Kind) error {
	if len(t.subs) == 0 {
		return fmt.Errorf("topic %q has no subscription", t.name)
	}
	for i, s := range t.subs {
		own := &s.c.Subscriptions().sets[k]
		if s.t != t || s.at != i || own.byName[t.name] != s || s.i >= len(own.list) || own.list[s.i] != s {
			return fmt.Errorf("topic %q: subscription %d is not the one in the record of its client", t.name, i)
		}
	}
	return nil
}

package session

import "github.com/ebbdb/ebb/internal/pubsub"

// This file connects the commands of pub/sub with the service's broker.

// Subscribe subscribes the client to channels or patterns, and calls confirm for each, with the number of its
// subscriptions.
func (c *Session) Subscribe(k pubsub.Kind, names [][]byte, confirm func(name []byte, n int)) {
	c.svc.pubsub.Subscribe(c, k, names, confirm)
	c.stayAllowed(k, names)
}

// Unsubscribe ends the client's subscriptions to names, and returns for each the number for the command's
// reply. Earlier messages wait in the session: see SendQueued.
func (c *Session) Unsubscribe(k pubsub.Kind, names [][]byte) []int {
	return c.svc.pubsub.Unsubscribe(c, k, names)
}

// SubscribedTo returns the names of the client's subscriptions of a kind, in order.
func (c *Session) SubscribedTo(k pubsub.Kind) []string { return c.svc.pubsub.Names(c, k) }

// SubscriptionCount returns the number in the reply to an unsubscription of kind k.
func (c *Session) SubscriptionCount(k pubsub.Kind) int { return c.svc.pubsub.Count(c, k) }

// Publish sends a message to the subscribers of this server, and returns the number of messages sent.
// forward, which may be nil, forwards it to replicas, in the same order. bare means that the message reveals
// no data.
func (s *Service) Publish(k pubsub.Kind, channel, msg []byte, bare bool, forward func()) int {
	return s.pubsub.Publish(k, channel, msg, bare, forward)
}

// Channels returns the names of a kind that have subscribers and match a pattern, in order. A nil pattern matches all.
func (s *Service) Channels(k pubsub.Kind, pattern []byte) []string {
	return s.pubsub.Channels(k, pattern)
}

// ChannelCount returns the number of names of a kind that have subscribers.
func (s *Service) ChannelCount(k pubsub.Kind) int { return s.pubsub.Sizes()[k] }

// Subscribers returns the number of clients that are subscribed to a name.
func (s *Service) Subscribers(k pubsub.Kind, name []byte) int { return s.pubsub.Subscribers(k, name) }

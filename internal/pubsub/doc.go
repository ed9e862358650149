// Package pubsub routes published messages and keyspace events to subscribers.
//
//	PUBLISH, events ─▶ Broker.Publish ─▶ topic ─▶ subscription ─▶ Subscriber.Push
//	                                                   ▲
//	a client's Subscriptions ── name ──────────────────┘
//
// A topic is a channel, a pattern or a shard channel that has subscribers. The broker queues
// messages under its lock, so all clients see them in one order. Subscribing and
// unsubscribing cost O(1). A method that walks many subscriptions releases the lock after
// each 256 of them.
//
// The package knows neither sessions nor commands: a client is a Subscriber, which queues
// encoded messages. The commands (SUBSCRIBE, PUBLISH, PUBSUB ...) are in the sessions'
// package.
//
// Invariants: a subscription stands in its topic's list and in its client's record; a topic
// without subscriptions is in no table; Active is false exactly if there is no subscription.
// Check verifies them. Start reading at Broker.Publish.
package pubsub

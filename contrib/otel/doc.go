// Package otelebb records OpenTelemetry spans and metrics of the calls of a Conn:
//
//	c, err := ebb.Open(ctx, "redis://127.0.0.1:6379")
//	...
//	c, err = otelebb.Instrument(c)
//
// The calls of every object on the new Conn are recorded. The names are those of the
// semantic conventions for databases:
//
//	span    GET, PIPELINE, MULTI, WATCH, SUBSCRIBE; of kind client, with
//	        db.system.name (ebb, redis, valkey), db.operation.name, db.operation.batch.size,
//	        and error.type: a reply's code, or "unavailable", "closed", "conflict",
//	        "canceled", "timeout", "argument", "not_replicated"; db.response.status_code for a reply's
//	metric  db.client.operation.duration, a histogram in seconds, with the same
//	        attributes and ebb.call: do, block, pipeline, tx, watch, subscribe. A call
//	        of block waits for work: leave ebb.call=block out of latencies.
//	metric  ebb.client.messages, messages received by subscriptions
//
// Spans and metrics contain no keys and no values, because those are often secrets: see
// Options.Text.
//
// QueueHeaders and QueueMiddleware link the spans of a queue's jobs to their pushes. Their spans name the
// queue and the job's ID.
package otelebb

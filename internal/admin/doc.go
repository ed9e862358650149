// Package admin holds what operators ask a server: INFO, the metrics, counters, rates, slow
// calls, latency samples, the system's numbers, and the version.
//
//	a command ends ─▶ LoopStats.Of(id)     calls, errors, how long they took
//	                ├▶ Slowlog.Add         when it took long
//	                └▶ LatencyMonitor.Add  when it took longer than the threshold
//
//	INFO ─────▶ Server.Info ─┐
//	/metrics ─▶ Meter.Read ──┴▶ counters, engine, pub/sub, tracking, scripts, replication; Host
//
// The package knows neither sessions nor commands: a command is its ID, and Host answers what
// the sessions know. The sessions' package counts, and has the commands.
//
// Invariants: each network loop writes its own LoopStats, so that loops share no cache lines,
// and a reader sums them up; a metric redis_... has the value of INFO's field. Start reading at
// Server.Info and Meter.Read.
package admin

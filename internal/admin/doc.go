// Package admin holds the data that operators request from a server: INFO, the metrics,
// counters, rates, slow calls, latency samples, the system's numbers, and the version.
//
//	a command ends ─▶ LoopStats.Of(id)     calls, errors, durations
//	                ├▶ Slowlog.Add         slow calls
//	                └▶ LatencyMonitor.Add  calls above the threshold
//
//	INFO ─────▶ Server.Info ─┐
//	/metrics ─▶ Meter.Read ──┴▶ counters, engine, pub/sub, tracking, scripts, replication; Host
//
// The package imports neither sessions nor commands: a command is its ID, and Host returns
// the numbers of the sessions. Package session counts, and package servercmd has the commands.
//
// Invariants: each network loop writes its own LoopStats, so that loops share no cache lines,
// and a reader sums them up; a metric redis_... has the value of INFO's field. Start reading at
// Server.Info and Meter.Read.
package admin

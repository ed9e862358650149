// Package admin holds what operators ask a server: counters, rates, slow calls, latency
// samples, the system's numbers, and the version.
//
//	a command ends ─▶ LoopStats.Of(id)     calls, errors, how long they took
//	                ├▶ Slowlog.Add         when it took long
//	                └▶ LatencyMonitor.Add  when it took longer than the threshold
//	INFO, /metrics, LATENCY, SLOWLOG ─▶ sums over loops, samples, latest calls
//
// The package knows neither sessions nor commands: a command is its ID. The sessions'
// package counts into it and has the commands that show it.
//
// Invariant: each network loop writes its own LoopStats, so that loops share no cache
// lines; a reader sums them up. Start reading at LoopStats and Tally.
package admin

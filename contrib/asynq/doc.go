// Package asynqebb runs the delayed tasks and the retries of asynq on time.
//
//	go asynqebb.Forward(ctx, rdb, "default", "critical")
//	server := asynq.NewServerFromRedisClient(rdb, asynq.Config{DelayedTaskCheckInterval: time.Hour})
//
// An asynq server looks for tasks whose time has come every few seconds
// (asynq.Config.DelayedTaskCheckInterval). Forward waits for them with ZPOPDUE PEEK, which replies in
// the millisecond at which one is due, and then lets asynq move the task. It needs an ebb server; Redis and
// Valkey do not have the command.
package asynqebb

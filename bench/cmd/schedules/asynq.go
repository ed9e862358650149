package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/hibiken/asynq"
)

func asynqServer() asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Addr: address(), PoolSize: 64, ReadTimeout: 10 * time.Second}
}

// silent drops what asynq logs.
var silent = asynqLog{log.New(io.Discard, "", 0)}

type asynqLog struct{ *log.Logger }

func (l asynqLog) Debug(args ...any) { l.Println(args...) }
func (l asynqLog) Info(args ...any)  { l.Println(args...) }
func (l asynqLog) Warn(args ...any)  { l.Println(args...) }
func (l asynqLog) Error(args ...any) { l.Println(args...) }
func (l asynqLog) Fatal(args ...any) { l.Fatalln(args...) }

// runScheduler runs one scheduler of asynq with all schedules.
func runScheduler(ctx context.Context) error {
	s := asynq.NewScheduler(asynqServer(), &asynq.SchedulerOpts{Location: time.UTC, Logger: silent})
	for i := range *schedules {
		if _, err := s.Register("* * * * *", asynq.NewTask("job", fmt.Appendf(nil, "s%05d", i))); err != nil {
			return err
		}
	}
	if err := s.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	s.Shutdown()
	return nil
}

// workAsynq runs tasks. A task does not know its time: it belongs to the minute in which it is first run, which
// is right while workers are less than a minute behind.
func workAsynq(ctx context.Context, out *journal) error {
	s := asynq.NewServer(asynqServer(), asynq.Config{Concurrency: *conns, Logger: silent})
	err := s.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		now := time.Now()
		id, _ := asynq.GetTaskID(ctx)
		d := delivery{name: string(t.Payload()), job: id, due: now.Truncate(time.Minute).UnixMilli(), at: now.UnixMicro()}
		if err := out.delivered(d); err != nil {
			return err
		}
		return out.done(d)
	}))
	if err != nil {
		return err
	}
	<-ctx.Done()
	s.Shutdown()
	return nil
}

// leftAsynq adds the tasks that wait, run, or are to run again.
func leftAsynq(context.Context) (int, error) {
	i := asynq.NewInspector(asynqServer())
	defer i.Close()
	info, err := i.GetQueueInfo("default")
	if err != nil {
		return 0, err
	}
	return info.Pending + info.Active + info.Retry + info.Scheduled, nil
}

package loadgen

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/resp"
)

// DueConfig describes sorted sets of jobs that fall due one by one, and clients that take
// them.
type DueConfig struct {
	Common
	Sets     int           // each with a job a second; default 1,000
	Clients  int           // that share the sets; default 50
	Poll     time.Duration // interval in which the clients look; 0: they wait with ZPOPDUE BLOCK
	Peek     bool          // they wait with ZPOPDUE PEEK, and then take the job by their script
	Idle     time.Duration // time without jobs at first; default 5 s
	Duration time.Duration // time in which jobs fall due; default 20 s
}

func (c *DueConfig) setDefaults() {
	orDefault(&c.Sets, 1000)
	orDefault(&c.Clients, 50)
	c.Clients = min(c.Clients, c.Sets)
	orDefault(&c.Idle, 5*time.Second)
	orDefault(&c.Duration, 20*time.Second)
}

// dueLead is the time from adding the jobs to the first that is due. ZADD of 20,000 jobs takes some 50 ms.
const dueLead = 2 * time.Second

// popDueScript is the script of schedulers where there is no ZPOPDUE: it takes the job with the lowest score, if that has
// come.
const popDueScript = `local jobs = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, 1)
if jobs[1] then redis.call('ZREM', KEYS[1], jobs[1]) end
return jobs`

// Due has clients take jobs from sorted sets whose scores are times, and prints how late they get them, and how
// many commands they send with and without jobs. The sets' jobs fall due at evenly spread instants.
func Due(ctx context.Context, cfg DueConfig) error {
	cfg.setDefaults()
	ctl, end, err := cfg.Target.emptied(ctx, cfg.Flush)
	if err != nil {
		return err
	}
	defer end()
	d := due{cfg: cfg, ctl: ctl, all: make(chan struct{})}
	if d.sha, err = d.load(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var takers sync.WaitGroup
	for i := range cfg.Clients {
		takers.Go(func() {
			if err := d.take(ctx, i); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	err = d.measure(ctx)
	cancel(err)
	takers.Wait()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// due is one test under way.
type due struct {
	cfg      DueConfig
	ctl      *client
	sha      string
	commands atomic.Int64 // of the clients that the server has answered

	mu    sync.Mutex
	late  []time.Duration
	early int
	jobs  int           // 0 before they are added
	all   chan struct{} // closed when the last one was taken
}

func (d *due) load() (sha string, err error) {
	if d.cfg.Poll == 0 && !d.cfg.Peek {
		return "", nil
	}
	v, err := d.ctl.do("SCRIPT", "LOAD", popDueScript)
	return v.Str, err
}

// keys returns the sets of a client.
func (d *due) keys(client int) (keys []string) {
	for i := client; i < d.cfg.Sets; i += d.cfg.Clients {
		keys = append(keys, "due:"+strconv.Itoa(i))
	}
	return keys
}

// take is a client.
func (d *due) take(ctx context.Context, id int) error {
	c, err := d.cfg.Target.client(ctx)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	defer c.closeWith(ctx)()
	keys := d.keys(id)
	if d.cfg.Poll > 0 {
		return d.poll(ctx, c, keys)
	}
	args := append(append([]string{"ZPOPDUE", strconv.Itoa(len(keys))}, keys...), "UNIT", "us", "BLOCK", "0")
	if d.cfg.Peek {
		args = append(args, "PEEK")
	}
	for {
		v, err := c.do(args...)
		if err != nil {
			return err
		}
		d.commands.Add(1)
		if len(v.Elems) != 2 || len(v.Elems[1].Elems) != 1 || len(v.Elems[1].Elems[0].Elems) != 2 {
			return fmt.Errorf("ZPOPDUE: unexpected reply %v", v)
		}
		if !d.cfg.Peek {
			d.got(v.Elems[1].Elems[0].Elems[1])
			continue
		}
		if v, err = c.do("EVALSHA", d.sha, "1", v.Elems[0].Str, strconv.FormatInt(time.Now().UnixMicro(), 10)); err != nil {
			return err
		}
		d.commands.Add(1)
		if len(v.Elems) == 2 {
			d.got(v.Elems[1])
		}
	}
}

// poll looks in each interval into all sets, with one pipeline, and again into those that had a job.
func (d *due) poll(ctx context.Context, c *client, keys []string) error {
	tick := time.NewTicker(d.cfg.Poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		for look := keys; len(look) > 0; {
			now := strconv.FormatInt(time.Now().UnixMicro(), 10)
			for _, k := range look {
				c.add("EVALSHA", d.sha, "1", k, now)
			}
			if err := c.flush(); err != nil {
				return err
			}
			var again []string
			for _, k := range look {
				v, err := c.read()
				if err == nil {
					err = v.Err()
				}
				if err != nil {
					return err
				}
				d.commands.Add(1)
				if len(v.Elems) == 2 {
					d.got(v.Elems[1])
					again = append(again, k)
				}
			}
			look = again
		}
	}
}

// got records a delivery.
func (d *due) got(score resp.Value) {
	now := time.Now().UnixMicro()
	at, err := strconv.ParseFloat(score.String(), 64)
	if err != nil {
		return // measure misses it
	}
	late := time.Duration(now-int64(at)) * time.Microsecond
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late = append(d.late, late)
	if late < 0 {
		d.early++
	}
	if len(d.late) == d.jobs {
		close(d.all)
	}
}

func (d *due) measure(ctx context.Context) error {
	if err := d.phase(ctx, "idle", d.cfg.Idle); err != nil {
		return err
	}
	if err := d.addJobs(); err != nil {
		return err
	}
	if err := d.pause(ctx, dueLead); err != nil {
		return err
	}
	if err := d.phase(ctx, "busy", d.cfg.Duration); err != nil {
		return err
	}
	select {
	case <-d.all:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d.cfg.Poll + dueLead): // the finding says how many are missing
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.late)
	const unit = 10 * time.Microsecond
	fmt.Fprintf(d.cfg.Out, "%d of %d jobs, %d too early: late p50=%s p99=%s p99.9=%s max=%s\n", len(d.late), d.jobs, d.early,
		quantile(d.late, 0.5, unit), quantile(d.late, 0.99, unit), quantile(d.late, 0.999, unit), quantile(d.late, 1, unit))
	return nil
}

// phase prints how many commands of the clients the server answers in a time.
func (d *due) phase(ctx context.Context, name string, span time.Duration) error {
	cpu, err := CPUTime(d.cfg.PID)
	if err != nil {
		return err
	}
	n, start := d.commands.Load(), time.Now()
	if err := d.pause(ctx, span); err != nil {
		return err
	}
	n, elapsed := d.commands.Load()-n, time.Since(start)
	after, err := CPUTime(d.cfg.PID)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.cfg.Out, "%s: %.0f commands a second", name, float64(n)/elapsed.Seconds())
	if d.cfg.PID != 0 {
		fmt.Fprintf(d.cfg.Out, ", %.1f %% of a CPU", 100*(after-cpu).Seconds()/elapsed.Seconds())
	}
	fmt.Fprintln(d.cfg.Out)
	return nil
}

func (d *due) pause(ctx context.Context, span time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(span):
		return nil
	}
}

// addJobs adds the jobs of all sets: one a second for each set, at a phase of its own.
func (d *due) addJobs() error {
	first := time.Now().Add(dueLead)
	rounds := max(1, int(d.cfg.Duration/time.Second))
	d.mu.Lock()
	d.jobs = rounds * d.cfg.Sets
	d.mu.Unlock()
	for i := range d.cfg.Sets {
		args := []string{"ZADD", "due:" + strconv.Itoa(i)}
		phase := time.Second * time.Duration(i) / time.Duration(d.cfg.Sets)
		for r := range rounds {
			at := first.Add(phase + time.Duration(r)*time.Second).UnixMicro()
			args = append(args, strconv.FormatInt(at, 10), "job:"+strconv.Itoa(r))
		}
		d.ctl.add(args...)
	}
	if err := d.ctl.flush(); err != nil {
		return err
	}
	return d.ctl.skip(d.cfg.Sets)
}

package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// pingEvery is the pause between two samples of latency: short enough for a thousand
// samples in ten seconds, long enough not to load the server.
const pingEvery = 10 * time.Millisecond

// latencies accumulates samples.
type latencies struct {
	n             int
	min, max, sum time.Duration
}

func (l *latencies) add(d time.Duration) {
	if l.n == 0 || d < l.min {
		l.min = d
	}
	l.max = max(l.max, d)
	l.sum += d
	l.n++
}

func (l *latencies) avg() float64 { return millis(l.sum) / float64(max(l.n, 1)) }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// latency samples the round trip of PING: for ever on a terminal, otherwise
// for one interval (1 s) and then prints one line. With --latency-history it
// begins a new row every interval (15 s).
func (c *client) latency() int {
	live := c.env.OutTTY && (c.out.format == FormatTTY)
	interval := c.opt.Interval
	if interval == 0 {
		interval = time.Second
		if c.opt.LatencyHistory {
			interval = 15 * time.Second
		}
	}
	for {
		l, start, ok := c.sampleRow(live, interval)
		switch {
		case !ok:
			return 1
		case !live && c.out.format == FormatCSV:
			fmt.Fprintf(c.env.Out, "%d,%d,%.2f,%d\n", l.min.Milliseconds(), l.max.Milliseconds(), l.avg(), l.n)
		case !live:
			fmt.Fprintf(c.env.Out, "%d %d %.2f %d\n", l.min.Milliseconds(), l.max.Milliseconds(), l.avg(), l.n)
		default:
			fmt.Fprintf(c.env.Out, " -- %.2f seconds range\n", time.Since(start).Seconds())
		}
		if !c.opt.LatencyHistory {
			return 0
		}
	}
}

// sampleRow samples for an interval, or for ever if live and without history.
func (c *client) sampleRow(live bool, interval time.Duration) (l latencies, start time.Time, ok bool) {
	start = time.Now()
	for {
		t := time.Now()
		if _, err := c.conn.do("PING"); err != nil {
			fmt.Fprintln(c.env.Err, "Error:", describe(err))
			return l, start, false
		}
		l.add(time.Since(t))
		if live {
			fmt.Fprintf(c.env.Out, "\x1b[0G\x1b[2Kmin: %.2f, max: %.2f, avg: %.2f (%d samples)", millis(l.min), millis(l.max), l.avg(), l.n)
		}
		if (!live || c.opt.LatencyHistory) && time.Since(start) >= interval {
			return l, start, true
		}
		if !c.pause(pingEvery) {
			return l, start, false
		}
	}
}

// stat prints a row of the server's counters every interval (1 s), until the
// connection ends.
func (c *client) stat() int {
	interval := cmp.Or(c.opt.Interval, time.Second)
	requests := int64(0)
	for row := 0; ; row++ {
		v, err := c.conn.do("INFO")
		if err != nil {
			fmt.Fprintln(c.env.Err, "Error:", describe(err))
			return 1
		}
		info := parseInfo(v.String())
		if row%20 == 0 {
			fmt.Fprint(c.env.Out, "------- data ------ --------------------- load -------------------- - child -\n",
				"keys       mem      clients blocked requests            connections          \n")
		}
		last := requests
		requests, _ = strconv.ParseInt(info["total_commands_processed"], 10, 64)
		if row == 0 {
			last = requests
		}
		c.statRow(info, requests, requests-last)
		if !c.pause(interval) {
			return 1
		}
	}
}

func (c *client) statRow(info map[string]string, requests, delta int64) {
	mem, _ := strconv.ParseInt(info["used_memory"], 10, 64)
	child := ""
	switch {
	case info["rdb_bgsave_in_progress"] == "1":
		child = "SAVE"
	case info["aof_rewrite_in_progress"] == "1":
		child = "AOF"
	}
	fmt.Fprintf(c.env.Out, "%-11d%-9s%-8s%-8s%-20s%-12s%s\n", keysOf(info), human(mem), info["connected_clients"], info["blocked_clients"],
		fmt.Sprintf("%d (+%d)", requests, delta), info["total_connections_received"], child)
}

// parseInfo reads the lines of INFO.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			info[k] = v
		}
	}
	return info
}

// keysOf adds up the keys of all databases: db0:keys=3,expires=0,...
func keysOf(info map[string]string) (n int64) {
	for k, v := range info {
		if _, err := strconv.Atoi(strings.TrimPrefix(k, "db")); err != nil || !strings.HasPrefix(k, "db") {
			continue
		}
		keys, _, _ := strings.Cut(strings.TrimPrefix(v, "keys="), ",")
		i, _ := strconv.ParseInt(keys, 10, 64)
		n += i
	}
	return n
}

// human returns a number of bytes as text: 1.19M.
func human(n int64) string {
	units := "BKMGTP"
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%dB", n)
	}
	return fmt.Sprintf("%.2f%c", f, units[i])
}

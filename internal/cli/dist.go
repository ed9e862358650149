package cli

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"os/signal"
	"time"
)

// legendEvery is the number of rows after which --latency-dist repeats its legend.
const legendEvery = 30

// palette returns xterm's colours for shares from 0 to 100 %: black, greys, then
// yellow to red.
func palette() []int {
	return []int{0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 144, 143, 142, 184, 226, 214, 208, 202, 196}
}

// bucket is a range of latencies, shown as a character.
type bucket struct {
	max   time.Duration // 0: no bound
	sign  byte
	count int
}

func buckets() []bucket {
	const us, ms, s = time.Microsecond, time.Millisecond, time.Second
	b := []bucket{{10 * us, '.', 0}, {125 * us, '-', 0}, {250 * us, '*', 0}, {500 * us, '#', 0}}
	for i := range 9 {
		b = append(b, bucket{time.Duration(i+1) * ms, byte('1' + i), 0})
	}
	for i := range 5 {
		b = append(b, bucket{time.Duration(i+1) * 10 * ms, byte('A' + i), 0})
	}
	for i := range 5 {
		b = append(b, bucket{time.Duration(i+1) * 100 * ms, byte('F' + i), 0})
	}
	return append(b, bucket{s, 'K', 0}, bucket{2 * s, 'L', 0}, bucket{4 * s, 'M', 0}, bucket{8 * s, 'N', 0},
		bucket{16 * s, 'O', 0}, bucket{30 * s, 'P', 0}, bucket{60 * s, 'Q', 0}, bucket{0, '?', 0})
}

// latencyDist samples PING and prints a row every interval (1 s), a coloured
// character for each range of latencies, until Ctrl-C or the end of the connection.
func (c *client) latencyDist() int {
	ctx, stop := signal.NotifyContext(c.ctx, os.Interrupt)
	defer stop()
	interval := cmp.Or(c.opt.Interval, time.Second)
	for row := 0; ; row++ {
		samples, start := buckets(), time.Now()
		for more := true; more; more = time.Since(start) < interval {
			t := time.Now()
			if _, err := c.conn.do("PING"); err != nil {
				fmt.Fprintln(c.env.Err, "Error:", describe(err))
				return 1
			}
			note(samples, time.Since(t))
			if !pause(ctx, pingEvery) {
				return 0
			}
		}
		if row%legendEvery == 0 {
			c.legend()
		}
		c.spectrum(samples)
	}
}

// note counts a latency in its range.
func note(samples []bucket, d time.Duration) {
	for i := range samples {
		if d <= samples[i].max || samples[i].max == 0 {
			samples[i].count++
			return
		}
	}
}

func (c *client) legend() {
	const line = "---------------------------------------------\n"
	fmt.Fprint(c.env.Out, line+
		". - * #          .01 .125 .25 .5 milliseconds\n"+
		"1,2,3,...,9      from 1 to 9     milliseconds\n"+
		"A,B,C,D,E        10,20,30,40,50  milliseconds\n"+
		"F,G,H,I,J        .1,.2,.3,.4,.5       seconds\n"+
		"K,L,M,N,O,P,Q,?  1,2,4,8,16,30,60,>60 seconds\n"+
		"From 0 to 100%: ")
	for _, colour := range palette() {
		fmt.Fprintf(c.env.Out, "\x1b[48;5;%dm ", colour)
	}
	fmt.Fprint(c.env.Out, "\x1b[0m\n"+line)
}

// spectrum prints a row: the colour is the share of all samples.
func (c *client) spectrum(samples []bucket) {
	all := 0
	for _, b := range samples {
		all += b.count
	}
	colours := palette()
	out := []byte("\x1b[38;5;0m")
	for _, b := range samples {
		share := float64(b.count) / float64(max(all, 1))
		out = fmt.Appendf(out, "\x1b[48;5;%dm%c", colours[int(math.Ceil(share*float64(len(colours)-1)))], b.sign)
	}
	_, _ = c.env.Out.Write(append(out, "\x1b[0m\n"...))
}

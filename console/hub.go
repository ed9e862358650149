package console

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/session"
)

// feedLag is the number of beats that may wait for a stream. A stream that lags further loses them and is
// told to read its state again. A stream that takes nothing for that long again is cut off.
const feedLag = 64

// hub takes samples and sends beats: each second while a stream is open, otherwise every ten seconds. It runs
// in one goroutine, which New starts and Close waits for.
type hub struct {
	svc   *session.Service
	clock clock.Clock
	wake  chan struct{} // cap 1: a stream has joined

	ticking sync.Mutex // held by tick; guards the fields below
	meter   *admin.Meter
	last    *reading
	lastTen *reading // of the last sample of ten seconds
	minute  []tally

	mu      sync.Mutex // guards the fields below
	streams map[*feed]struct{}
	beats   int64
	short   ring // by the second; empty from a quarter of an hour after the last stream
	long    ring // by ten seconds
	latest  *sample
}

// beat has the changes of a second.
type beat struct {
	n      int64
	sample json.RawMessage
}

// feed is the hub's part of a stream of server-sent events.
type feed struct {
	beats  chan *beat
	lagged atomic.Bool
	cut    func() // ends the connection of a viewer that does not read
}

func newFeed(cut func()) *feed { return &feed{beats: make(chan *beat, feedLag), cut: cut} }

// offer sends a beat to a stream, and reports whether the stream may stay.
func (f *feed) offer(x *beat) bool {
	select {
	case f.beats <- x:
		return true
	default:
	}
	if f.lagged.Swap(true) {
		return false
	}
	for len(f.beats) > 0 {
		select {
		case <-f.beats:
		default: // the stream has just taken it
		}
	}
	f.beats <- x // there is space: only the hub sends
	return true
}

// run takes samples until ctx ends.
func (h *hub) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-h.wake:
			if h.fresh() { // rates over less than half a second mean little
				timer.Reset(shortStep)
				continue
			}
		case <-ctx.Done():
			return
		}
		if h.tick() {
			timer.Reset(shortStep)
		} else {
			timer.Reset(longStep)
		}
	}
}

// fresh reports whether the last sample is recent.
func (h *hub) fresh() bool {
	h.ticking.Lock()
	defer h.ticking.Unlock()
	return h.last != nil && h.clock.Micros()-h.last.at < (shortStep/2).Microseconds()
}

// join adds a stream.
func (h *hub) join(f *feed) {
	h.mu.Lock()
	if h.streams == nil {
		h.streams = map[*feed]struct{}{}
	}
	h.streams[f] = struct{}{}
	if h.short.points == nil {
		h.short = newRing(shortKept)
	}
	first := len(h.streams) == 1
	h.mu.Unlock()
	if first {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
}

// leave removes a stream.
func (h *hub) leave(f *feed) {
	h.mu.Lock()
	delete(h.streams, f)
	h.mu.Unlock()
}

// history returns the series of the last quarter of an hour and the last sample, as JSON; null if there is
// none.
func (h *hub) history(now int64) (series, latest json.RawMessage) {
	h.mu.Lock()
	points, s := h.quarter(now), h.latest
	h.mu.Unlock()
	latest = json.RawMessage("null")
	if s != nil {
		latest = encode(s)
	}
	return seriesJSON(now, points, shortStep), latest
}

// tick takes a sample and sends it to the streams. It reports whether there are streams. The first tick only reads the meter.
func (h *hub) tick() bool {
	h.ticking.Lock()
	defer h.ticking.Unlock()
	if h.meter == nil {
		h.meter = admin.NewMeter(h.svc.Admin())
		h.last = readMeter(h.meter, h.clock.Micros())
		h.lastTen, h.minute = h.last, []tally{h.last.tally()}
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.streams) > 0
	}
	now := readMeter(h.meter, h.clock.Micros())
	now.readGroup(h.svc.Admin().Host)
	s := sampleOf(h.svc.DB, now, h.last)
	h.minute = append(h.minute, now.tally())
	old := slices.IndexFunc(h.minute, func(t tally) bool { return now.at-t.at <= attendSpan })
	h.minute = slices.Delete(h.minute, 0, old)
	s.Attention = attend(s, now, h.minute)
	ten := (*sample)(nil)
	if now.at-h.lastTen.at >= (longStep - shortStep/2).Microseconds() {
		ten = s
		if h.lastTen != h.last {
			ten = sampleOf(h.svc.DB, now, h.lastTen)
		}
		h.lastTen = now
	}
	h.last = now
	return h.publish(s, ten)
}

// publish keeps a sample, and the one of the last ten seconds if it is not nil, and sends them to the
// streams.
func (h *hub) publish(s, ten *sample) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = s
	h.beats++
	if ten != nil {
		if h.long.points == nil {
			h.long = newRing(longKept)
		}
		h.long.add(pointOf(ten))
	}
	if len(h.streams) == 0 {
		if h.short.points != nil && s.At-h.short.last() > shortKept*shortStep.Milliseconds() {
			h.short = ring{}
		}
		return false
	}
	h.short.add(pointOf(s))
	x := &beat{h.beats, encode(s)}
	for f := range h.streams {
		if !f.offer(x) {
			f.cut()
			delete(h.streams, f)
		}
	}
	return true
}

// filled returns the databases that had keys at the last sample.
func (h *hub) filled() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.latest == nil {
		return nil
	}
	return h.latest.filled
}

// quarter returns the series of the last quarter of an hour: by the second as far as there are such samples,
// and before that by ten seconds.
func (h *hub) quarter(now int64) []point {
	from := now - shortKept*shortStep.Milliseconds()
	short := h.short.since(from)
	long := h.long.since(from)
	long = slices.DeleteFunc(long, func(p point) bool { // there are samples by the second for the ten seconds up to its time
		i, _ := slices.BinarySearchFunc(short, p.at+1, func(s point, at int64) int { return int(min(1, max(-1, s.at-at))) })
		return i > 0 && p.at-short[i-1].at < longStep.Milliseconds()
	})
	all := append(long, short...)
	slices.SortStableFunc(all, func(a, b point) int { return int(min(1, max(-1, a.at-b.at))) })
	return all
}

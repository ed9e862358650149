package migrate

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// printer writes lines for people. On a terminal, a line of progress overwrites the one before it. Its methods may be
// called by any goroutine.
type printer struct {
	w    io.Writer
	live bool

	mu    sync.Mutex // guards what follows, and the order of the lines
	shown bool       // the line of progress is on the screen
	last  time.Time
}

// line writes a line that stays.
func (p *printer) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\033[K")
		p.shown = false
	}
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
}

// progress writes a line of progress, if the last is old enough: a second while much happens, ten while nothing does.
func (p *printer) progress(every time.Duration, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.live && now.Sub(p.last) < 200*time.Millisecond || !p.live && now.Sub(p.last) < every {
		return
	} else {
		p.last = now
	}
	if p.live {
		_, _ = fmt.Fprintf(p.w, "\r\033[K"+format, args...)
		p.shown = true
		return
	}
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
}

func percent(n, of int64) int64 {
	if of <= 0 {
		return 100
	}
	return min(100, n*100/of)
}

func perSecond(n int64, since time.Time) int64 {
	return int64(float64(n) / max(time.Since(since).Seconds(), 0.001))
}

func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// millis writes a duration in milliseconds.
func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

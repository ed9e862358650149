package session

import (
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/hotkeys"
)

// This file samples commands for HOTKEYS. The flag obsHot is set while a window or a collection is active;
// dispatch then calls hotkeys.Tracker.Sample for each command.

// hotCall is a sampled command of a session.
type hotCall struct {
	wanted hotkeys.Wanted // 0: the command is not sampled
	out    int            // bytes of output before it
	began  int64          // us since 1970; 0: its time does not matter
	used   []hotkeys.Access
}

// setHotKeys sets the windows from the configuration.
func (s *Service) setHotKeys(c *config.Set) error {
	s.hot.Configure(hotkeys.Config{Keys: int(c.Int("hotkey-top-k")), Span: c.Int("hotkey-window-seconds") * 1e6,
		Percent: int(c.Int("hotkey-sampling-percentage"))}, s.DB.Clock().Micros())
	return nil
}

// switchHot sets or removes the flag of dispatch.
func (s *Service) switchHot(on bool) {
	if on {
		s.observed.Or(obsHot)
	} else {
		s.observed.And(^obsHot)
	}
}

// HotTracker returns the tracker of HOTKEYS.
func (s *Service) HotTracker() *hotkeys.Tracker { return s.hot }

// beginHot decides whether a command is sampled. The calls of a script count, but not the script itself; the
// commands of a master or a file do not count, and neither do the console's reads for a screen.
func (c *Session) beginHot(spec *command.Spec) {
	c.hot.wanted = 0
	if c.replay || c.uncounted || spec.Has(command.Scripts) {
		return
	}
	if c.hot.wanted = c.svc.hot.Sample(); c.hot.wanted.Timed() {
		c.hot.out, c.hot.began = c.outBytes(), c.svc.DB.Clock().Micros()
	}
}

// endHot counts a sampled command for its keys.
func (c *Session) endHot(spec *command.Spec, args [][]byte) {
	w := c.hot.wanted
	c.hot.wanted = 0
	refs, err := c.ctx.KeysOf(spec, args)
	if err != nil || len(refs) == 0 {
		return
	}
	now, micros, bytes := c.ctx.Now(), int64(0), int64(0)
	if w.Timed() {
		now = c.svc.DB.Clock().Micros()
		micros = max(now-c.hot.began, 0)
		bytes = int64(max(c.outBytes()-c.hot.out, 0)) + command.ArgsBytes(args)
	}
	c.hot.used = c.hot.used[:0]
	for _, r := range refs {
		c.hot.used = append(c.hot.used, hotkeys.Access{DB: c.dbi, Key: args[r.Pos]})
	}
	c.svc.hot.Note(w, now, c.hot.used, micros, bytes)
	clear(c.hot.used) // the keys are part of the input
	if cap(c.hot.used) > hotKeysKept {
		c.hot.used = nil
	}
}

// hotKeysKept is the number of keys for which a session keeps its memory.
const hotKeysKept = 64

// HotKeys returns the keys that clients have used most in the last complete window of HOTKEYS GET, at most n,
// and keeps the windows on for the time watch. ok is false until the first window has ended.
func (s *Service) HotKeys(n int, watch time.Duration) (w hotkeys.Window, ok bool) {
	now := s.DB.Clock().Micros()
	if watch > 0 {
		s.hot.Watch(now+watch.Microseconds(), now)
	}
	w, err := s.hot.Last(n, now)
	return w, err == nil && w.Span > 0
}

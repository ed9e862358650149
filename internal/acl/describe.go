package acl

import (
	"math"
	"slices"
	"strings"
)

// Flags lists "on" or "off" and their kin, as ACL GETUSER shows them.
func (u *User) Flags() []string {
	flags := []string{"off"}
	if u.On {
		flags[0] = "on"
	}
	if u.NoPass {
		flags = append(flags, "nopass")
	}
	switch u.sanitize {
	case sanitizeOn:
		flags = append(flags, "sanitize-payload")
	case sanitizeSkip:
		flags = append(flags, "skip-sanitize-payload")
	}
	return flags
}

// Passwords lists the hashes of the passwords. The slice is the user's.
func (u *User) Passwords() []string { return u.passwords }

// String is the user's line in ACL LIST and in files, without its newline.
func (u *User) String(c *Catalog) string {
	words := append([]string{"user", u.Name}, u.Flags()...)
	for _, p := range u.passwords {
		words = append(words, "#"+p)
	}
	for i := range u.selectors {
		text := u.selectors[i].String(c)
		if i > 0 {
			text = "(" + text + ")"
		}
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

// String is the selector as rules that give it again.
func (s *Selector) String(c *Catalog) string {
	var words []string
	if keys := s.Keys(); keys != "" {
		words = append(words, keys)
	}
	if !s.allChannels {
		words = append(words, "resetchannels")
	}
	if channels := s.Channels(); channels != "" {
		words = append(words, channels)
	}
	return strings.Join(append(words, s.Commands(c)), " ")
}

// Keys are the rules about keys.
func (s *Selector) Keys() string {
	if s.allKeys {
		return "~*"
	}
	words := make([]string, len(s.keys))
	for i, p := range s.keys {
		words[i] = [...]string{Read: "%R~", Write: "%W~", Read | Write: "~"}[p.allow] + p.glob.String()
	}
	return strings.Join(words, " ")
}

// Channels are the rules about channels.
func (s *Selector) Channels() string {
	if s.allChannels {
		return "&*"
	}
	words := make([]string, len(s.channels))
	for i, p := range s.channels {
		words[i] = "&" + p.String()
	}
	return strings.Join(words, " ")
}

// Commands are the rules about commands: +@all or -@all, the categories that say
// most of the rest, then single commands by name. It costs O(categories^2 x
// commands) at worst, about a millisecond.
func (s *Selector) Commands(c *Catalog) string {
	// done has had the rules so far applied; rest has had those taken back
	// that were chosen, so that it shows what categories are still needed.
	done, rest := newSelector(c, false), s.clone()
	base, sign, undo := "-@all", "+", false
	if s.future {
		base, sign, undo = "+@all", "-", true
	}
	done.everyCommand(s.future)
	words := []string{base}
	used := uint64(0)
	for {
		i := rest.bestCategory(c, used, s.future)
		if i < 0 {
			break
		}
		used |= 1 << i
		words = append(words, sign+"@"+c.categories[i])
		done.setCategory(c, 1<<i, !undo)
		rest.setCategory(c, 1<<i, undo)
	}
	return strings.Join(slices.Concat(words, s.singles(c, &done)), " ")
}

// bestCategory is the category that says most: it has the fewest commands that
// are not to be said, and of these the most that are. There must be more of the
// latter. -1 is none.
func (s *Selector) bestCategory(c *Catalog, used uint64, subtract bool) int {
	best, fewest, most := -1, math.MaxInt, 0
	for i := range c.categories {
		if used&(1<<i) != 0 {
			continue
		}
		same, differ := 0, 0
		for id := range c.commands {
			switch {
			case c.commands[id].Categories&(1<<i) == 0:
			case s.has(id) != subtract:
				same++
			default:
				differ++
			}
		}
		if same > differ && (differ < fewest || differ == fewest && same > most) {
			best, fewest, most = i, differ, same
		}
	}
	return best
}

// singles are the rules for what differs from done, which they are applied to,
// and the first arguments.
func (s *Selector) singles(c *Catalog, done *Selector) (words []string) {
	for _, id := range c.order {
		allow, name := s.has(id), c.commands[id].Name
		if allow != done.has(id) {
			words = append(words, map[bool]string{true: "+", false: "-"}[allow]+name)
			done.setCommand(c, id, allow)
		}
		for _, f := range s.firstArgs[id] {
			if !allow {
				words = append(words, "+"+name+"|"+f.given)
			}
		}
	}
	return words
}

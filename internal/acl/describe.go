package acl

import (
	"strings"
)

// Flags returns "on" or "off" and the other flags, as ACL GETUSER shows them.
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

// Passwords returns the hashes of the passwords. The caller must not change the slice.
func (u *User) Passwords() []string { return u.passwords }

// String returns the user's line in ACL LIST and in files, without its newline.
func (u *User) String() string {
	words := append([]string{"user", u.Name}, u.Flags()...)
	for _, p := range u.passwords {
		words = append(words, "#"+p)
	}
	for i := range u.selectors {
		text := u.selectors[i].String()
		if i > 0 {
			text = "(" + text + ")"
		}
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

// String returns the rules that produce the selector.
func (s *Selector) String() string {
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
	return strings.Join(append(words, s.Commands()), " ")
}

// Keys returns the rules about keys.
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

// Channels returns the rules about channels.
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

// Commands returns the rules about commands: +@all or -@all, and the rules after it, in
// their order.
func (s *Selector) Commands() string {
	base := "-@all"
	if s.future {
		base = "+@all"
	}
	return strings.Join(append([]string{base}, s.rules...), " ")
}

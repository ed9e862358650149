package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/config"
)

// Rules are the settings that New and Apply need besides a rule.
type Rules struct {
	Catalog *Catalog
	// AllChannels allows all channels to new users, to new selectors and after a reset: the
	// directive acl-pubsub-default.
	AllChannels bool
}

// User is a user of the server: its passwords and its permissions.
type User struct {
	Name string
	// On allows clients to log in as this user. Connections that are logged in stay so when
	// it becomes false.
	On bool
	// NoPass makes every password valid.
	NoPass bool

	sanitize  sanitize
	passwords []string // SHA-256, in hex
	selectors []Selector

	// Unlimited says that everything is allowed. Seal sets it, and for most users it is the
	// only check.
	Unlimited bool
}

// sanitize is one of the three rules about RESTORE's payloads. ebb checks payloads in any
// case, and stores the rule because ACL LIST shows it.
type sanitize uint8

const (
	sanitizeUnsaid sanitize = iota
	sanitizeOn
	sanitizeSkip
)

// New returns a user that may do nothing: off, without passwords.
func New(name string, r Rules) *User {
	return &User{Name: name, selectors: []Selector{newSelector(r.Catalog, r.AllChannels)}}
}

// NewDefault returns the initial user of every connection. It may do everything, and needs
// no password.
func NewDefault(name string, r Rules) *User {
	u := New(name, r)
	s := &u.selectors[0]
	u.On, u.NoPass, s.allKeys, s.allChannels = true, true, true, true
	s.everyCommand(true)
	return u
}

// Clone returns a copy that can be changed.
func (u *User) Clone() *User {
	n := *u
	n.Unlimited = false
	n.passwords = slices.Clone(u.passwords)
	n.selectors = make([]Selector, len(u.selectors))
	for i := range u.selectors {
		n.selectors[i] = u.selectors[i].clone()
	}
	return &n
}

// Seal computes the fields that the checks use. The caller must not change the user
// afterwards.
func (u *User) Seal() *User {
	u.Unlimited = slices.ContainsFunc(u.selectors, func(s Selector) bool {
		return s.allCommands && s.allKeys && s.allChannels
	})
	return u
}

// The approximate bytes of a user, a selector and an entry of a list.
const (
	userBytes     = 256
	selectorBytes = 256
	entryBytes    = 40
)

// Bytes estimates the memory of the user. It costs O(rules).
func (u *User) Bytes() int64 {
	n := userBytes + len(u.Name) + len(u.passwords)*(entryBytes+2*sha256.Size)
	for i := range u.selectors {
		s := &u.selectors[i]
		n += selectorBytes + 8*len(s.bits)
		for _, p := range s.keys {
			n += entryBytes + len(p.glob.String())
		}
		for _, c := range s.channels {
			n += entryBytes + len(c.String())
		}
		for _, r := range s.rules {
			n += entryBytes + len(r)
		}
		for _, list := range s.firstArgs {
			for _, f := range list {
				n += 2*entryBytes + len(f.given) + len(f.folded)
			}
		}
	}
	return int64(n)
}

// Selectors returns the user's sets of permissions, the root one first. The caller must
// not change the slice.
func (u *User) Selectors() []Selector { return u.selectors }

// Apply changes the user by one rule. It returns one of the errors of this package. After
// an error the user may be partly changed, so the caller clones it before.
func (u *User) Apply(r Rules, op string) error {
	switch lower(op) {
	case "":
	case "on", "off":
		u.On = len(op) == len("on")
	case "nopass":
		u.NoPass, u.passwords = true, nil
	case "resetpass":
		u.NoPass, u.passwords = false, nil
	case "sanitize-payload":
		u.sanitize = sanitizeOn
	case "skip-sanitize-payload":
		u.sanitize = sanitizeSkip
	case "clearselectors":
		u.selectors = u.selectors[:1]
	case "reset":
		*u = User{Name: u.Name, sanitize: sanitizeOn, selectors: []Selector{newSelector(r.Catalog, r.AllChannels)}}
	default:
		switch {
		case strings.IndexByte("><#!", op[0]) >= 0:
			return u.applyPassword(op)
		case op[0] == '(' && op[len(op)-1] == ')' && len(op) > 1:
			return u.addSelector(r, op[1:len(op)-1])
		}
		return u.selectors[0].apply(r.Catalog, op)
	}
	return nil
}

// ApplyAll applies rules to the user, whose selectors may be spread over several words.
// With an error it returns the rule that was refused.
func (u *User) ApplyAll(r Rules, ops []string) (op string, err error) {
	for _, op := range ops {
		if err := u.Apply(r, op); err != nil {
			return op, err
		}
	}
	return "", nil
}

// applyPassword adds or removes a password, given in clear or as its hash.
func (u *User) applyPassword(op string) error {
	hash := op[1:]
	switch op[0] {
	case '>', '<':
		hash = Hash([]byte(hash))
	default:
		if !isHash(hash) {
			return ErrHash
		}
	}
	at := slices.Index(u.passwords, hash)
	switch {
	case op[0] == '>' || op[0] == '#':
		u.NoPass = false
		if at < 0 {
			u.passwords = append(u.passwords, hash)
		}
	case at < 0:
		return ErrPassword
	default:
		u.passwords = slices.Delete(u.passwords, at, at+1)
	}
	return nil
}

// addSelector adds a selector, given as the text between parentheses.
func (u *User) addSelector(r Rules, text string) error {
	s := newSelector(r.Catalog, r.AllChannels)
	words, _ := config.Words(text) // none where quotes are not balanced, as in Redis
	for _, op := range words {
		if err := s.apply(r.Catalog, op); err != nil {
			return err
		}
	}
	u.selectors = append(u.selectors, s)
	return nil
}

// Hash returns the stored form of a password: SHA-256 in hex.
func Hash(password []byte) string {
	sum := sha256.Sum256(password)
	return hex.EncodeToString(sum[:])
}

func isHash(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// Accepts reports whether a client with a password of this hash may log in as this user.
// Its time does not depend on how many bytes of the hash match.
func (u *User) Accepts(hash string) bool {
	if !u.On || u.NoPass {
		return u.On
	}
	right := 0
	for _, p := range u.passwords {
		right |= subtle.ConstantTimeCompare([]byte(p), []byte(hash))
	}
	return right == 1
}

// AllChannels reports whether a selector allows every channel.
func (u *User) AllChannels() bool {
	return slices.ContainsFunc(u.selectors, func(s Selector) bool { return s.allChannels })
}

// MayTouch reports whether one of the selectors allows this use of a key, for any command.
// It costs O(patterns).
func (u *User) MayTouch(key []byte, use Access) bool {
	if u.Unlimited {
		return true
	}
	for i := range u.selectors {
		if u.selectors[i].MayTouch(key, use) {
			return true
		}
	}
	return false
}

// MayUse reports whether one of the selectors allows a channel, for any command. A
// subscription stays only while this is true.
func (u *User) MayUse(channel []byte, literal bool) bool {
	for i := range u.selectors {
		if u.selectors[i].MayUse(channel, literal) {
			return true
		}
	}
	return false
}

// KeepsChannels reports whether the user has all channel patterns of old. Then no
// subscription of old has to end.
func (u *User) KeepsChannels(old *User) bool {
	if u.AllChannels() {
		return true
	}
	if old.AllChannels() {
		return false
	}
	for i := range old.selectors {
		for _, p := range old.selectors[i].channels {
			if !u.MayUse([]byte(p.String()), true) {
				return false
			}
		}
	}
	return true
}

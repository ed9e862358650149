package group

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// StreamName implements replication.LinkEvents.
func (m *Member) StreamName() string {
	m.mu.Lock()
	epoch := m.role.epoch
	m.mu.Unlock()
	if epoch == 0 {
		return ""
	}
	return m.nameOf(epoch)
}

// nameOf returns a new name for the stream of an epoch. It holds the epoch, a random number, because a group that
// begins again counts epochs from 1, and a seal, by which members tell it from the name of any other server.
func (m *Member) nameOf(epoch uint64) string {
	name := fmt.Sprintf("%016x%08x", epoch, uint32(m.opt.Random()))
	return name + m.seal("stream", name)
}

// epochOf returns the epoch in the name of a stream, or an error if the seal is not of this group.
func (m *Member) epochOf(name string) (uint64, error) {
	if len(name) != 40 || !m.sealed("stream", name[:24], name[24:]) {
		return 0, fmt.Errorf("the stream %q is not of a master of this group: it has no valid seal", name)
	}
	return strconv.ParseUint(name[:16], 16, 64)
}

// seal returns 16 hex digits: an HMAC of kind and text that only a node with the group's name and secret (masterauth)
// can compute.
func (m *Member) seal(kind, text string) string {
	h := hmac.New(sha256.New, []byte(m.opt.Group.Secret))
	fmt.Fprintf(h, "ebb group %s\n%s\n%s", m.opt.Group.Name, kind, text)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// sealed reports whether seal is the seal of a text.
func (m *Member) sealed(kind, text, seal string) bool {
	return hmac.Equal([]byte(m.seal(kind, text)), []byte(strings.ToLower(seal)))
}

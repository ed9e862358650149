package port

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/ebbdb/ebb/internal/cleantext"
)

// The handshake. The dialling side proves first that it knows the secret, so a stranger that connects receives
// nothing from which it could guess the secret.
//
//	dials                                               accepts
//	magic, version, kind, number, group, from, to ──▶
//	                                              ◀── another number
//	proof of the secret                           ──▶
//	                                              ◀── why it refuses, or nothing and its own proof
const (
	magic   = "ebb-group"
	version = 1
	fixed   = len(magic) + 2 + nonceSize // the bytes before the names

	nonceSize = 32
	proofSize = sha256.Size

	kindCalls  = 'c'
	kindStream = 's'

	dials   = 'd' // the side that gives a proof
	accepts = 'a'
)

// exporter is the label of the TLS key that the proofs cover (RFC 8446, 7.5).
const exporter = "EXPORTER-ebb-group"

// hello is the first message of the dialling side.
type hello struct {
	kind            byte
	nonce           [nonceSize]byte
	group, from, to string
}

// appendTo appends the encoded hello to b. Each name must have at most maxName bytes.
func (h *hello) appendTo(b []byte) []byte {
	b = append(append(b, magic...), version, h.kind)
	b = append(b, h.nonce[:]...)
	for _, name := range []string{h.group, h.from, h.to} {
		b = append(append(b, byte(len(name))), name...)
	}
	return b
}

// readHello reads a hello, and returns its bytes as well, for the proofs.
func readHello(c io.Reader) (h hello, raw []byte, err error) {
	raw = make([]byte, fixed, fixed+3*(1+maxName))
	if _, err = io.ReadFull(c, raw); err != nil {
		return h, nil, err
	}
	if string(raw[:len(magic)]) != magic {
		return h, nil, errors.New("the peer does not speak the protocol of group ports")
	}
	if v := raw[len(magic)]; v != version {
		return h, nil, fmt.Errorf("the peer speaks version %d of the protocol of group ports, want %d", v, version)
	}
	h.kind = raw[len(magic)+1]
	copy(h.nonce[:], raw[len(magic)+2:])
	for _, name := range []*string{&h.group, &h.from, &h.to} {
		at := len(raw)
		if *name, err = readText(c); err != nil {
			return h, nil, err
		}
		raw = append(append(raw[:at], byte(len(*name))), *name...)
	}
	return h, raw, nil
}

// readText reads a text of at most 255 bytes with its length before it.
func readText(c io.Reader) (string, error) {
	var b [256]byte
	if _, err := io.ReadFull(c, b[:1]); err != nil {
		return "", err
	}
	n := int(b[0])
	_, err := io.ReadFull(c, b[1:1+n])
	return string(b[1 : 1+n]), err
}

// binding makes the TLS handshake, and returns a value that only the two ends of the connection know. Without TLS it
// returns nil.
func binding(c net.Conn) ([]byte, error) {
	secured, ok := c.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	if err := secured.Handshake(); err != nil {
		return nil, err
	}
	state := secured.ConnectionState()
	return state.ExportKeyingMaterial(exporter, nil, 32)
}

// proof returns the HMAC by which a side proves that it knows the secret.
func (p *Port) proof(side byte, bound, hello, nonce []byte) []byte {
	h := hmac.New(sha256.New, []byte(p.conf.Secret))
	h.Write([]byte{side, byte(len(bound))})
	h.Write(bound)
	h.Write(hello) // self-delimiting, so it needs no length
	h.Write(nonce)
	return h.Sum(nil)
}

// ask makes the handshake on a connection that this port has dialled.
func (p *Port) ask(c net.Conn, h hello) error {
	bound, err := binding(c)
	if err != nil {
		return err
	}
	_, _ = rand.Read(h.nonce[:]) // rand.Read never returns an error: it ends the process instead
	said := h.appendTo(nil)
	if _, err := c.Write(said); err != nil {
		return err
	}
	nonce := make([]byte, nonceSize)
	if _, err := io.ReadFull(c, nonce); err != nil {
		return fmt.Errorf("the peer does not answer like a group's port: %w", err)
	}
	if _, err := c.Write(p.proof(dials, bound, said, nonce)); err != nil {
		return err
	}
	why, err := readText(c)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("%w: %s", ErrRefused, cleantext.Line(why, maxName))
	}
	got := make([]byte, proofSize)
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if !hmac.Equal(got, p.proof(accepts, bound, said, nonce)) {
		return errors.New("the peer does not know the group's secret (masterauth)")
	}
	return nil
}

// answer makes the handshake on a connection that this port has accepted.
func (p *Port) answer(c net.Conn) (hello, error) {
	bound, err := binding(c)
	if err != nil {
		return hello{}, err
	}
	h, said, err := readHello(c)
	if err != nil {
		return h, err
	}
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce)
	if _, err := c.Write(nonce); err != nil {
		return h, err
	}
	got := make([]byte, proofSize)
	if _, err := io.ReadFull(c, got); err != nil {
		return h, err
	}
	why := "it has another secret: masterauth must be the same on all nodes"
	if hmac.Equal(got, p.proof(dials, bound, said, nonce)) {
		why = p.refuse(h)
	}
	if why != "" {
		why = why[:min(len(why), maxName)]
		_, err := c.Write(append([]byte{byte(len(why))}, why...))
		return h, errors.Join(fmt.Errorf("%s: %s", cleantext.Line(h.from, maxName), why), err)
	}
	_, err = c.Write(append([]byte{0}, p.proof(accepts, bound, said, nonce)...))
	return h, err
}

// refuse returns the reason for which this node refuses a peer that knows the secret, or "". The peer shows it as a
// statement about this node.
func (p *Port) refuse(h hello) string {
	switch {
	case h.group != p.conf.Group:
		return fmt.Sprintf("it belongs to group %q (group-name), not to %q", p.conf.Group, h.group)
	case h.from == p.conf.Self:
		return "it is the same node, " + h.from
	case h.to != "" && h.to != p.conf.Self:
		return "it is " + p.conf.Self
	case h.kind == kindStream && h.to != "", h.kind == kindCalls:
		return ""
	}
	return "it knows no such connection"
}

// writeFrame writes a request or an answer: four bytes of length, then the body.
func writeFrame(c io.Writer, body []byte) error {
	if len(body) > maxFrame {
		return ErrTooLarge
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	_, err := c.Write(append(b, body...))
	return err
}

// readSize reads the length of a frame. It returns ErrTooLarge above maxFrame.
func readSize(c io.Reader) (int, error) {
	var b [4]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return 0, err
	}
	if n := binary.BigEndian.Uint32(b[:]); n <= maxFrame {
		return int(n), nil
	}
	return 0, ErrTooLarge
}

// readFrame reads the body of a frame.
func readFrame(c io.Reader, size int) ([]byte, error) {
	b := make([]byte, size)
	_, err := io.ReadFull(c, b)
	return b, err
}

package replication

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/wire"
)

// The handshake of a replica with its master: PING, AUTH, REPLCONF with its address and capabilities, and PSYNC with
// the offset of the first byte that it lacks.

// dial connects to the master.
func (l *link) dial() (net.Conn, error) {
	c := l.r.config
	timeout := time.Duration(c.Int("repl-timeout")) * time.Second
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	dialer := new(net.Dialer)
	if from := l.r.config.String("bind-source-addr"); from != "" {
		ip := net.ParseIP(from)
		if ip == nil {
			return nil, fmt.Errorf("bind-source-addr %q is not an IP address", from)
		}
		dialer.LocalAddr = &net.TCPAddr{IP: ip}
	}
	conn, err := dialer.DialContext(ctx, "tcp", l.addr())
	if err != nil || !c.Bool("tls-replication") {
		return l.own(conn), err
	}
	config, err := ClientTLS(c.String)
	if err == nil {
		secured := tls.Client(conn, config)
		if err = secured.HandshakeContext(ctx); err == nil {
			return secured, nil
		}
	}
	_ = conn.Close()
	return nil, fmt.Errorf("cannot use TLS with the master (tls-replication yes): %w", err)
}

// own returns the connection of a member of a group in a form whose reads wake it sooner, because the master's clients
// wait for its acknowledgements. The reads wait in the kernel, where Go's scheduler may leave them their processor for
// some time; with one processor, the clients of this server would wait for it.
func (l *link) own(conn net.Conn) net.Conn {
	if l.r.group == nil || conn == nil || runtime.GOMAXPROCS(0) == 1 {
		return conn
	}
	return reactor.Own(conn)
}

// ClientTLS returns the TLS configuration for a connection to a master, from this server's directives. The server
// presents its own certificate, and requires that an authority of tls-ca-cert-file has signed the master's. The
// certificate may have any host name, as in Redis.
func ClientTLS(directive func(string) string) (*tls.Config, error) {
	roots, err := authorities(directive("tls-ca-cert-file"), directive("tls-ca-cert-dir"))
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} //nolint:gosec // VerifyConnection verifies all but the name
	c.VerifyConnection = func(s tls.ConnectionState) error {
		o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, cert := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(o)
		return err
	}
	cert, key := directive("tls-client-cert-file"), directive("tls-client-key-file")
	if cert == "" {
		cert, key = directive("tls-cert-file"), directive("tls-key-file")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// authorities reads the certificates of the authorities that sign masters' certificates.
func authorities(file, dir string) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), false
	var files []string
	if dir != "" {
		files, _ = filepath.Glob(filepath.Join(dir, "*"))
	}
	if file != "" {
		files = append(files, file)
	}
	for _, f := range files {
		pem, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		found = pool.AppendCertsFromPEM(pem) || found
	}
	if !found {
		return nil, errors.New("tls-ca-cert-file and tls-ca-cert-dir have no certificate: want that of the authority of the master's")
	}
	return pool, nil
}

// ask sends a command and returns the line of the reply, which may be an error reply. An error is one of the
// connection.
func (m *masterConn) ask(words ...string) (string, error) {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	if err := m.send(wire.AppendCommand(nil, args...)); err != nil {
		return "", err
	}
	return m.line()
}

// line reads a line, without its end. It skips empty lines, which a master sends to show
// that it is alive.
func (m *masterConn) line() (string, error) {
	for {
		b, err := m.r.ReadSlice('\n')
		if err != nil {
			return "", err
		}
		if s := strings.TrimRight(string(b), "\r\n"); s != "" {
			return s, nil
		}
	}
}

// handshake authenticates this replica and announces it.
func (l *link) handshake(m *masterConn) error {
	reply, err := m.ask("PING")
	if err != nil {
		return err
	}
	if reply[0] != '+' && !hasAnyPrefix(reply, "-NOAUTH", "-NOPERM", "-MISCONF", "-ERR operation not permitted") {
		return fmt.Errorf("the master replied to PING with %q; want +PONG", head([]byte(reply), maxPeerText))
	}
	c := l.r.config
	if pass := c.String("masterauth"); pass != "" {
		words := []string{"AUTH", pass}
		if user := c.String("masteruser"); user != "" {
			words = []string{"AUTH", user, pass}
		}
		if reply, err = m.ask(words...); err != nil {
			return err
		}
		if reply[0] == '-' {
			return fmt.Errorf("the master refused masteruser and masterauth: %s", cleantext.Line(reply[1:], maxPeerText))
		}
	}
	return l.introduce(m)
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// asValkey is the version that ebb announces to a Valkey master: the first version whose form of hashes with
// deadlines ebb can read. A master sends no deadlines to an older replica.
const asValkey = "9.0.0"

// introduce sends the REPLCONF commands. A master may refuse those that it does not know.
func (l *link) introduce(m *masterConn) error {
	all := [][]string{{"listening-port", strconv.Itoa(l.r.announcedPort())}}
	if ip := l.r.config.String("replica-announce-ip"); ip != "" {
		all = append(all, []string{"ip-address", ip})
	}
	all = append(all, []string{"capa", "eof", "capa", "psync2", "capa", "ebb"}, []string{"version", asValkey})
	for _, words := range all {
		reply, err := m.ask(append([]string{"REPLCONF"}, words...)...)
		if err != nil {
			return err
		}
		if hasAnyPrefix(reply, "-NOAUTH", "-NOPERM") {
			return fmt.Errorf("the master refused REPLCONF: %s; set masterauth and masteruser", cleantext.Line(reply[1:], maxPeerText))
		}
		if reply[0] == '-' {
			l.r.log.Info("the master refused a REPLCONF; the link goes on without it", "words", words, "reply", cleantext.Line(reply, maxPeerText))
		}
	}
	return nil
}

// announcedPort returns the port at which clients reach this replica.
func (r *Node) announcedPort() int {
	c := r.config
	switch {
	case c.Int("replica-announce-port") != 0:
		return int(c.Int("replica-announce-port"))
	case c.Bool("tls-replication") && c.Int("tls-port") != 0:
		return int(c.Int("tls-port"))
	}
	return r.host.Port()
}

// maxOffset is the highest offset at which a stream may begin. The offsets above it suffice for a century of traffic
// on one link.
const maxOffset = 1 << 62

// validReplID reports whether s can be the name of a stream: 40 letters and digits.
func validReplID(s string) bool {
	for _, c := range []byte(s) {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
			return false
		}
	}
	return len(s) == len(noReplID)
}

// maxPeerText is the number of bytes of a peer's text that a log line or INFO shows.
const maxPeerText = 200

// shownText returns a text of a client or a peer as the log shows it.
func shownText(text string) string { return cleantext.Line(text, maxPeerText) }

// fullSync holds the reply +FULLRESYNC: the stream and the offset at which it continues
// after the data.
type fullSync struct {
	id     string
	offset int64
	db     int // the database that the stream has selected at offset; -1: none
}

// handOverError says that a replica refused to become the master in a FAILOVER.
type handOverError struct{ reply string }

func (e *handOverError) Error() string { return "the replica did not take over: " + e.reply }

// psync asks for the stream. It returns nil if the stream continues where this replica's
// ends.
func (l *link) psync(m *masterConn) (*fullSync, error) {
	id, next := l.position()
	words := []string{"PSYNC", id, strconv.FormatInt(next, 10)}
	if l.handOver {
		words = append(words, "FAILOVER")
	}
	reply, err := m.ask(words...)
	if err != nil {
		return nil, err
	}
	f := append(strings.Fields(reply), "")
	f = f[:max(1, len(f)-1)]
	switch {
	case f[0] == "+FULLRESYNC" && len(f) == 3:
		offset, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil || offset < 0 || offset > maxOffset || !validReplID(f[1]) {
			return nil, fmt.Errorf("the master replied to PSYNC with %q; want an id of 40 letters and digits, and an offset in [0, %d]",
				head([]byte(reply), maxPeerText), int64(maxOffset))
		}
		if err := l.answered(m, f[1], true); err != nil {
			return nil, err
		}
		l.took()
		return &fullSync{id: f[1], offset: offset, db: -1}, nil
	case f[0] == "+CONTINUE":
		if len(f) > 1 && !validReplID(f[1]) {
			return nil, fmt.Errorf("the master replied to PSYNC with %q; want an id of 40 letters and digits", head([]byte(reply), maxPeerText))
		}
		if err := l.answered(m, f[min(1, len(f)-1)], false); err != nil {
			return nil, err
		}
		if len(f) > 1 && f[1] != id {
			l.renamed(f[1], next-1)
		}
		l.took()
		return nil, nil
	case l.handOver:
		return nil, &handOverError{cleantext.Line(reply, maxPeerText)}
	}
	return nil, fmt.Errorf("the master replied to PSYNC with %q; want +FULLRESYNC or +CONTINUE", head([]byte(reply), maxPeerText))
}

// position returns the name of this replica's stream, and the first byte that the replica lacks, as PSYNC counts. It
// locks all shards, so no transaction is about to write.
func (l *link) position() (id string, next int64) {
	tx := l.r.db.BeginAll(0)
	defer tx.Commit()
	id, _, _ = l.r.Names()
	return id, l.r.db.Log().End() + 1
}

// renamed takes over a new name of the master's stream: the master was promoted since this
// replica followed it last. Replicas of this server connect again and get the name too.
func (l *link) renamed(id string, end int64) {
	tx := l.r.db.BeginAll(0)
	defer tx.Commit()
	if l.current() {
		l.r.rename(id, end)
		l.r.dropReplicas("the master's replication id has changed")
	}
}

// took ends a FAILOVER: the other server has taken over.
func (l *link) took() {
	if l.handOver {
		l.handOver = false
		l.r.failoverDone()
	}
}

package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/resp"
)

// The first words between a replica and its master: who it is, what it
// understands, and from where on it wants the stream.

// dial connects to the master.
func (l *link) dial() (net.Conn, error) {
	c := l.r.svc.Config
	timeout := time.Duration(c.Int("repl-timeout")) * time.Second
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	dialer := new(net.Dialer)
	if from := l.r.svc.Config.String("bind-source-addr"); from != "" {
		ip := net.ParseIP(from)
		if ip == nil {
			return nil, fmt.Errorf("bind-source-addr %q is not an IP address", from)
		}
		dialer.LocalAddr = &net.TCPAddr{IP: ip}
	}
	conn, err := dialer.DialContext(ctx, "tcp", l.addr())
	if err != nil || !c.Bool("tls-replication") {
		return conn, err
	}
	config, err := replicationTLS(c.String)
	if err == nil {
		secured := tls.Client(conn, config)
		if err = secured.HandshakeContext(ctx); err == nil {
			return secured, nil
		}
	}
	_ = conn.Close()
	return nil, fmt.Errorf("TLS with the master (tls-replication yes): %w", err)
}

// replicationTLS is how a replica talks to its master: with this server's own
// certificate, to whoever has one of the authorities of tls-ca-cert-file, whatever
// its name, as Redis does.
func replicationTLS(directive func(string) string) (*tls.Config, error) {
	roots, err := authorities(directive("tls-ca-cert-file"), directive("tls-ca-cert-dir"))
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} //nolint:gosec // VerifyConnection does, but for the name
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

// authorities reads the certificates that others' are checked against.
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
		return nil, errors.New("tls-ca-cert-file and tls-ca-cert-dir name no certificate to check the master's against")
	}
	return pool, nil
}

// ask sends a command and returns the line that answers it. Errors are the
// connection's; an error reply is a line.
func (m *masterConn) ask(words ...string) (string, error) {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	if err := m.send(resp.AppendCommand(nil, args...)); err != nil {
		return "", err
	}
	return m.line()
}

// line reads a line, without its end. Empty ones say that the master is alive.
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

// greet says who this replica is.
func (l *link) greet(m *masterConn) error {
	reply, err := m.ask("PING")
	if err != nil {
		return err
	}
	if reply[0] != '+' && !hasAnyPrefix(reply, "-NOAUTH", "-NOPERM", "-ERR operation not permitted") {
		return fmt.Errorf("the master answered PING with %q", reply)
	}
	c := l.r.svc.Config
	if pass := c.String("masterauth"); pass != "" {
		words := []string{"AUTH", pass}
		if user := c.String("masteruser"); user != "" {
			words = []string{"AUTH", user, pass}
		}
		if reply, err = m.ask(words...); err != nil {
			return err
		}
		if reply[0] == '-' {
			return fmt.Errorf("the master refused masteruser and masterauth: %s", reply[1:])
		}
	}
	return l.introduce(m)
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// introduce sends the REPLCONFs. A master that does not know one goes on without.
func (l *link) introduce(m *masterConn) error {
	all := [][]string{{"listening-port", strconv.Itoa(l.r.announcedPort())}}
	if ip := l.r.svc.Config.String("replica-announce-ip"); ip != "" {
		all = append(all, []string{"ip-address", ip})
	}
	all = append(all, []string{"capa", "eof", "capa", "psync2", "capa", "ebb"})
	for _, words := range all {
		reply, err := m.ask(append([]string{"REPLCONF"}, words...)...)
		if err != nil {
			return err
		}
		if hasAnyPrefix(reply, "-NOAUTH", "-NOPERM") {
			return fmt.Errorf("the master refused REPLCONF: %s; set masterauth and masteruser", reply[1:])
		}
		if reply[0] == '-' {
			l.r.svc.Log.Info("the master does not know a REPLCONF", "words", words, "reply", reply)
		}
	}
	return nil
}

// announcedPort is the port that others are told to find this replica at.
func (r *replication) announcedPort() int {
	c := r.svc.Config
	switch {
	case c.Int("replica-announce-port") != 0:
		return int(c.Int("replica-announce-port"))
	case c.Bool("tls-replication") && c.Int("tls-port") != 0:
		return int(c.Int("tls-port"))
	}
	return r.svc.port()
}

// fullSync is what +FULLRESYNC says of the data that follows.
type fullSync struct {
	id     string
	offset int64
	db     int // that the stream has selected there, -1: none
}

// handOverError says that a replica refused to become the master in a FAILOVER.
type handOverError struct{ reply string }

func (e *handOverError) Error() string { return "the replica did not take over: " + e.reply }

// psync asks for the stream. It returns nil if the stream goes on where this
// replica's ends.
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
		if err != nil || offset < 0 || len(f[1]) != 40 {
			return nil, fmt.Errorf("the master answered PSYNC with %q", reply)
		}
		l.took()
		return &fullSync{id: f[1], offset: offset, db: -1}, nil
	case f[0] == "+CONTINUE":
		if len(f) > 1 && len(f[1]) == 40 && f[1] != id {
			l.renamed(f[1], next-1)
		}
		l.took()
		return nil, nil
	case l.handOver:
		return nil, &handOverError{reply}
	}
	return nil, fmt.Errorf("the master answered PSYNC with %q", reply)
}

// position is the stream that this replica has, and the next byte that it wants,
// as PSYNC counts. With all shards locked nobody is about to write.
func (l *link) position() (id string, next int64) {
	tx := l.r.svc.DB.BeginAll(0)
	defer tx.Commit()
	id, _, _ = l.r.names()
	return id, l.r.svc.DB.Log().End() + 1
}

// renamed notes that the master's stream has another name than when we last
// followed it: it was promoted. Replicas of ours are to hear of it.
func (l *link) renamed(id string, end int64) {
	tx := l.r.svc.DB.BeginAll(0)
	defer tx.Commit()
	if l.current() {
		l.r.rename(id, end)
		l.r.svc.dropReplicas("the master's replication id has changed")
	}
}

// took notes that the other side has taken over, if it was to.
func (l *link) took() {
	if l.handOver {
		l.handOver = false
		l.r.failoverDone()
	}
}

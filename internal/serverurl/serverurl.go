// Package serverurl reads the URLs of servers, in the spellings that clients have
// for them. Everything of ebb that takes such a URL reads it here.
//
//	scheme                            server           read by
//	redis, valkey                     TCP              all clients
//	rediss, valkeys                   TCP with TLS     all clients
//	redis+tls, redis+ssl              TCP with TLS     Lettuce
//	unix                              Unix socket      go-redis, redis-py, redis-rs
//	redis+unix, valkey+unix           Unix socket      redis-rs, and others
//	redis-socket, redis+socket        Unix socket      Lettuce, Celery
//	redis+sentinel, redis+cluster     several servers  ebb, LangChain
//	rediss+sentinel, rediss+cluster   with TLS
//
//	redis://user:password@host:port/db?db=1
//	unix://user:password@/path/to/socket?db=1
//
// A text before the @ that has no colon is the password, as redis-cli and Lettuce read
// it, and the user if a parameter has the password, as redis-py has it. The database is
// the path's or a parameter's, which counts where both are given. Start reading at Parse.
package serverurl

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Server is one server as a URL names it.
type Server struct {
	Socket         string // path of a Unix socket; "" for TCP
	Host, Port     string // of TCP; "" where the URL says nothing
	TLS            bool
	User, Password string
	HavePassword   bool
	DB             int
	HaveDB         bool
	Protocol       int        // 2, 3, or 0 where the URL says nothing
	Params         url.Values // the other parameters, under the names of go-redis
}

// defaultPort is what URL writes for a server whose URL has no port.
const defaultPort = "6379"

// kinds returns the schemes of one server and what Canonical makes of them.
func kinds() map[string]string {
	return map[string]string{
		"redis": "redis", "valkey": "redis",
		"rediss": "rediss", "valkeys": "rediss", "redis+tls": "rediss", "redis+ssl": "rediss", "valkey+tls": "rediss",
		"unix": "unix", "redis+unix": "unix", "valkey+unix": "unix",
		"redis-socket": "unix", "redis+socket": "unix", "valkey-socket": "unix", "valkey+socket": "unix",
	}
}

// Schemes are the schemes of one server, for messages.
const Schemes = "redis, rediss, valkey, valkeys, unix, redis+unix or redis-socket"

// aliases returns the names that clients have for one parameter.
func aliases() map[string]string {
	return map[string]string{
		"db": "db", "database": "db", "virtual_host": "db",
		"user": "user", "username": "user", "pass": "password", "password": "password",
		"clientName": "client_name",
	}
}

// Canonical returns the scheme that Server.URL writes: redis, rediss or unix, or one of
// those behind which several servers are, redis+sentinel for instance. ok is false for
// a scheme that names no servers.
func Canonical(scheme string) (_ string, ok bool) {
	scheme = strings.ToLower(scheme)
	if one, ok := kinds()[scheme]; ok {
		return one, true
	}
	base, several, _ := strings.Cut(scheme, "+")
	if one, ok := kinds()[base]; ok && one != "unix" && (several == "sentinel" || several == "cluster") {
		return one + "+" + several, true
	}
	return "", false
}

// Parse reads the URL of one server. An error says what is wrong, with what, and what
// would be right; it shows no password.
func Parse(raw string) (s Server, err error) {
	scheme, rest, found := strings.Cut(raw, "://")
	one, ok := kinds()[strings.ToLower(scheme)]
	if !found || !ok {
		return s, fmt.Errorf("%q has the scheme %q, which is none of %s: write redis://127.0.0.1:6379 or unix:///path/to/socket", Shown(raw), schemeOf(raw), Schemes)
	}
	if strings.Contains(rest, "#") { // what stands behind it would not be looked at
		return s, fmt.Errorf("%s: write # as %%23", Shown(raw))
	}
	u, err := url.Parse(one + "://" + rest)
	if err != nil {
		return s, Unreadable(raw, err)
	}
	if u.User == nil && one != "unix" && StrayLogin(u.Path, u.RawQuery) {
		return s, Unreadable(raw, nil)
	}
	if err = s.where(one, u); err == nil {
		err = s.parameters(u)
	}
	if err != nil {
		return Server{}, fmt.Errorf("%s: %w", Shown(raw), err)
	}
	return s, nil
}

// schemeOf returns the scheme for a message: a URL without one may begin with a password.
func schemeOf(raw string) string {
	if scheme, _, found := strings.Cut(raw, "://"); found {
		return scheme
	}
	return ""
}

// where takes the address and the login of a URL.
func (s *Server) where(scheme string, u *url.URL) error {
	if u.User != nil {
		s.User = u.User.Username()
		if s.Password, s.HavePassword = u.User.Password(); !s.HavePassword {
			s.User, s.Password, s.HavePassword = "", s.User, s.User != ""
		}
	}
	if scheme == "unix" {
		s.Socket = u.Path
		if u.Path == "" || u.Host != "" && u.Host != "localhost" {
			return fmt.Errorf("the path of the socket is %q: it begins with a / behind the login, as in unix://user:password@/path/to/socket", u.Host+u.Path)
		}
		return nil
	}
	s.TLS = scheme == "rediss"
	s.Host, s.Port = u.Hostname(), u.Port()
	if n, err := strconv.Atoi(s.Port); s.Port != "" && (err != nil || n > 65535) {
		return fmt.Errorf("the port is a number from 0 to 65535, not %q", s.Port)
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		return s.database(db)
	}
	return nil
}

func (s *Server) database(text string) (err error) {
	s.HaveDB = true
	if s.DB, err = strconv.Atoi(text); err != nil || s.DB < 0 {
		return fmt.Errorf("the database is a number from 0 on, not %q", text)
	}
	return nil
}

// parameters takes what stands behind the question mark.
func (s *Server) parameters(u *url.URL) error {
	all, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("the parameters after ? cannot be read: they are separated by &")
	}
	s.Params = url.Values{}
	for name, values := range all {
		v := values[len(values)-1]
		if known, ok := aliases()[name]; ok {
			name = known
		}
		switch name {
		case "db":
			if err := s.database(v); err != nil {
				return err
			}
		case "user":
			s.User = v
		case "password":
			if s.User == "" { // unix://user@/path?password=... of redis-py
				s.User = s.Password
			}
			s.Password, s.HavePassword = v, true
		case "protocol":
			if s.Protocol, err = strconv.Atoi(strings.TrimPrefix(strings.ToLower(v), "resp")); err != nil || s.Protocol != 2 && s.Protocol != 3 {
				return fmt.Errorf("the protocol is 2 or 3, not %q", v)
			}
		default:
			s.Params[name] = values
		}
	}
	return nil
}

// URL returns the server in the one spelling that go-redis reads.
func (s Server) URL() *url.URL {
	u := &url.URL{Scheme: "redis", Host: net.JoinHostPort(s.Host, defaultPort)}
	switch {
	case s.Socket != "":
		u.Scheme, u.Host, u.Path = "unix", "", s.Socket
	case s.Port != "":
		u.Host = net.JoinHostPort(s.Host, s.Port)
	}
	if s.TLS {
		u.Scheme = "rediss"
	}
	if s.User != "" || s.HavePassword {
		u.User = url.UserPassword(s.User, s.Password)
	}
	q := url.Values{}
	for name, values := range s.Params {
		q[name] = slices.Clone(values)
	}
	if s.HaveDB {
		q.Set("db", strconv.Itoa(s.DB))
	}
	if s.Protocol != 0 {
		q.Set("protocol", strconv.Itoa(s.Protocol))
	}
	u.RawQuery = q.Encode()
	return u
}

// Insecure reports whether any certificate is to be accepted: go-redis's skip_verify.
func (s Server) Insecure() bool {
	v := s.Params.Get("skip_verify")
	return v == "true" || v == "1"
}

// StrayLogin reports whether an @ stands behind the hosts: before it is a part of a
// password that has a / or a ? in it.
func StrayLogin(path, query string) bool {
	for _, p := range strings.Split(query, "&") {
		if name, _, _ := strings.Cut(p, "="); strings.Contains(name, "@") {
			return true
		}
	}
	return strings.Contains(path, "@")
}

// Shown returns a URL without its passwords, for messages.
func Shown(raw string) string {
	raw = regexp.MustCompile(`([?&](?:\w+_)?pass(?:word)?=)[^&]*`).ReplaceAllString(raw, "${1}xxxxx")
	u, err := url.Parse(raw)
	if at := strings.LastIndex(raw, "@"); at >= 0 && (err != nil || u.User == nil) {
		return "xxxxx" + raw[at:] // what stands before it may be a login
	}
	if err != nil {
		return raw
	}
	if u.User != nil && !strings.Contains(u.User.String(), ":") {
		u.User = url.User("xxxxx") // a password alone
	}
	return u.Redacted()
}

// Unreadable returns the error of a URL that cannot be parsed. The parser's error shows a
// part of it, which may be one of a password.
func Unreadable(raw string, err error) error {
	if err == nil || strings.Contains(raw, "@") {
		return fmt.Errorf("%s cannot be parsed: in a user's name and password write / as %%2F, ? as %%3F, : as %%3A, %% as %%25", Shown(raw))
	}
	var parsing *url.Error
	if errors.As(err, &parsing) { // without the URL, which may have a password in its parameters
		err = parsing.Err
	}
	return fmt.Errorf("%s: %w", Shown(raw), err)
}

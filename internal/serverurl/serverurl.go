// Package serverurl parses the URLs of servers, in the spellings of all common clients.
// All parts of ebb that accept such a URL use it.
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
// A text before the @ without a colon is the password, as for redis-cli and Lettuce. If a
// parameter has the password, the text is the user, as for redis-py. The database is in
// the path or in a parameter; if both have one, the parameter counts. Start reading at
// Parse.
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

// Server holds the parts of a URL of one server.
type Server struct {
	Socket         string // path of a Unix socket; "" for TCP
	Host, Port     string // of TCP; "" if the URL has none
	TLS            bool
	User, Password string
	HavePassword   bool
	DB             int
	HaveDB         bool
	Protocol       int        // 2, 3, or 0 if the URL has none
	Params         url.Values // the other parameters, under the names of go-redis
}

// defaultPort is the port that URL writes for a server without one.
const defaultPort = "6379"

// kinds returns the schemes of one server, with their canonical forms.
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

// Canonical returns the scheme that Server.URL writes: redis, rediss or unix, or a scheme
// of several servers, such as redis+sentinel. ok is false for other schemes.
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

// Parse reads the URL of one server. An error names the wrong part, its value and a valid
// form. It shows no password.
func Parse(raw string) (s Server, err error) {
	scheme, rest, found := strings.Cut(raw, "://")
	one, ok := kinds()[strings.ToLower(scheme)]
	if !found || !ok {
		return s, fmt.Errorf("%q has the scheme %q, which is none of %s: write redis://127.0.0.1:6379 or unix:///path/to/socket",
			Shown(raw), schemeOf(raw), Schemes)
	}
	if strings.Contains(rest, "#") { // url.Parse would drop the text after it
		return s, fmt.Errorf("%s: write # as %%23", Shown(raw))
	}
	u, err := url.Parse(one + "://" + rest)
	if err != nil {
		return s, Unreadable(raw, err)
	}
	if one != "unix" && StrayLogin(u.Path, u.RawQuery) {
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

// where reads the address and the login of a URL.
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
			return fmt.Errorf("the path of the socket is %q: it must begin with a / after the login, as in "+
				"unix://user:password@/path/to/socket", u.Host+u.Path)
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

// parameters reads the parameters after the question mark.
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

// URL returns the server as a URL that go-redis can parse.
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

// Insecure reports whether the client must accept any certificate: go-redis's skip_verify.
func (s Server) Insecure() bool {
	v := s.Params.Get("skip_verify")
	return v == "true" || v == "1"
}

// StrayLogin reports whether an @ comes after the hosts. The text before it is then a part
// of a password that contains a / or a ?.
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
	if at := strings.LastIndex(raw, "@"); at >= 0 && (err != nil || u.User == nil || StrayLogin(u.Path, u.RawQuery)) {
		return "xxxxx" + raw[at:] // the text before it may be a login
	}
	if err != nil {
		return raw
	}
	if u.User != nil && !strings.Contains(u.User.String(), ":") {
		u.User = url.User("xxxxx") // only a password
	}
	return u.Redacted()
}

// Unreadable returns the error of a URL that cannot be parsed. It does not contain the
// parser's error, which shows a part of the URL that may belong to a password.
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

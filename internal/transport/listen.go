package transport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ListenTCP binds addr, host:port. An error says how to correct it, and names option, the
// directive that sets the port.
func ListenTCP(addr, option string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("cannot listen on %q: not host:port; for example 127.0.0.1:6379", addr)
	}
	lc := net.ListenConfig{KeepAlive: -1}
	ln, err := lc.Listen(context.Background(), "tcp", addr)
	if err == nil {
		return ln, nil
	}
	var dns *net.DNSError
	switch {
	case inUse(err):
		return nil, fmt.Errorf("cannot listen on %s: address already in use; is another server running? choose another with %s: %w",
			addr, option, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("cannot listen on %s: permission denied; ports below 1024 need privileges, choose another with %s: %w",
			addr, option, err)
	case notLocal(err):
		return nil, fmt.Errorf("cannot listen on %s: this machine does not have that address: %w", addr, err)
	case errors.As(err, &dns):
		return nil, fmt.Errorf("cannot listen on %s: unknown host %q: %w", addr, dns.Name, err)
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", addr, reason(err))
}

// listenUnix binds a unix socket at path, replaces a stale file there, and sets the
// socket's permissions and group; 0 and "" do not set them.
func listenUnix(path string, perm os.FileMode, group string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	ln, err := net.Listen("unix", path)
	switch {
	case err == nil:
	case errors.Is(err, syscall.EINVAL):
		return nil, fmt.Errorf("cannot listen on unix socket %s: the path is too long (%d bytes; most systems allow 107 or fewer): %w",
			path, len(path), err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("cannot listen on unix socket %s: its directory does not exist: %w", path, err)
	default:
		return nil, fmt.Errorf("cannot listen on unix socket %s: %w", path, reason(err))
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // Shutdown removes it
	err = giveToGroup(path, group)
	if err == nil && perm != 0 {
		if err = os.Chmod(path, perm); err != nil {
			err = fmt.Errorf("cannot set the permissions of unix socket %s: %w", path, reason(err))
		}
	}
	if err != nil {
		_ = ln.Close()
		_ = os.Remove(path)
		return nil, err
	}
	return ln, nil
}

// giveToGroup gives a file to a group, which is a name or a number; "" changes nothing.
func giveToGroup(path, group string) error {
	if group == "" {
		return nil
	}
	id, err := strconv.Atoi(group)
	if err != nil {
		g, err := user.LookupGroup(group)
		if err != nil {
			return fmt.Errorf("unixsocketgroup: the system has no group %q: give the name or the number of one: %w", group, err)
		}
		if id, err = strconv.Atoi(g.Gid); err != nil {
			return fmt.Errorf("unixsocketgroup: groups of this system have no numbers; got %q, whose id is %q", group, g.Gid)
		}
	}
	if err := os.Chown(path, -1, id); err != nil {
		return fmt.Errorf("cannot give unix socket %s to the group %s: %w", path, group, reason(err))
	}
	return nil
}

// removeStale removes a file at the path of a unix socket, as Redis does: the socket of a
// server that has crashed, a file, or a symbolic link. It does not remove a directory, nor
// the socket of a running server, which Redis would remove.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // the file does not exist, or bind reports the exact error
	}
	if info.IsDir() {
		return fmt.Errorf("cannot listen on unix socket %s: a directory has that name: choose another path with --unixsocket", path)
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return os.Remove(path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = c.Close()
		return fmt.Errorf("cannot listen on unix socket %s: another server is serving it", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("cannot listen on unix socket %s: %w", path, reason(err))
	}
	return os.Remove(path)
}

// reason returns an error of package net without the operation and the address, which the
// caller's message has already.
func reason(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// inUse and notLocal also know the error numbers of Windows, which differ.
func inUse(err error) bool    { return isErrno(err, syscall.EADDRINUSE, 10048) }
func notLocal(err error) bool { return isErrno(err, syscall.EADDRNOTAVAIL, 10049) }

func isErrno(err error, posix, windows syscall.Errno) bool {
	return errors.Is(err, posix) || errors.Is(err, windows)
}

// temporary reports whether accept may succeed later: descriptors or memory have run out.
func temporary(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return strings.Contains(err.Error(), "too many open files")
}

package reactor

import (
	"errors"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The frequent system calls never block, because every descriptor is non-blocking. So this
// file makes them raw: to tell the scheduler about a call costs more than some of the
// calls.

// sysRecv reads once from a socket; p is not empty. sysRecv and sysSend avoid the kernel's
// file layer, which read and write use.
func sysRecv(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	return int(n), errno
}

// sysSend writes once to a socket; p is not empty. For a vanished peer it returns EPIPE
// and raises no signal.
func sysSend(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

// sysNotify adds one to an eventfd's counter.
func sysNotify(fd int) {
	one := uint64(1)
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&one)), 8)
}

// poller is one epoll descriptor.
type poller struct {
	fd     int
	nanos  bool // the kernel has epoll_pwait2 (Linux 5.11)
	events []unix.EpollEvent
}

// A batch of 512 events is 6 KiB; more would make the first of them wait
// longer for its reply, fewer would poll more often under load.
const maxEvents = 512

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	p := &poller{fd: fd, nanos: true, events: make([]unix.EpollEvent, maxEvents)}
	if _, errno := p.wait2(0); errno != 0 {
		p.nanos = false // ENOSYS, or EPERM from an old container sandbox
	}
	return p, nil
}

func (p *poller) close() { _ = unix.Close(p.fd) }

// ctl adds, changes or removes fd's registration; tag comes back with events.
func (p *poller) ctl(op, fd int, events uint32, tag int32) error {
	ev := unix.EpollEvent{Events: events, Fd: int32(fd), Pad: tag}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, op, fd, &ev))
}

// poll returns the number of events that are ready now.
func (p *poller) poll() int {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.events))), maxEvents, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// wait waits until an event is ready or the timeout is over, never shorter than the
// timeout; a negative timeout means for ever. It is a system call that the scheduler
// knows: a raw one would keep a processor from timers and the collector.
func (p *poller) wait(timeout time.Duration) int {
	var n int
	var errno syscall.Errno
	if p.nanos {
		n, errno = p.wait2(timeout)
	} else {
		n, errno = p.waitMillis(timeout)
	}
	if errno != 0 {
		return 0
	}
	return n
}

func (p *poller) wait2(timeout time.Duration) (int, syscall.Errno) {
	var ts struct{ sec, nsec int64 } // the kernel's 64-bit timespec on every architecture
	at := unsafe.Pointer(&ts)
	if timeout < 0 {
		at = nil
	} else {
		ts.sec, ts.nsec = int64(timeout/time.Second), int64(timeout%time.Second)
	}
	n, _, errno := syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.events))), maxEvents, uintptr(at), 0, 0)
	return int(n), errno
}

func (p *poller) waitMillis(timeout time.Duration) (int, syscall.Errno) {
	ms := -1
	if timeout >= 0 {
		ms = int(min((timeout+time.Millisecond-1)/time.Millisecond, 1<<30))
	}
	n, _, errno := syscall.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.events))), maxEvents, uintptr(ms), 0, 0)
	return int(n), errno
}

// endpoint is the address of one side of a connection. It is not formatted, because most
// are never shown.
type endpoint struct {
	addr netip.AddrPort
	path string // unix sockets
}

func (e endpoint) String() string {
	if e.addr.IsValid() {
		return e.addr.String()
	}
	return e.path + ":0"
}

func endpointOf(sa unix.Sockaddr) endpoint {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return endpoint{addr: netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))}
	case *unix.SockaddrInet6:
		a := netip.AddrFrom16(sa.Addr).Unmap()
		if sa.ZoneId != 0 && a.Is6() {
			a = a.WithZone(strconv.Itoa(int(sa.ZoneId)))
		}
		return endpoint{addr: netip.AddrPortFrom(a, uint16(sa.Port))}
	case *unix.SockaddrUnix:
		return endpoint{path: sa.Name}
	}
	return endpoint{}
}

// outOfDescriptors reports whether accept failed because a resource ran out. Trying again
// at once would fail again, so the listener pauses.
func outOfDescriptors(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) ||
		errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENOMEM)
}

// sysYield lets other threads run on this processor. It is not a raw system call, because
// the Go scheduler may need the processor meanwhile.
func sysYield() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

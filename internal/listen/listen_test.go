package listen

import (
	"net"
	"strings"
	"testing"
)

func TestAPortIsOpenAtTheAddressesOfBindAlone(t *testing.T) {
	all, err := At([]string{"127.0.0.1", "-192.0.2.1"}, 0)
	if err != nil || len(all) != 1 || all[0].Addr().(*net.TCPAddr).IP.String() != "127.0.0.1" {
		t.Fatalf("%v, %v, want one listener, at 127.0.0.1", all, err)
	}
	defer all[0].Close()
	port := all[0].Addr().(*net.TCPAddr).Port
	for _, x := range []struct {
		bind []string
		want string
	}{{[]string{"127.0.0.1"}, "in use"}, {[]string{"-127.0.0.1"}, "none of the addresses '-127.0.0.1' can be bound"}, {nil, ""}} {
		got, err := At(x.bind, port)
		if len(got) > 0 || err == nil != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("bind %q: %v, %v, want %q", x.bind, got, err, x.want)
		}
	}
	for addr, want := range map[string]string{"0.0.0.0:1": "tcp4", "[::]:1": "tcp6", "localhost:1": "tcp"} {
		if got := family(addr); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

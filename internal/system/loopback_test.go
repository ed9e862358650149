package system

import "testing"

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"10.0.0.1": false, "": false, "localhost.example": false, "127.0.0.1.example": false, "0.0.0.0": false} {
		if got := LoopbackHost(host); got != want {
			t.Errorf("host %q: %v, want %v", host, got, want)
		}
	}
	for addr, want := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true, "10.0.0.1:1": false,
		"localhost:1": false, "127.0.0.1": false, "": false, "@": false} {
		if got := LoopbackPeer(addr); got != want {
			t.Errorf("peer %q: %v, want %v", addr, got, want)
		}
	}
}

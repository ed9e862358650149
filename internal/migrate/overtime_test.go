package migrate

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// stalled returns the URL of a proxy of a server. It forwards requests until most of them have been DUMP, and then nothing.
func stalled(t *testing.T, url string, limit int64) string {
	t.Helper()
	p := newProxy(t, url)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var dumps atomic.Int64
	p.wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", p.ln.Addr().String())
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.open = append(p.open, in, out)
			p.mu.Unlock()
			p.wg.Go(func() { _, _ = io.Copy(in, out); in.Close() })
			p.wg.Go(func() {
				defer out.Close()
				for b := make([]byte, 4096); ; {
					n, err := in.Read(b)
					if err != nil {
						return
					}
					if dumps.Add(int64(bytes.Count(b[:n], []byte("DUMP")))) > limit {
						continue
					}
					if _, err := out.Write(b[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { ln.Close() })
	return "redis://" + ln.Addr().String()
}

func TestAComparisonThatTakesTooLongIsNamed(t *testing.T) {
	for _, scan := range []bool{false, true} {
		from, to := startEbb(t, "enable-debug-command no"), startEbb(t, "enable-debug-command no")
		c := open(t, from)
		fill(t, c, 200, false)
		keys := c.run(t, "DBSIZE").Int
		o := Options{From: []string{from}, To: stalled(t, to, 600), Scan: scan, Compare: true, Pause: 3 * time.Second}
		said, err := step(t, o, (*Migration).Cutover)
		if err == nil {
			t.Fatalf("a comparison without replies has ended:\n%s", said)
		}
		text := err.Error()
		advice := "run `ebb migrate verify` before, which needs no pause, and cut over without --compare, or give a longer --pause"
		target := "TO still follows"
		if scan {
			advice, target = ": give a longer --pause", "TO holds a copy that is no longer followed"
		}
		for _, want := range []string{"no cutover: the comparison takes longer than 90 % of --pause 3s (",
			fmt.Sprintf(" of %d keys were compared", keys), advice, "FROM accepts writes again, and " + target} {
			if !strings.Contains(text, want) {
				t.Errorf("scan %v: no %q in %q", scan, want, text)
			}
		}
		n := 0
		if m := regexp.MustCompile(`(\d+) of`).FindStringSubmatch(text); m != nil {
			n, _ = strconv.Atoi(m[1])
		}
		if n == 0 || int64(n) >= keys {
			t.Errorf("scan %v: %d of %d keys were compared: %q", scan, n, keys, text)
		}
		if info := c.run(t, "INFO clients").Str; !strings.Contains(info, "paused_actions:none") {
			t.Errorf("scan %v: the pause goes on:\n%s", scan, info)
		}
		c.run(t, "SET writes go-on")
		if role := open(t, to).run(t, "ROLE").Elems[0].Str; scan != (role == "master") {
			t.Errorf("scan %v: the target is a %s", scan, role)
		}
	}
}

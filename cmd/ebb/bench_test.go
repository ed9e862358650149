package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestBenchTakesAURL(t *testing.T) {
	for url, want := range map[string]string{
		"redis://me:pw@h:7000/3":        "tcp h:7000 me pw 3 plain",
		"valkeys://h":                   "tcp h:6399 bob flag 1 TLS h",
		"redis-socket:///s?database=2":  "unix /s bob flag 2 plain",
		"rediss://[::1]?skip_verify=1":  "tcp [::1]:6399 bob flag 1 TLS ::1 insecure",
		"redis+unix://x:y@/s?db=0":      "unix /s x y 0 plain",
		"http://h":                      "none of redis, rediss, valkey",
		"redis://me:secret@h/none":      `from 0 on, not "none"`,
		"":                              "tcp there:6399 bob flag 1 plain",
		"redis://:q@h?client_name=test": "tcp h:6399 bob q 1 plain",
	} {
		f := pflag.NewFlagSet("bench", pflag.ContinueOnError)
		server := serverFlags(f)
		if err := f.Parse([]string{"-u", url, "-h", "there", "-p", "6399", "--user", "bob", "-a", "flag", "--db", "1"}); err != nil {
			t.Fatal(err)
		}
		target, err := server()
		if err != nil {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want %s", url, err, want)
			}
			continue
		}
		network, secure := target.Network, "plain"
		if network == "" {
			network = "tcp"
		}
		if target.TLS != nil {
			secure = "TLS " + target.TLS.ServerName
			if target.TLS.InsecureSkipVerify {
				secure += " insecure"
			}
		}
		got := strings.Join([]string{network, target.Addr, target.User, target.Password, string(rune('0' + target.DB)), secure}, " ")
		if got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

package session

import (
	"strconv"
	"strings"
	"testing"
)

func TestResetstatForgetsEvictedScripts(t *testing.T) {
	svc, _ := serviceWith(t)
	s := svc.NewSession(nil)
	for i := range 510 {
		do(s, "EVAL", "return "+strconv.Itoa(i), "0")
	}
	if info := do(s, "INFO", "stats").Str; strings.Contains(info, "evicted_scripts:0\r\n") {
		t.Fatal("no script was evicted")
	}
	do(s, "CONFIG", "RESETSTAT")
	if info := do(s, "INFO", "stats").Str; !strings.Contains(info, "evicted_scripts:0\r\n") {
		t.Errorf("evicted scripts are still counted:\n%s", info)
	}
}

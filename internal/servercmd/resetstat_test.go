package servercmd_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/services"
)

func TestResetstatForgetsEvictedScripts(t *testing.T) {
	svc := services.Start(t)
	s := svc.NewSession(nil)
	for i := range 510 {
		services.Ask(s, "EVAL", "return "+strconv.Itoa(i), "0")
	}
	if info := services.Ask(s, "INFO", "stats").Str; strings.Contains(info, "evicted_scripts:0\r\n") {
		t.Fatal("no script was evicted")
	}
	services.Ask(s, "CONFIG", "RESETSTAT")
	if info := services.Ask(s, "INFO", "stats").Str; !strings.Contains(info, "evicted_scripts:0\r\n") {
		t.Errorf("evicted scripts are still counted:\n%s", info)
	}
}

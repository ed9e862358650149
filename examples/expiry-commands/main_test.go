package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"SET loan:atlas ann EX 2419200           OK             left: 28 days",
		"SET loan:atlas ann                      OK             left: for ever",
		"SET loan:atlas ann,damaged KEEPTTL      OK             left: 28 days",
		"PEXPIRE loan:atlas 604800000 GT         0              left: 56 days",
		"PEXPIRE loan:atlas 604800000 LT         1              left: 7 days",
		"PEXPIRE loan:atlas 8553600000 NX        0              left: 7 days",
		"GETEX loan:atlas PX 1209600000          ann,damaged    left: 14 days",
		"PERSIST loan:atlas                      1              left: for ever",
		"PSETEX loan:novel 259200000 bob         OK             left: 3 days",
		"PEXPIRE loan:atlas -1                   1              left: no such loan",
		"mem:GET aside:poems                         carol          left: 200 ms",
		"GET aside:poems                         (nil)          left: no such loan")
}

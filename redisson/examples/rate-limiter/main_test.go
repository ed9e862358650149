package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"no rate yet:       an error says so",
		"trySetRate:        true\ntrySetRate:        false\n",
		"4 of a rate of 3:  an error",
		"tryAcquire(1):     true ", "mem:tryAcquire(1):     true   2 free\n",
		"waiting longer:    true\n",
		"labels is a hash, {labels}:value is a string, {labels}:permits is a zset",
		"billing got 2 of 5\n", "shipping got 2 of 5\n",
		"expire:            true\nclearExpire:       true\n",
		"setRate again:     6 permits granted within an hour, where the rate is 3\n",
		"expire, then Java: 2 of 3 keys stay for ever\nexpire, then Go:   0 of 3 keys stay for ever\n",
		"in line:           3 served\n", "mem:in line:           3 served\nin line:           1 served\nin line:           1 served\n")
}

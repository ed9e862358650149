package main

import (
	"iter"
	"strings"

	"github.com/ebbdb/ebb"
)

// lines yields the fields of each line of CLIENT LIST.
func lines(text string) iter.Seq[map[string]string] {
	return func(yield func(map[string]string) bool) {
		for line := range strings.Lines(text) {
			fields := map[string]string{}
			for _, f := range strings.Fields(line) {
				name, value, _ := strings.Cut(f, "=")
				fields[name] = value
			}
			if !yield(fields) {
				return
			}
		}
	}
}

func number(v ebb.Value, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return v.AsInt()
}

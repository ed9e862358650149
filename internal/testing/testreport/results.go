package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// result is what a run of go test, or a step, adds to the end of the run.
type result struct {
	Step     string
	Skipped  []string // "what: reason"
	Failures []string // of tests; each text has a line of its own, the message and the command that repeats it, with the latter two indented
	Missing  []string // likewise, of what cannot run because the machine or the network lacks something
	Flaky    []string // likewise, of tests that passed when they were tried again
	Counts   counts
	Seconds  map[string]float64 // of each package
}

// add appends r to the file of the run, as a line of JSON. Outside of a run it does nothing.
func (r result) add() error { return r.addTo(os.Getenv("results")) }

func (r result) addTo(name string) error {
	if name == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil { // one call, so that lines do not mix
		return err
	}
	return f.Close()
}

// readResults reads what the steps have added so far. A process that was killed may have written a part of a line.
func readResults(name string) (all []result, err error) {
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := json.NewDecoder(f); lines.More(); {
		var r result
		if err := lines.Decode(&r); err != nil {
			return all, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

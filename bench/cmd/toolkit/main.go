// Command toolkit runs the comparisons of the toolkit, in turns, and prints tables with
// ratios. It starts the servers that it needs, and needs redis-server installed:
//
//	cd bench && go run ./cmd/toolkit -rounds 5 -time 2s
//
// Each round runs every benchmark once, so that other load on the machine affects all of
// them alike. A cell is the median of the rounds. The file that -raw names gets the raw
// lines, for benchstat.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "number of rounds; each runs every benchmark once")
	flag.DurationVar(&o.time, "time", time.Second, "how long a benchmark of throughput runs in a round")
	flag.IntVar(&o.pickups, "pickups", 300, "jobs per round whose time from push to worker is measured")
	flag.IntVar(&o.delayed, "delayed", 1000, "delayed jobs per round whose lateness is measured")
	flag.StringVar(&o.subjects, "subjects", ".", "a regular expression: run the matching subjects alone (LimiterRueidis, Lock ...)")
	flag.StringVar(&o.dir, "dir", ".", "the directory of the benchmarks")
	flag.StringVar(&o.raw, "raw", "", "a file for the raw lines")
	flag.Parse()
	if err := run(o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "toolkit:", err)
		os.Exit(1)
	}
}

type options struct {
	rounds, pickups, delayed int
	time                     time.Duration
	subjects, dir, raw       string
}

func run(o options, out, progress io.Writer) (err error) {
	chosen, err := choose(o.subjects)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "toolkit-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	binary, env, err := build(o.dir, tmp)
	if err != nil {
		return err
	}
	var raw bytes.Buffer
	for round := range o.rounds {
		for _, s := range chosen {
			fmt.Fprintf(progress, "round %d of %d: %s\n", round+1, o.rounds, s.name)
			cmd := exec.Command(binary, "-test.run=^$", "-test.timeout=30m", "-test.bench=^Benchmark"+s.name+"$", "-test.benchtime="+s.benchtime(o))
			cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = o.dir, env, &raw, progress
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%s: %w: %s", s.name, err, raw.Bytes())
			}
		}
	}
	if o.raw != "" {
		if err := os.WriteFile(o.raw, raw.Bytes(), 0o644); err != nil {
			return err
		}
	}
	all, err := parse(&raw)
	if err != nil {
		return err
	}
	for _, s := range chosen {
		if err := s.print(out, all); err != nil {
			return err
		}
	}
	return nil
}

// build compiles the benchmarks, and the server that they start.
func build(dir, tmp string) (binary string, env []string, err error) {
	binary = filepath.Join(tmp, "bench.test")
	if err := goBuild(dir, "test", "-c", "-o", binary, "."); err != nil {
		return "", nil, err
	}
	env = os.Environ()
	if os.Getenv("EBB_BINARY") == "" {
		server := filepath.Join(tmp, "ebb")
		if err := goBuild(filepath.Join(dir, ".."), "build", "-o", server, "./cmd/ebb"); err != nil {
			return "", nil, err
		}
		env = append(env, "EBB_BINARY="+server)
	}
	return binary, env, nil
}

func goBuild(dir string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", args[0], err, out)
	}
	return nil
}

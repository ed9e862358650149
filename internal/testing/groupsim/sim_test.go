package groupsim

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
)

var (
	simTime     = flag.Duration("sim.time", 0, "how long schedules run; 0: a fixed number of them")
	simSeed     = flag.Uint64("sim.seed", 0, "the seed of the schedules; 0: see package draw")
	simSchedule = flag.Uint64("sim.schedule", 0, "the number of the schedule that TestOneSchedule replays")
	simFault    = flag.String("sim.fault", "", "the planted fault with which TestOneSchedule replays it")
	update      = flag.Bool("update", false, "record the schedules that find the planted faults")
	simRows     = flag.Int("sim.rows", 80, "how many rows of a history a failure prints; 0: all")
	simLimit    = flag.Int("sim.limit", 20000, "the number of schedules within which a campaign must find each planted fault")
)

// fail fails a test with the history of a schedule and the command that replays it.
func fail(t *testing.T, seed, number uint64, planted Planted) {
	t.Helper()
	r := Run(seed, number, planted.Fault, true)
	t.Fatalf("%s\n%s\nagain: %s", r.Violation, table(t, r), again(seed, number, planted.Name))
}

// again returns the command that replays a schedule.
func again(seed, number uint64, fault string) string {
	line := fmt.Sprintf("go test ./internal/testing/groupsim -run TestOneSchedule -v -sim.rows 0 -sim.seed %d -sim.schedule %d", seed, number)
	if fault != "" {
		line += fmt.Sprintf(" -sim.fault %q", fault)
	}
	return line
}

// schedules is the default number of schedules.
const schedules = 2000

func TestNothingAcknowledgedIsLost(t *testing.T) {
	seed := draw.Seed(t, *simSeed)
	var all Figures
	count := 0
	for number := range draw.Rounds(*simTime, schedules) {
		r := Run(seed, uint64(number), Fault{}, false)
		if r.Violation != "" {
			fail(t, seed, uint64(number), Planted{})
		}
		count++
		all.add(r.Figures)
	}
	t.Logf("%d schedules: %d epochs, %d writes, %d acknowledged, %d reads, %d crashes, %d losses of members in sync", count,
		all.Epochs, all.Writes, all.Committed, all.Reads, all.Crashes, all.Losses)
	t.Logf("after the faults a write was acknowledged within %v", all.Quiet)
	few := all.Committed < 5*count || all.Reads < 5*count || all.Epochs < uint64(2*count) || all.Losses < count/10
	if count >= 100 && few {
		t.Error("the schedules do too little to find anything")
	}
}

// add adds the figures of a schedule.
func (f *Figures) add(g Figures) {
	f.Writes, f.Committed, f.Reads = f.Writes+g.Writes, f.Committed+g.Committed, f.Reads+g.Reads
	f.Crashes, f.Losses, f.Epochs = f.Crashes+g.Crashes, f.Losses+g.Losses, f.Epochs+g.Epochs
	f.Quiet = max(f.Quiet, g.Quiet)
}

// TestOneSchedule replays the schedule of -sim.seed, -sim.schedule and -sim.fault, and prints its history. Without
// flags it checks that a schedule is repeatable, with and without history.
func TestOneSchedule(t *testing.T) {
	seed := draw.Seed(t, *simSeed)
	planted := named(t, *simFault)
	if *simSeed != 0 {
		r := Run(seed, *simSchedule, planted.Fault, true)
		t.Logf("%+v\n%s", r.Figures, table(t, r))
		if r.Violation != "" && planted.Name == "" {
			t.Error(r.Violation)
		}
		return
	}
	sums := map[uint64]bool{}
	for number := range uint64(20) {
		first, second := Run(seed, number, planted.Fault, true), Run(seed, number, planted.Fault, false)
		if !reflect.DeepEqual(first.Figures, second.Figures) || first.Violation != second.Violation {
			t.Fatalf("schedule %d came to %+v %q, and the next time to %+v %q", number, first.Figures, first.Violation, second.Figures,
				second.Violation)
		}
		sums[first.Sum] = true
	}
	if len(sums) != 20 {
		t.Errorf("20 schedules have %d sums", len(sums))
	}
}

// named returns the planted fault with a name. The name "" stands for no fault.
func named(t *testing.T, name string) Planted {
	t.Helper()
	for _, p := range Faults() {
		if p.Name == name {
			return p
		}
	}
	if name != "" {
		t.Fatalf("no fault has the name %q", name)
	}
	return Planted{}
}

// table returns the history of a schedule.
func table(t *testing.T, r Result) string {
	t.Helper()
	var b strings.Builder
	if err := Print(&b, r.History, *simRows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// find returns the first schedule of a seed in which the simulator finds a fault.
func find(seed uint64, p Planted, limit int) (number uint64, violation string, ok bool) {
	for number := range uint64(limit) {
		if r := Run(seed, number, p.Fault, false); r.Violation != "" {
			return number, r.Violation, true
		}
	}
	return 0, "", false
}

// recordedSeed is the seed of the schedules in the file recorded.
const recordedSeed = 1

// recorded is the file with the number of the first schedule that finds each planted fault.
const recorded = "testdata/faults.txt"

// The recorded schedule of each planted fault finds the fault, and finds nothing without it. A campaign searches with
// new seeds.
func TestThePlantedFaultsAreFound(t *testing.T) {
	if *simTime != 0 {
		search(t)
		return
	}
	if *update {
		record(t)
	}
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		number, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if numbers[name], err = strconv.ParseUint(number, 10, 64); err != nil {
			t.Fatalf("%s: %v", recorded, err)
		}
	}
	for _, p := range Faults() {
		number, ok := numbers[p.Name]
		if !ok {
			t.Errorf("%s has no schedule for %q: -update records it", recorded, p.Name)
			continue
		}
		if r := Run(recordedSeed, number, p.Fault, false); r.Violation == "" {
			t.Errorf("schedule %d does not notice %q. If the schedules have changed, -update records new ones", number, p.Name)
		}
		if r := Run(recordedSeed, number, Fault{}, false); r.Violation != "" {
			fail(t, recordedSeed, number, Planted{})
		}
		delete(numbers, p.Name)
	}
	for name := range numbers {
		t.Errorf("%s names the fault %q, which there is not", recorded, name)
	}
}

// search looks for each planted fault among the schedules of a new seed.
func search(t *testing.T) {
	seed := draw.Seed(t, *simSeed)
	found := 0
	for _, p := range Faults() {
		number, violation, ok := find(seed, p, *simLimit)
		if !ok {
			t.Errorf("%q was not found in %d schedules of seed %d", p.Name, *simLimit, seed)
			continue
		}
		found++
		t.Logf("%-66s schedule %5d: %s", p.Name, number, violation)
	}
	t.Logf("%d of %d planted faults were found", found, len(Faults()))
}

// record writes the file recorded.
func record(t *testing.T) {
	var b strings.Builder
	for _, p := range Faults() {
		number, _, ok := find(recordedSeed, p, *simLimit)
		if !ok {
			t.Errorf("%q was not found in %d schedules", p.Name, *simLimit)
			continue
		}
		fmt.Fprintf(&b, "%d %s\n", number, p.Name)
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recorded, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The history of a schedule that finds a fault names the fault's effect in its last row, and the state of each node in every row.
func TestAHistoryIsATable(t *testing.T) {
	p := named(t, "no floor")
	number, violation, ok := find(recordedSeed, p, *simLimit)
	if !ok {
		t.Fatal("the fault was not found")
	}
	r := Run(recordedSeed, number, p.Fault, true)
	last := r.History[len(r.History)-1]
	if r.Violation != violation || !strings.Contains(last.What, violation) || len(last.Nodes) != r.Nodes {
		t.Errorf("%q, the last row is %+v", r.Violation, last)
	}
	var b strings.Builder
	if err := Print(&b, r.History, 5); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(b.String(), "\n"); got != 1+5+3 {
		t.Errorf("five rows are %d lines:\n%s", got, b.String())
	}
}

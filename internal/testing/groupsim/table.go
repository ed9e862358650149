package groupsim

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// Row is one line of a schedule's history.
type Row struct {
	At    time.Duration
	Where string // a node or the directory
	What  string
	Nodes []string // the state of each node after the event
	Acked int
}

// note adds a row to the history. With a nil node the row is about the directory or the whole group.
func (w *world) note(n *node, format string, args ...any) {
	if !w.recording {
		return
	}
	r := Row{At: w.now, Where: "directory", What: fmt.Sprintf(format, args...), Acked: len(w.acked)}
	if n != nil {
		r.Where = fmt.Sprint("node ", n.id)
	}
	for _, n := range w.nodes {
		r.Nodes = append(r.Nodes, n.text())
	}
	w.history = append(w.history, r)
}

// text returns a node's state in the form that Print explains.
func (n *node) text() string {
	role := "r"
	switch {
	case !n.up:
		role = "-"
	case !n.registered:
		role = "?"
	case n.gates.Serving:
		role = fmt.Sprintf("M%d:%d/", n.gates.Epoch, n.gates.Committed)
	case n.gates.Epoch > 0:
		role = fmt.Sprintf("m%d:", n.gates.Epoch)
	}
	return fmt.Sprintf("%s %s%d", directory.Member{Node: n.id, Incarnation: n.incarnation}, role, len(n.log))
}

// Print writes the last rows of a history as a table, or all rows if last is 0.
func Print(out io.Writer, history []Row, last int) error {
	if last > 0 && len(history) > last {
		history = history[len(history)-last:]
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "seconds\twhere\twhat\tacked\tnodes\n")
	for _, r := range history {
		fmt.Fprintf(t, "%.3f\t%s\t%s\t%d\t%s\n", r.At.Seconds(), r.Where, r.What, r.Acked, strings.Join(r.Nodes, "  "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, "\nnodes: node.incarnation (0: its data is lost), then M epoch:committed/ for a master that serves,\n"+
		"m epoch: for one that waits, r for a replica, ? before it is registered, - while it is down; then the end of the log\n")
	return err
}

func commandText(c directory.Command) string {
	switch c.Kind {
	case directory.Register:
		return fmt.Sprintf("Register %v, kept %v", c.Member(), c.Kept)
	case directory.SetK:
		return fmt.Sprintf("SetK %d at epoch %d version %d", c.K, c.Epoch, c.Version)
	}
	return fmt.Sprintf("%s %v at epoch %d version %d", kindText(c.Kind), c.Member(), c.Epoch, c.Version)
}

func outcome(refused directory.Refusal, s directory.Shard) string {
	if refused != 0 {
		return "refused, " + refused.Error()
	}
	return fmt.Sprintf("epoch %d, version %d, master %v, in sync %v", s.Epoch, s.Version, s.Master, s.InSync)
}

package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/resp"
)

// A target that follows a master under Sentinel becomes one of that group's replicas. If it is made a master, Sentinel makes it a
// replica of the old master again, some seconds later: a full synchronisation then replaces what clients have written to it.

// sentinelChannel is the channel of a server to which each Sentinel that watches the server subscribes.
const sentinelChannel = "__sentinel__:hello"

// sentinelRemedy tells an operator what to do against it. The guide has the whole procedure.
const sentinelRemedy = "send SENTINEL REMOVE with the master's name to each Sentinel; after the move, SENTINEL MONITOR with TO's address"

// sentinels returns how many Sentinels watch a server; known is false if the user may not ask.
func (p *peer) sentinels(ctx context.Context) (n int, known bool, _ error) {
	v, err := p.do(ctx, "PUBSUB", "NUMSUB", sentinelChannel)
	if err == nil && len(v.Elems) == 2 {
		return int(v.Elems[1].Int), true, nil
	}
	list, listed := p.do(ctx, "CLIENT", "LIST")
	if listed == nil {
		return strings.Count(list.String(), " name=sentinel-") / 2, true, nil // each has a connection for commands and one for messages
	}
	if err = errors.Join(err, listed); isRefusal(err) {
		return 0, false, nil
	}
	return 0, false, err
}

// isRefusal reports whether an error is a server's reply, and not one of the connection.
func isRefusal(err error) bool {
	_, ok := errors.AsType[resp.ReplyError](err)
	return ok
}

// watched says that Sentinel watches the source or the target, and names that; "" if it watches neither. unknown names a server that
// does not tell.
func (m *Migration) watched(ctx context.Context) (what, unknown string, _ error) {
	for _, p := range append([]*peer{m.to}, m.from...) { // a source last: under its Sentinel the target is watched, too
		n, known, err := p.sentinels(ctx)
		if err != nil {
			return "", "", err
		}
		if !known {
			unknown = fmt.Sprintf("%s %s", p.side, p)
		} else if n > 0 {
			what = fmt.Sprintf("%d Sentinels watch %s %s", n, p.side, p)
		}
	}
	return what, unknown, nil
}

// refuseSentinel returns an error if Sentinel would undo a cutover by replication.
func (m *Migration) refuseSentinel(ctx context.Context) error {
	what, _, err := m.watched(ctx)
	if err == nil && what != "" {
		err = fmt.Errorf("no cutover: %s, and make TO a replica again after it, without what clients have written: %s. "+
			"Or copy with --scan", what, sentinelRemedy)
	}
	return err
}

// warnOfSentinel prints what refuseSentinel would refuse. Until then Sentinel takes TO for one of FROM's replicas, and a failover may
// choose it.
func (m *Migration) warnOfSentinel(ctx context.Context) error {
	what, unknown, err := m.watched(ctx)
	switch {
	case err != nil:
		return err
	case what != "":
		m.out.line("%s: it may change the roles of both, and `cutover` refuses: %s", what, sentinelRemedy)
	case unknown != "":
		m.out.line("%s does not tell whether Sentinel watches it (PUBSUB NUMSUB, CLIENT LIST): Sentinel undoes a cutover", unknown)
	}
	return nil
}

// checkSentinel is the part of Check about Sentinel.
func (m *Migration) checkSentinel(ctx context.Context) ([]doctor.Finding, error) {
	what, unknown, err := m.watched(ctx)
	byLink, _ := m.byLink()
	switch {
	case err != nil:
		return nil, err
	case what != "" && byLink:
		return []doctor.Finding{finding(doctor.Act, "sentinel",
			"after the cutover it makes TO a replica again, without what clients have written",
			sentinelRemedy+"; or --scan", "%s", what)}, nil
	case what != "":
		return []doctor.Finding{finding(doctor.Look, "sentinel", "clients that ask Sentinel for the master go on to use FROM",
			sentinelRemedy, "%s", what)}, nil
	case unknown != "":
		return []doctor.Finding{finding(doctor.Look, "sentinel", "Sentinel would undo the cutover", "allow +pubsub|numsub or +client|list",
			"%s does not tell whether Sentinel watches it", unknown)}, nil
	}
	return nil, nil
}

package cli

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/resp"
)

// maxRedirects is the limit of redirections of one command: nodes that disagree could
// redirect it for ever.
const maxRedirects = 16

// redirection holds the contents of MOVED or ASK.
type redirection struct {
	slot string
	host string // "" for the present host
	port int
	ask  bool // for this command only
}

// redirection returns where -c sends a command whose reply was v. It does not redirect a
// command between MULTI and EXEC, because the other node would run it at once, outside of
// the transaction.
func (c *client) redirection(v resp.Value) (r redirection, ok bool) {
	if !c.opt.Cluster || c.tx || v.Kind != resp.KindError {
		return r, false
	}
	words := strings.Fields(v.Str)
	if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return r, false
	}
	i := strings.LastIndexByte(words[2], ':')
	if i < 0 {
		return r, false
	}
	port, err := strconv.Atoi(words[2][i+1:])
	if err != nil {
		return r, false
	}
	r = redirection{slot: words[1], host: strings.Trim(words[2][:i], "[]"), port: port, ask: words[0] == "ASK"}
	if r.host == "?" { // the node does not know its own name
		r.host = ""
	}
	return r, true
}

// redirect connects to another node, also for later commands.
func (c *client) redirect(r redirection) bool {
	if r.host != "" {
		c.opt.Host = r.host
	}
	c.opt.Port, c.opt.Socket = r.port, ""
	if c.talk {
		fmt.Fprintf(c.env.Out, "-> Redirected to slot [%s] located at %s\n", r.slot, net.JoinHostPort(c.opt.Host, strconv.Itoa(r.port)))
	}
	return c.connect()
}

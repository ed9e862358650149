package console

import "slices"

// aclLogRow is an entry of the ACL log: requests that were refused, and failed logins.
type aclLogRow struct {
	ID      int64  `json:"id"`
	Count   int64  `json:"count"`
	Reason  string `json:"reason"`
	Context string `json:"context"`
	Object  blob   `json:"object"`
	User    blob   `json:"user"`
	First   int64  `json:"first"` // ms since 1970
	Last    int64  `json:"last"`
	Addr    string `json:"addr"`
	Name    blob   `json:"name"`
}

// aclLogRows is the number of entries that a page gets.
const aclLogRows = 128

// getACLLog answers GET api/acllog.
func getACLLog(k *call, q *request) (any, error) {
	v, err := k.do(q.ctx, "ACL", "LOG", aclLogRows)
	if err != nil && err != errNotAllowed {
		return nil, err
	}
	rows := []aclLogRow{}
	for _, e := range v.Elems {
		row := aclLogRow{ID: member(e, "entry-id").Int, Count: member(e, "count").Int, Reason: member(e, "reason").Str, Context: member(e, "context").Str,
			Object: nameOf(member(e, "object")), User: nameOf(member(e, "username")), First: member(e, "timestamp-created").Int,
			Last: member(e, "timestamp-last-updated").Int}
		if client := parseClients(member(e, "client-info").Str); len(client) > 0 {
			row.Addr, row.Name = client[0].Addr, bytesOf(client[0].Name)
		}
		rows = append(rows, row)
	}
	return struct {
		Rows   []aclLogRow `json:"rows"`
		Denied []string    `json:"denied,omitempty"`
	}{rows, slices.Clone(k.denied)}, nil
}

// getAudit answers GET api/audit for users who may run ACL LOG.
func getAudit(c *Console, q *request) (any, error) {
	if ok, need := q.v.id.May([][]byte{[]byte("ACL"), []byte("LOG")}); !ok {
		return nil, &failure{status: 403, Code: "NOPERM", Text: "the audit is for users who may run ACL LOG: the rule " + need + " allows it"}
	}
	return struct {
		Rows []auditRow `json:"rows"`
	}{c.audits.latest()}, nil
}

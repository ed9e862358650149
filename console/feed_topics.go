package console

import (
	"slices"
	"strconv"
	"strings"
)

// feedTopics is the greatest number of topics of a stream.
const feedTopics = 20

// topic is a subject of a stream.
type topic struct {
	name string // sample, expired, key, limits, locks or queues
	db   int
	key  string // of a key topic: the key; of a list: the pattern, "" for all
	sort string // of a list: the column
}

// isList reports whether the topic is the list of a screen.
func (t topic) isList() bool { return t.name == "limits" || t.name == "locks" || t.name == "queues" }

// parseTopics reads the parameter topics. databases is the number of databases of the server.
func parseTopics(text string, databases int) ([]topic, error) {
	var out []topic
	words := strings.Split(text, ",")
	if len(words) > feedTopics {
		return nil, badRequest("a stream may have at most %d topics; it has %d", feedTopics, len(words))
	}
	for _, w := range words {
		t, err := parseTopic(w, databases)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, t) {
			return nil, badRequest("the stream has the topic %.80q twice", w)
		}
		out = append(out, t)
	}
	return out, nil
}

// topicParts are the topics, each with its least and greatest number of parts.
var topicParts = map[string][2]int{"sample": {1, 1}, "expired": {1, 2}, "limits": {2, 4},
	"locks": {2, 4}, "queues": {2, 4}, "key": {3, 3}}

func parseTopic(w string, databases int) (t topic, err error) {
	parts := strings.Split(w, ":")
	t.name = parts[0]
	if n := topicParts[t.name]; len(parts) < n[0] || len(parts) > n[1] {
		return t, badRequest("the topic %.80q is not known; the topics are sample, expired:<db>, key:<db>:<key>, and "+
			"limits, locks and queues:<db>:<pattern>:<sort>, with keys and patterns in base64url", w)
	}
	if len(parts) > 1 {
		if t.db, err = strconv.Atoi(parts[1]); err != nil || t.db < 0 || t.db >= databases {
			return t, badRequest("the topic %.80q names the database %.80q, which does not exist", w, parts[1])
		}
	}
	if len(parts) > 2 {
		if t.key, err = decodeKey(parts[2]); err != nil {
			return t, badRequest("the topic %.80q has a key or a pattern that is not base64url", w)
		}
	}
	if len(parts) > 3 {
		t.sort = parts[3]
	}
	return t, nil
}

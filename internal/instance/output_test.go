package instance

import (
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/wire"
)

func TestTheSoftLimitEndsASubscriberWhileMessagesKeepComing(t *testing.T) {
	var log lines
	for name, dial := range transports(t, &log) {
		pub, sub := dial(), dial()
		if v := pub.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 100000 0"); v.Str != "OK" {
			t.Fatal(v)
		}
		sub.ask("SUBSCRIBE", "c") // reads nothing more
		message := strings.Repeat("m", 10_000)
		n := 0
		for ; n < 5000 && pub.ask("PUBLISH", "c", message).Int == 1; n++ {
		}
		if n == 5000 {
			t.Errorf("%s: the subscriber stays with %d bytes unread: %s", name, n*len(message), pub.ask("CLIENT", "LIST").Str)
		}
	}
	if n := log.count("client closed"); n != 2 {
		t.Errorf("%d lines in the log, want one for each subscriber", n)
	}
}

func TestTheHardLimitCountsAReplyInProgress(t *testing.T) {
	for name, dial := range transports(t, io.Discard) {
		c := dial()
		c.ask("SET", "value", strings.Repeat("v", 300_000))
		c.ask("SET", "below", strings.Repeat("b", 90_000))
		c.ask("SET", "small", strings.Repeat("s", 90))
		for range 300 {
			c.ask("RPUSH", "list", strings.Repeat("e", 1000))
		}
		large := map[string][]byte{
			"GET":      wire.AppendCommand(nil, "GET", "value"),
			"LRANGE":   wire.AppendCommand(nil, "LRANGE", "list", "0", "-1"),
			"EXEC":     []byte("MULTI\r\nGET value\r\nEXEC\r\n"),
			"script":   wire.AppendCommand(nil, "EVAL", "return redis.call('get', KEYS[1])", "1", "value"),
			"pipeline": []byte("GET small\r\nGET below\r\nGET value\r\n"),
		}
		for what, request := range large {
			if v := c.ask("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0"); v.Str != "OK" {
				t.Fatal(v)
			}
			d := dial()
			d.ask("PING")
			if v := c.ask("CONFIG", "SET", "client-output-buffer-limit", "normal 100000 0 0"); v.Str != "OK" {
				t.Fatal(v)
			}
			send(t, d, string(request))
			if said := d.rest(); strings.Contains(said, "vv") || strings.Contains(said, "ee") {
				t.Errorf("%s, %s: the reply of 300 KB comes in spite of the limit", name, what)
			}
		}
		d := dial()
		if v := d.ask("GET", "below"); len(v.Str) != 90_000 {
			t.Errorf("%s: a reply below the limit has %d bytes", name, len(v.Str))
		}
		if name != "loops" {
			continue // output under way counts as unsent there
		}
		const many = 1500 // replies that exceed the limit together, most of which fit into the socket
		send(t, d, strings.Repeat("GET small\r\n", many))
		for range many {
			if v := d.read(); len(v.Str) != 90 {
				t.Fatalf("%s: a reply has %d bytes", name, len(v.Str))
			}
		}
	}
}

func TestAReplyShowsTheValueAsItWas(t *testing.T) {
	const size = 12 << 20 // more than sockets hold
	value := strings.Repeat("old!", size/4)
	writes := [][]string{{"SETRANGE", "k", "10000000", "new"}, {"SETBIT", "k", "99999999", "1"}, {"APPEND", "k", "tail"},
		{"BITFIELD", "k", "SET", "u8", "80000000", "1"}, {"DEL", "k"}, {"RENAME", "k", "k2"}}
	reads := [][]string{{"GET", "k"}, {"GETRANGE", "k", "0", "-1"}, {"MGET", "k"}, {"GETEX", "k"}, {"GETDEL", "k"}, {"SET", "k", "other", "GET"}}
	for name, dial := range transports(t, io.Discard) {
		w := dial()
		for i, write := range writes {
			read := reads[i]
			w.ask("SET", "k", value)
			c := dial()
			id := strconv.FormatInt(c.ask("CLIENT", "ID").Int, 10)
			c.send(read...)
			waitForOutput(w, id, 1<<20)
			w.ask(write...)
			v := c.read()
			if v.Elems != nil {
				v = v.Elems[0]
			}
			if v.Str != value {
				t.Errorf("%s: %v during %v changed its reply, of %d bytes", name, write[0], read[0], len(v.Str))
			}
		}
	}
}

// waitForOutput waits until the server has at least a number of bytes of output for a client. CLIENT LIST may show
// output of other clients, and short replies of this one, for some time after they were read.
func waitForOutput(c client, id string, bytes int) {
	for {
		_, omem, _ := strings.Cut(c.ask("CLIENT", "LIST", "ID", id).Str, " omem=")
		omem, _, _ = strings.Cut(omem, " ")
		if n, err := strconv.Atoi(omem); err != nil {
			c.t.Fatal(err)
		} else if n >= bytes {
			return
		}
	}
}

func TestClientsThatDoNotReadShareTheValue(t *testing.T) {
	const size, clients, replies = 8 << 20, 10, 5
	for name, dial := range transports(t, io.Discard) {
		c := dial()
		c.ask("SET", "k", strings.Repeat("v", size))
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range clients {
			d := dial()
			for range replies {
				d.send("GET", "k")
			}
		}
		for strings.Count(c.ask("CLIENT", "LIST").Str, " oll=1 ") < clients {
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2*size {
			t.Errorf("%s: %d clients that do not read replies of %d bytes take %d bytes", name, clients, size, grown)
		}
	}
}

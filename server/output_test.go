package server

import (
	"io"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/resp"
)

func TestTheSoftLimitEndsASubscriberWhileMessagesKeepComing(t *testing.T) {
	var log lines
	for name, dial := range transports(t, &log) {
		pub, sub := dial(), dial()
		if v := pub.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 100000 0"); v.Str != "OK" {
			t.Fatal(v)
		}
		sub.ask("SUBSCRIBE", "c") // and it reads no more
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
			"GET":      resp.AppendCommand(nil, "GET", "value"),
			"LRANGE":   resp.AppendCommand(nil, "LRANGE", "list", "0", "-1"),
			"EXEC":     []byte("MULTI\r\nGET value\r\nEXEC\r\n"),
			"script":   resp.AppendCommand(nil, "EVAL", "return redis.call('get', KEYS[1])", "1", "value"),
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
			continue // what is being written counts as unsent there
		}
		const many = 1500 // replies of more than the limit together, most of which the socket takes
		send(t, d, strings.Repeat("GET small\r\n", many))
		for range many {
			if v := d.read(); len(v.Str) != 90 {
				t.Fatalf("%s: a reply has %d bytes", name, len(v.Str))
			}
		}
	}
}

"""Plays the program of internal/test/clienttest with redis-py and prints what it sees:

    python3 main.py host:port
"""

import sys

import redis

HOST, PORT = sys.argv[1].split(":")


def client():
    return redis.Redis(HOST, int(PORT), decode_responses=True, socket_timeout=30)


def say(name, value):
    if value is None:
        value = "nil"
    elif value is True or value is False:
        value = int(value)
    print(f"{name}: {value}", flush=True)


def ok(value):
    """What redis-py turned into a bool, as it was on the wire."""
    return "OK" if value is True else value


def about(left, whole):
    """A TTL of which a busy machine may have spent a little."""
    return whole if whole / 2 < left <= whole else left


def error(call, *args):
    try:
        return call(*args)
    except redis.ResponseError as e:
        return text(e)


def text(e):
    # redis-py takes the code away.
    return "ERR " + str(e).removeprefix("ERR ")


def strings(c):
    say("ping", "PONG" if c.ping() else "no")
    say("set", ok(c.set("greeting", "hello")))
    say("get", c.get("greeting"))
    say("get missing", c.get("missing"))
    say("set nx", c.set("greeting", "other", nx=True))
    say("set get", c.set("greeting", "hello", get=True))
    raw = redis.Redis(HOST, int(PORT))
    every = bytes(range(256))
    raw.set("binary", every)
    back = raw.get("binary")
    say("binary", f"{len(back)} bytes, {'the same' if back == every else 'different'}")
    raw.close()
    c.set("big", "x" * (1 << 20))
    say("big", f"{len(c.get('big'))} bytes")


def expiry(c):
    c.set("k", "v", ex=100)
    say("set ex", about(c.ttl("k"), 100))
    say("expire", c.expire("k", 50))
    say("ttl", about(c.ttl("k"), 50))
    say("expire missing", c.expire("missing", 50))
    say("persist", c.persist("k"))
    say("ttl without", c.ttl("k"))
    say("ttl missing", c.ttl("missing"))
    say("getex", c.getex("k", px=60000))
    left = c.pttl("k")
    say("pttl in range", "yes" if 50000 < left <= 60000 else left)


def numbers_and_keys(c):
    c.mset({"m1": 1, "m2": 2})
    say("mget", " ".join(v or "nil" for v in c.mget("m1", "m2", "m3")))
    c.set("n", 42)
    say("incr", c.incr("n"))
    say("incrby", c.incrby("n", 10))
    c.set("f", "10.5")
    say("incrbyfloat", c.incrbyfloat("f", 0.1))
    say("append", c.append("greeting", " world"))
    say("getrange", c.getrange("greeting", 0, 4))
    say("del", c.delete("greeting"))
    say("exists", c.exists("greeting"))


def scan(c):
    c.mset({f"item:{i}": i for i in range(1000)})
    for name, options in (("scan", {}), ("scan type", {"_type": "string"})):
        seen = set(c.scan_iter(match="item:*", count=100, **options))
        say(name, f"{len(seen)} of 1000")


def errors(c):
    c.set("word", "abc")
    say("wrong type", error(c.incr, "word"))
    say("unknown command", error(c.execute_command, "NOSUCHCOMMAND")[:19])


def pipelines(c):
    p = c.pipeline(transaction=False)
    p.set("count", 0)
    for _ in range(100):
        p.incr("count")
    replies = p.get("count").execute()
    say("pipeline", f"{len(replies)} replies, the last {replies[-1]}")
    mixed = c.pipeline(transaction=False).set("a", 1).incr("word").set("b", 2).execute(raise_on_error=False)
    say("pipeline error", ", ".join(text(r) if isinstance(r, Exception) else ok(r) for r in mixed))


def transactions(c):
    replies = c.pipeline().set("t", 0).incr("t").incr("t").get("t").execute()
    say("multi", " ".join(str(ok(r)) for r in replies))
    with c.pipeline() as p:
        p.watch("t")
        c.set("t", "other")
        p.multi()
        p.set("t", "mine")
        try:
            say("watch", p.execute())
        except redis.WatchError:
            say("watch", None)
    one = redis.Redis(HOST, int(PORT), single_connection_client=True)
    for request in ("MULTI", "SET never 1", "DISCARD"):
        one.connection.send_command(*request.split())
        one.connection.read_response()
    one.close()
    say("discard", c.get("never"))


def events(c):
    c.config_set("notify-keyspace-events", "KEA")
    sub = c.pubsub(ignore_subscribe_messages=True)
    sub.psubscribe("__key*@0__:*")
    sub.get_message(timeout=10)  # the subscription has taken effect
    c.set("fleeting", "v", px=50)
    for m in sub.listen():
        kind, name = m["channel"][2:].split("@0__:")
        event = m["data"] if kind == "keyspace" else name
        say("event", f"{kind} {event}")
        if (kind, event) == ("keyevent", "expired"):
            break
    sub.close()
    say("expired", c.exists("fleeting"))


def main():
    c = client()
    for part in (strings, expiry, numbers_and_keys, scan, errors, pipelines, transactions, events):
        part(c)
    c.close()


main()

"""Plays the program for clusters of internal/test/clienttest with redis-py and prints
what it sees:

    python3 cluster.py host:port
"""

import sys

import redis
from redis.cluster import RedisCluster

host, port = sys.argv[1].split(":")


def say(name, value):
    print(f"{name}: {value}", flush=True)


def ok(value):
    return "OK" if value is True else value


def main():
    c = RedisCluster(host=host, port=int(port), decode_responses=True)
    say("set", ok(c.set("k", "v")))
    say("get", c.get("k"))
    say("mset", ok(c.mset({"{a}1": 1, "{a}2": 2})))
    say("mget", " ".join(v or "nil" for v in c.mget("{a}1", "{a}2", "{a}3")))
    p = c.pipeline()
    for i in range(100):
        p.set(f"key:{i}", i)
    say("other slots", p.execute().count(True))
    # The client itself refuses keys of several slots: this connection is not its.
    one = redis.Redis(host=host, port=int(port), decode_responses=True)
    try:
        one.mset({"a": 1, "b": 2})
    except redis.ResponseError as e:
        say("cross slot", "CROSSSLOT " + str(e).removeprefix("CROSSSLOT "))
    with one.pipeline() as p:
        say("multi", " ".join(str(ok(r)) for r in p.set("{t}n", 1).incr("{t}n").execute()))
    sub = one.pubsub()
    sub.execute_command("SSUBSCRIBE", "news")
    sub.connection.read_response()
    c.execute_command("SPUBLISH", "news", "hello", target_nodes=RedisCluster.PRIMARIES)
    say("ssubscribe", " ".join(sub.connection.read_response()[1:]))
    sub.close()
    one.close()
    c.close()


main()

"""Plays the program on data types of internal/test/clienttest with redis-py:

    python3 containers.py host:port
"""
import sys
import threading
import time

import redis

host, port = sys.argv[1].split(":")


def client():
    return redis.Redis(host=host, port=int(port), decode_responses=True)


def say(name, value):
    print(f"{name}: {value}")


def words(values):
    return " ".join(values)


def pairs(items):
    return words(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in items)


def main():
    c = client()
    say("hset", c.hset("user:1", mapping={"name": "Ada", "age": "36"}))
    say("hgetall", pairs(sorted(c.hgetall("user:1").items())))
    say("hincrby", c.hincrby("user:1", "age", 1))
    say("rpush", c.rpush("jobs", "a", "b", "c"))
    say("lrange", words(c.lrange("jobs", 0, -1)))
    say("lmove", c.lmove("jobs", "done", "LEFT", "RIGHT"))
    got = []
    waiter = threading.Thread(target=lambda: got.extend(client().blpop("queue", 10)))
    waiter.start()
    while c.info("clients")["blocked_clients"] == 0:
        time.sleep(0.001)
    c.rpush("queue", "x")
    waiter.join()
    say("blpop", words(got))
    say("sadd", c.sadd("tags", "red", "green", "blue"))
    say("smembers", words(sorted(c.smembers("tags"))))
    c.sadd("others", "red", "blue", "black")
    say("sinter", words(sorted(c.sinter("tags", "others"))))
    say("zadd", c.zadd("board", {"ann": 10, "bob": 20.5, "cat": 15}))
    say("zrange", pairs(c.zrange("board", 0, -1, withscores=True)))
    say("zrank", c.zrank("board", "bob"))
    say("zpopmin", pairs(c.zpopmin("board")))
    say("xadd", c.xadd("log", {"k": "v"}, id="1-1"))
    say("xlen", c.xlen("log"))
    c.xgroup_create("log", "g", "0")
    [[_, [[entry, fields]]]] = c.xreadgroup("g", "c", {"log": ">"})
    say("xreadgroup", f"{entry} {pairs(fields.items())}")
    say("xpending", c.xpending("log", "g")["pending"])
    say("xack", c.xack("log", "g", "1-1"))
    c.pfadd("seen", "a", "b", "c", "a")
    say("pfcount", c.pfcount("seen"))
    c.geoadd("Sicily", (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"))
    say("geodist", c.geodist("Sicily", "Palermo", "Catania", unit="km"))
    say("geosearch", words(c.geosearch("Sicily", longitude=13, latitude=38, radius=300, unit="km", sort="ASC")))
    c.rpush("nums", 3, 1, 2)
    say("sort", words(c.sort("nums")))
    raw = redis.Redis(host=host, port=int(port))
    raw.restore("user:2", 0, raw.dump("user:1"))
    say("restore", c.hget("user:2", "name"))
    try:
        c.lpush("user:1", "x")
    except redis.ResponseError as e:
        say("wrong type", e)


main()

"""Plays with Bloom filters through redis-py:

    python3 bloom.py host:port
"""
import sys

import redis

host, port = sys.argv[1].split(":")
c = redis.Redis(host=host, port=int(port))
bf = c.bf()
print("create", bf.create("f", 0.01, 1000))
print("add", bf.add("f", "a"), bf.add("f", "a"))
print("madd", bf.madd("f", "a", "b"))
print("insert", bf.insert("i", ["a", "b"], capacity=500, error=0.001, expansion=3))
print("exists", bf.exists("f", "a"), bf.exists("f", "x"), bf.mexists("f", "a", "x"))
info = bf.info("i")
print("info", info.capacity, info.filterNum, info.insertedNum, info.expansionRate)
at = 0
while True:
    at, data = bf.scandump("f", at)
    if at == 0:
        break
    print("loadchunk", bf.loadchunk("copy", at, data))
print("copied", bf.mexists("copy", "a", "b", "x"))

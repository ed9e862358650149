"""Plays with Bloom filters through redis-py:

    python3 bloom.py host:port
"""
import sys

import redis
import redis.commands.bf.commands as bfcommands
from redis.connection import PythonParser

# redis-py refuses BF.SCANDUMP where python3-hiredis is installed, because that parser would decode the
# chunks. This program reads replies with redis-py's own parser, with and without hiredis.
bfcommands.HIREDIS_AVAILABLE = False

host, port = sys.argv[1].split(":")
c = redis.Redis(connection_pool=redis.ConnectionPool(host=host, port=int(port), parser_class=PythonParser))
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

"""Plays the program on scripts of internal/test/clienttest with redis-py, whose locks
are scripts, and prints what it sees:

    python3 scripts.py host:port
"""

import os
import re
import sys
import threading

import redis
from redis.exceptions import LockError, NoScriptError, ResponseError

HOST, PORT = sys.argv[1].split(":")


def client():
    return redis.Redis(HOST, int(PORT), decode_responses=True, socket_timeout=30)


def file(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", name)) as f:
        return f.read()


def show(value):
    if isinstance(value, list):
        return f"[{' '.join(show(v) for v in value)}]"
    if value is None:
        return "nil"
    # What redis-py turned into a bool, as it was on the wire.
    return "OK" if value is True else str(value)


def say(name, value):
    print(f"{name}: {show(value)}", flush=True)


def or_error(call, *args):
    try:
        return call(*args)
    except NoScriptError as e:
        return f"NOSCRIPT {e}"  # redis-py takes the codes that it knows away
    except ResponseError as e:
        return str(e) if re.match("[A-Z]{2,} ", str(e)) else f"ERR {e}"


def scripts(c):
    for section in file("scripts.lua").split("\n--- ")[1:]:
        head, lua = section.split("\n", 1)
        front, args = head.split("/")
        name, *keys = front.split()
        lua = lua.strip()
        if name.startswith("ro-"):
            run = lambda: c.eval_ro(lua, len(keys), *keys, *args.split())  # noqa: E731
        else:
            run = lambda: c.register_script(lua)(keys, args.split())  # noqa: E731
        say(name, or_error(run))


def cached(c):
    lua = "return redis.call('INCR', KEYS[1])"
    bump = c.register_script(lua)
    say("loaded", bump(["n"]))
    say("flushed", c.script_flush())
    say("loaded again", bump(["n"]))
    sha = c.script_load(lua)
    say("sha", sha)
    say("exists", [int(v) for v in c.script_exists(sha, sha.replace("a", "b"))])
    say("noscript", or_error(c.evalsha, sha.replace("a", "b"), 0))
    p = c.pipeline(transaction=False)
    for _ in range(3):
        bump(["n"], client=p)
    say("pipeline", p.execute())
    p = c.pipeline()
    p.set("n", 10)
    bump(["n"], client=p)
    say("multi", p.execute())


def functions(c):
    library = file("functions.lua")

    def call(*args):
        return or_error(c.execute_command, *args)

    say("load", call("FUNCTION LOAD", library))
    say("load again", call("FUNCTION LOAD", library))
    say("fcall", c.fcall("put", 1, "shelf", "a", "b"))
    say("fcall_ro", c.fcall_ro("peek", 1, "shelf"))
    say("fcall_ro writes", or_error(c.fcall_ro, "put", 1, "shelf", "c"))
    raw = redis.Redis(HOST, int(PORT))
    dump = raw.function_dump()
    raw.close()
    say("flush", c.function_flush())
    say("gone", or_error(c.fcall, "peek", 1, "shelf"))
    say("restore", call("FUNCTION RESTORE", dump))
    say("back", c.fcall("peek", 1, "shelf"))
    say("list", c.execute_command("FUNCTION LIST")[0][1])


def busy(c, name, run, kill):
    """Runs what never ends, on another connection, until it is killed."""
    c.config_set("busy-reply-threshold", 1)
    other = client()
    ended = []
    thread = threading.Thread(target=lambda: ended.append(or_error(run, other)))
    thread.start()
    while (said := or_error(c.ping)) is True and thread.is_alive():
        pass
    say(f"{name} busy", said)
    say(f"{name} killed", kill())
    thread.join()
    say(f"{name} ended", ended[0])
    say(f"{name} none", or_error(kill))
    other.close()


def lock(c):
    def yes(value):
        return "yes" if value else "no"

    def held(call, *args):
        try:
            return yes(call(*args))
        except LockError:
            return "no"

    mine, theirs = (c.lock("lock", timeout=60, blocking=False) for _ in range(2))
    say("acquire", yes(mine.acquire()))
    say("acquire held", yes(theirs.acquire()))
    say("extend", held(mine.extend, 60))
    say("extended", yes(60000 < c.pttl("lock") <= 120000))
    theirs.local.token = b"theirs"
    say("extend of others", held(theirs.extend, 60))
    theirs.local.token = b"theirs"
    say("release of others", held(theirs.release))
    mine.release()  # returns nothing, or raises
    say("release", yes(not mine.locked()))
    say("acquire free", yes(theirs.acquire()))


def main():
    c = client()
    scripts(c)
    cached(c)
    functions(c)
    busy(c, "script", lambda o: o.eval("while true do end", 0), c.script_kill)
    busy(c, "function", lambda o: o.fcall("endless", 0), lambda: c.execute_command("FUNCTION KILL"))
    lock(c)
    c.close()


main()

"""Waits with ZPOPDUE and ZMOVEDUE for what kombu and celery look for in intervals, and prints what it sees:

    python3 due_celery.py host:port

The worker is celery's own program, started here, and imports this file.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime, timedelta, timezone

import redis
from celery import Celery
from kombu import Connection
from kombu.transport import redis as transport
from kombu.utils.json import dumps

# How long all may take, in seconds: less than the test waits, so that the worker
# ends with the program.
PATIENCE = 170

ADDRESS = os.environ.get("QUEUE_ADDRESS") or sys.argv[1]
URL = f"redis://{ADDRESS}/0"


# Only the loop below puts messages back whose worker has died.
transport.QoS.restore_visible = lambda *args, **kwargs: None


class Channel(transport.Channel):
    """Keeps messages that have an eta in a sorted set until then, and not in a worker."""

    def _put(self, queue, message, **kwargs):
        eta = message["headers"].get("eta")
        if not eta:
            return super()._put(queue, message, **kwargs)
        with self.conn_or_acquire() as client:
            client.zadd(f"{queue}:schedule", {dumps(message): datetime.fromisoformat(eta).timestamp()})


transport.Transport.Channel = Channel

app = Celery("due_celery", broker=URL, backend=f"redis://{ADDRESS}/1")
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=1, broker_connection_retry=False)


def connection():
    host, port = ADDRESS.split(":")
    return redis.Redis(host, int(port))


def say(name, value):
    print(f"{name}: {value}", flush=True)


@app.task(name="late")
def late(name, due):
    connection().rpush("ran", name if time.time() >= due else f"{name} too early")


@app.task(name="stuck")
def stuck():
    """The first attempt hangs, and dies with its worker."""
    c = connection()
    if c.incr("attempts") == 1:
        c.rpush("began", "stuck")
        c.blpop("never")
    return "done by another worker"


def move_due(queue):
    """Moves the messages of a queue that are due to it, until the connection ends."""
    c = connection()
    while True:
        c.execute_command("ZMOVEDUE", f"{queue}:schedule", queue, "LEFT", "COUNT", 100, "BLOCK", 0)


def restore_due(channel, visibility):
    """Waits until a message was delivered visibility seconds ago and not acknowledged, and puts it back
    with kombu's own transaction."""
    c = connection()
    due = c.execute_command("ZPOPDUE", 1, channel.unacked_index_key, "AGE", int(visibility * 1000), "PEEK", "BLOCK", 0)
    for tag, _ in due[1]:
        channel.qos.restore_by_tag(tag.decode())
    return due[1]


def restore_loop(visibility):
    with app.broker_connection() as conn:
        channel = conn.channel()
        while True:
            restore_due(channel, visibility)


def kombu():
    """Messages that no consumer has acknowledged."""
    with Connection(URL) as conn, Connection(URL) as other:
        queue = conn.SimpleQueue("plain")
        for n in range(3):
            queue.put({"n": n})
        delivered = time.time()
        taken = [queue.get(timeout=PATIENCE) for _ in range(3)]
        taken[1].ack()
        channel = other.channel()
        with channel.conn_or_acquire() as client:
            say("unacknowledged", client.zcard(channel.unacked_index_key))
        restored = []
        while len(restored) < 2:
            restored += restore_due(channel, 0.3)
        say("too early", time.time() < delivered + 0.3)
        say("in order", [tag.decode() for tag, _ in restored] == [taken[0].delivery_tag, taken[2].delivery_tag])
        again = [queue.get(timeout=PATIENCE) for _ in range(2)]
        say("again", " ".join(f"{m.payload['n']}{' redelivered' * m.headers.get('redelivered', False)}" for m in again))
        for m in again:
            m.ack()
        with channel.conn_or_acquire() as client:
            say("left", client.exists(channel.unacked_index_key, channel.unacked_key, "plain"))


def same_as_kombu():
    """ZPOPDUE AGE and the range of kombu's restore_visible have the same messages."""
    c = connection()
    now = time.time()
    c.zadd("theirs", {f"tag{i}": now - i for i in range(100)})
    theirs = c.zrevrangebyscore("theirs", time.time() - 50.5, 0)
    ours = c.execute_command("ZPOPDUE", 1, "theirs", "AGE", 50500, "COUNT", 1000, "PEEK")[1]
    say("same messages", len(ours) == 49 and [tag for tag, _ in ours] == theirs[::-1])


def end(worker):
    """Ends what is left of the worker's processes, which are a session."""
    try:
        os.killpg(worker.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all have gone
    worker.wait()


def start(log):
    return subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "due_celery", "worker", "-P", "solo", "-l", "WARNING", "--without-gossip", "--without-mingle"],
        cwd=os.path.dirname(os.path.abspath(__file__)),
        env={**os.environ, "QUEUE_ADDRESS": ADDRESS, "C_FORCE_ROOT": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=log, stderr=log, start_new_session=True)


def celery(log):
    """Delayed tasks wait in the server, and a task of a killed worker goes to the next."""
    c = connection()
    worker = start(log)
    try:
        now = time.time()
        late.apply_async(("tomorrow", now + 86400), countdown=86400)
        late.apply_async(("second", now + 0.6), countdown=0.6)
        eta = datetime.now(timezone.utc) + timedelta(seconds=0.2)
        late.apply_async(("first", eta.timestamp()), eta=eta)
        say("scheduled", c.zcard("celery:schedule"))
        say("ran", " ".join(c.blpop("ran", PATIENCE)[1].decode() for _ in range(2)))
        say("left", c.zcard("celery:schedule"))
        result = stuck.delay()
        c.blpop("began", PATIENCE)
        end(worker)
        threading.Thread(target=restore_loop, args=(0.5,), daemon=True).start()
        worker = start(log)
        say("result", result.get(PATIENCE))
        app.control.shutdown()
        say("ended", worker.wait(PATIENCE))
    finally:
        end(worker)


def overdue(*_):
    raise TimeoutError(f"not done in {PATIENCE} s")


def main():
    signal.signal(signal.SIGALRM, overdue)
    signal.alarm(PATIENCE)
    threading.Thread(target=move_due, args=("celery",), daemon=True).start()
    with tempfile.TemporaryFile("w+") as log:
        try:
            kombu()
            same_as_kombu()
            celery(log)
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read())
            raise


if __name__ == "__main__":
    main()

"""Plays the program on celery of internal/test/clienttest: tasks, and a worker with
two processes, with the server as broker and as result backend. It prints what
it sees:

    python3 queue_celery.py host:port

The worker is celery's own program, started here, and imports this file.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone

import redis
from celery import Celery, chain, chord, group
from celery.result import AsyncResult

# How long all may take, in seconds: less than the test waits, so that the worker
# ends with the program.
PATIENCE = 170

ADDRESS = os.environ.get("QUEUE_ADDRESS") or sys.argv[1]
app = Celery("queue_celery", broker=f"redis://{ADDRESS}/0", backend=f"redis://{ADDRESS}/1")
app.conf.update(result_extended=True, worker_send_task_events=True, task_send_sent_event=True, broker_connection_retry=False)


def say(name, value):
    print(f"{name}: {value}", flush=True)


def connection():
    host, port = ADDRESS.split(":")
    return redis.Redis(host, int(port), db=2)


@app.task(name="add")
def add(a, b):
    return a + b


@app.task(name="total")
def total(numbers):
    return sum(numbers)


@app.task(name="fail")
def fail(text):
    raise ValueError(text)


@app.task(name="late")
def late(due):
    """Whether it is late enough."""
    return time.time() >= due


@app.task(name="third_time", bind=True, max_retries=3)
def third_time(self, needed):
    """Fails until it has been tried so often."""
    if self.request.retries < needed:
        raise self.retry(exc=ValueError(f"attempt {self.request.retries + 1}"), countdown=0)
    return self.request.retries


@app.task(name="report", bind=True)
def report(self):
    """Says how far it is, and goes on when it is told."""
    self.update_state(state="HALF", meta={"done": 50})
    c = connection()
    c.rpush("reports", self.request.id)
    c.blpop("go on", PATIENCE)
    return "done"


def tasks():
    say("result", add.delay(2, 3).get(PATIENCE))
    say("many", " ".join(str(r.get(PATIENCE)) for r in [add.delay(n, n) for n in range(20)]))
    bad = fail.delay("no such thing")
    say("failure", f"{type(bad.get(PATIENCE, propagate=False)).__name__} {bad.result}, {bad.state}, {bad.traceback.splitlines()[-1]}")
    say("extended", f"{AsyncResult(bad.id).name} {AsyncResult(bad.id).args}")
    bad.forget()
    say("forgotten", AsyncResult(bad.id).state)
    c = connection()
    r = report.delay()
    c.blpop("reports", PATIENCE)
    half = AsyncResult(r.id)
    say("progress", f"{half.state} {half.info}")
    c.rpush("go on", "yes")
    say("finished", r.get(PATIENCE))
    c.close()


def later():
    now = time.time()
    say("countdown", late.apply_async((now + 0.5,), countdown=0.5).get(PATIENCE))
    due = datetime.now(timezone.utc) + timedelta(seconds=0.5)
    say("eta", late.apply_async((due.timestamp(),), eta=due).get(PATIENCE))
    gone = add.apply_async((1, 1), expires=datetime.now(timezone.utc) - timedelta(seconds=1))
    say("expired", f"{type(gone.get(PATIENCE, propagate=False)).__name__}, {gone.state}")
    for countdown in (0.5, 5, 30):  # a busy machine may run it before it is revoked
        revoked = add.apply_async((1, 1), countdown=countdown)
        app.control.revoke(revoked.id, reply=True, timeout=PATIENCE, limit=1)
        outcome = revoked.get(PATIENCE, propagate=False)
        if revoked.state != "SUCCESS":
            break
    say("revoked", f"{type(outcome).__name__}, {revoked.state}")


def retries():
    say("retried", third_time.delay(2).get(PATIENCE))
    hopeless = third_time.delay(9)
    say("gave up", f"{hopeless.get(PATIENCE, propagate=False)}, {hopeless.state}")
    say("priorities", " ".join(str(add.apply_async((p, 0), priority=p).get(PATIENCE)) for p in (9, 0, 5)))


def canvas():
    say("chain", chain(add.s(1, 2), add.s(3), add.s(4)).delay().get(PATIENCE))
    g = group(add.s(n, n) for n in range(10)).delay()
    say("group", f"{g.get(PATIENCE)}, {g.completed_count()} completed")
    g.save()
    restored = app.GroupResult.restore(g.id)
    say("restored", restored.get(PATIENCE) == g.get(PATIENCE))
    say("chord", chord((add.s(n, n) for n in range(50)), total.s()).delay().get(PATIENCE))
    say("nested", chain(group(add.s(1, 1), add.s(2, 2)), total.s(), group(add.s(1), add.s(2))).delay().get(PATIENCE))
    broken = chord([add.s(1, 1), fail.s("in a part")], total.s()).delay()
    try:
        say("broken chord", broken.get(PATIENCE))
    except ValueError as e:
        say("broken chord", f"{type(e).__name__}, {'in a part' in str(e)}")


def control(worker):
    say("ping", app.control.ping(timeout=PATIENCE, limit=1))
    (registered,) = app.control.broadcast("registered", reply=True, timeout=PATIENCE, limit=1)
    say("registered", " ".join(sorted(name for name in registered["w@here"] if "." not in name)))
    app.control.broadcast("add_consumer", arguments={"queue": "other"}, reply=True, timeout=PATIENCE, limit=1)
    say("other queue", add.apply_async((4, 5), queue="other").get(PATIENCE))
    (queues,) = app.control.broadcast("active_queues", reply=True, timeout=PATIENCE, limit=1)
    say("queues", " ".join(q["name"] for q in queues["w@here"]))
    app.control.shutdown()
    say("ended", worker.wait(PATIENCE))
    # A job that no worker took waits, and can be removed.
    add.delay(1, 1)
    add.delay(2, 2)
    say("purged", app.control.purge())


def overdue(*_):
    raise TimeoutError(f"not done in {PATIENCE} s")


def end(worker):
    """Ends what is left of the worker's processes, which are a session."""
    try:
        os.killpg(worker.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all have gone
    worker.wait()


def main():
    signal.signal(signal.SIGALRM, overdue)
    signal.alarm(PATIENCE)
    with tempfile.TemporaryDirectory() as directory, open(os.path.join(directory, "log"), "w+") as log:
        here = os.path.dirname(os.path.abspath(__file__))
        worker = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "queue_celery", "worker", "-c", "2", "-n", "w@here", "-l", "WARNING"],
            cwd=here, env={**os.environ, "QUEUE_ADDRESS": ADDRESS, "C_FORCE_ROOT": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=log, stderr=log, start_new_session=True)
        try:
            for part in (tasks, later, retries, canvas):
                part()
            control(worker)
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read())
            raise
        finally:
            end(worker)


if __name__ == "__main__":
    main()

"""Plays the program on rq of internal/test/clienttest: a queue of jobs, and the
workers that run them. It prints what it sees:

    python3 queue_rq.py host:port

Jobs are functions of this file, named by text: workers import it, as they do
with applications.
"""

import os
import signal
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import redis
from rq import Queue, Retry, SimpleWorker, Worker, get_current_job
from rq.command import send_shutdown_command
from rq.job import Job
from rq.registry import CanceledJobRegistry, FailedJobRegistry, FinishedJobRegistry, ScheduledJobRegistry

# How long all may take, in seconds: less than the test waits, so that the worker
# ends with the program.
PATIENCE = 170


def say(name, value):
    print(f"{name}: {value}", flush=True)


def words(values):
    return " ".join(str(v) for v in values)


def add(a, b):
    return a + b


def fail(text):
    raise ValueError(text)


def note(word):
    """Tells the program that the job ran."""
    get_current_job().connection.rpush("seen", word)
    return word


def third_time(name):
    """Fails twice."""
    connection = get_current_job().connection
    n = connection.incr(f"attempts:{name}")
    connection.rpush("seen", f"{name}{n}")
    if n < 3:
        raise ValueError(f"attempt {n}")
    return n


def with_meta():
    job = get_current_job()
    job.meta["progress"] = 100
    job.save_meta()


def succeeded(job, connection, result):
    connection.rpush("seen", f"success {job.id} {result}")


def failed(job, connection, kind, value, traceback):
    connection.rpush("seen", f"failure {job.id} {value}")


def burst(c, *queues):
    """Runs what waits, in a process for each job, and returns when all is done."""
    Worker(queues, connection=c).work(burst=True, logging_level="CRITICAL")


def seen(c, n):
    """What the next n jobs said, in order."""
    said = []
    for _ in range(n):
        item = c.blpop("seen", PATIENCE)
        said.append("nothing" if item is None else item[1].decode())
    return said


def jobs(c):
    q = Queue("plain", connection=c)
    sums = [q.enqueue("queue_rq.add", n, n, job_id=f"sum{n}", description=f"{n}+{n}") for n in (1, 2, 3)]
    say("enqueued", f"{words(q.job_ids)}, {len(q)} waiting, {sums[0].get_status()}")
    first = q.enqueue("queue_rq.note", "first", job_id="first", at_front=True)
    say("at front", f"{q.job_ids[0]}, position {q.get_job_position('sum3')}")
    burst(c, q)
    say("results", words(Job.fetch(j.id, connection=c).result for j in sums))
    say("status", f"{first.get_status()}, {len(q)} waiting, {words(sorted(FinishedJobRegistry(queue=q).get_job_ids()))}")
    say("seen", words(seen(c, 1)))
    q.enqueue_many([Queue.prepare_data("queue_rq.add", (n, 1), job_id=f"many{n}") for n in range(3)])
    say("many", words(q.job_ids))
    # A script of Lua, as the others of rq.
    say("emptied", f"{q.empty()} jobs, {len(q)} waiting, {Job.exists('many0', connection=c)}")
    with_progress = q.enqueue("queue_rq.with_meta")
    SimpleWorker([q], connection=c).work(burst=True, logging_level="CRITICAL")
    say("meta", with_progress.get_meta())


def dependencies(c):
    q = Queue("steps", connection=c)
    one = q.enqueue("queue_rq.note", "one", job_id="one", on_success=succeeded)
    q.enqueue("queue_rq.note", "three", job_id="three", depends_on=[one, q.enqueue("queue_rq.note", "two", job_id="two", depends_on=one)])
    say("deferred", words(sorted(q.deferred_job_registry.get_job_ids())))
    burst(c, q)
    say("order", ", ".join(seen(c, 4)))


def failures(c):
    q = Queue("failing", connection=c)
    bad = q.enqueue("queue_rq.fail", "no such thing", job_id="bad", on_failure=failed)
    tried = q.enqueue("queue_rq.third_time", "now", job_id="tried", retry=Retry(max=3))
    never = q.enqueue("queue_rq.add", 1, 1, job_id="never")
    never.cancel()
    burst(c, q)
    registry = FailedJobRegistry(queue=q)
    say("failed", f"{words(registry.get_job_ids())}, {bad.get_status()}, {bad.latest_result().exc_string.splitlines()[-1]}")
    said = seen(c, 4)
    say("retried", f"{', '.join(said)}: {tried.get_status()} {tried.result}")
    say("canceled", f"{never.get_status()}, {words(CanceledJobRegistry(queue=q).get_job_ids())}")
    registry.requeue("bad")
    say("requeued", f"{words(q.job_ids)}, {bad.get_status()}")
    burst(c, q)
    say("failed again", words(seen(c, 1)))
    say("left", f"{len(q)} waiting, {len(registry)} failed")


def scheduled(c, host, port):
    """A worker with a scheduler in a process of its own, until it is told to go."""
    q = Queue("later", connection=c)
    early = q.enqueue_in(timedelta(seconds=1), "queue_rq.note", "in a second", job_id="early")
    q.enqueue_at(datetime.now(timezone.utc) - timedelta(hours=1), "queue_rq.note", "long due", job_id="due")
    hour = q.enqueue_in(timedelta(hours=1), "queue_rq.note", "too early", job_id="hour")
    registry = ScheduledJobRegistry(queue=q)
    say("scheduled", f"{words(registry.get_job_ids())}, {early.get_status()}, {len(q)} waiting")
    q.enqueue("queue_rq.third_time", "then", job_id="then", retry=Retry(max=2, interval=1))
    worker = subprocess.Popen([sys.executable, __file__, f"{host}:{port}", "worker"], start_new_session=True)
    try:
        said = seen(c, 5)
        say("said", f"{words(s for s in said if s.startswith('then'))}, {', '.join(s for s in said if not s.startswith('then'))}")
        (w,) = Worker.all(connection=c)
        say("worker", f"{w.name}, {words(w.queue_names())}")
        # The last job may not have been booked yet: one behind it ends later.
        q.enqueue("queue_rq.note", "last")
        seen(c, 1)
        send_shutdown_command(c, "w")
        say("ended", worker.wait(PATIENCE))
    finally:
        end(worker)
    say("done", f"{early.get_status()}, {Job.fetch('then', connection=c).get_status()}, workers {Worker.count(connection=c)}")
    say("still scheduled", f"{words(registry.get_job_ids())}, {hour.get_status()}")


def late(*_):
    raise TimeoutError(f"not done in {PATIENCE} s")


def end(worker):
    """Ends what is left of the worker's processes, which are a session."""
    try:
        os.killpg(worker.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all have gone
    worker.wait()


def main():
    host, port = sys.argv[1].split(":")
    c = redis.Redis(host, int(port))
    if sys.argv[2:] == ["worker"]:
        Worker(["later"], connection=c, name="w").work(with_scheduler=True, logging_level="CRITICAL")
        return
    signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    jobs(c)
    dependencies(c)
    failures(c)
    scheduled(c, host, port)
    c.close()


if __name__ == "__main__":
    main()

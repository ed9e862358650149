// Plays the program on bullmq of internal/test/clienttest, whose queues are Lua
// scripts, and prints what it sees:
//
//   node bullmq.js host:port
'use strict';

const { FlowProducer, Queue, QueueEvents, UnrecoverableError, Worker } = require('bullmq');
const Redis = require('ioredis');
const [host, port] = process.argv[2].split(':');
// Each worker waits on a connection of its own, as bullmq asks for: null, not a
// number of retries.
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const say = (name, value) => console.log(`${name}: ${value}`);
const words = (values) => [...values].join(' ');
const open = []; // everything to close at the end, newest first

function owned(thing) {
  thing.on('error', (e) => fail(e));
  open.unshift(thing);
  return thing;
}

function fail(e) {
  console.error(e);
  process.exit(1);
}

const queue = (name, options) => owned(new Queue(name, { connection, ...options }));
const worker = (name, work, options) => owned(new Worker(name, work, { connection, drainDelay: 1, ...options }));

async function events(name) {
  const e = owned(new QueueEvents(name, { connection }));
  await e.waitUntilReady();
  return e;
}

// until resolves with the events' arguments once n of them have come for which
// wanted is true.
function until(emitter, event, n = 1, wanted = () => true) {
  const seen = [];
  return new Promise((done) => {
    emitter.on(event, (...args) => {
      if (!wanted(...args)) return;
      seen.push(args);
      if (seen.length === n) done(seen);
    });
  });
}

const counts = async (q, ...kinds) => {
  const c = await q.getJobCounts(...kinds);
  return words(Object.entries(c).sort().map(([kind, n]) => `${kind}=${n}`));
};

// A queue: results, events of the queue, jobs in bulk, an id twice, removal.
async function jobs() {
  const q = queue('plain');
  const e = await events('plain');
  say('add', (await q.add('sum', { a: 1, b: 2 })).id);
  const bulk = await q.addBulk([3, 4, 5].map((n) => ({ name: 'sum', data: { a: n, b: n } })));
  say('bulk', words(bulk.map((j) => j.id)));
  await q.add('sum', { a: 1, b: 1 }, { jobId: 'mine' });
  await q.add('sum', { a: 9, b: 9 }, { jobId: 'mine' });
  say('counts', await counts(q, 'waiting', 'active', 'completed', 'failed'));
  const first = await q.getJob('1');
  say('state', `${first.name} ${JSON.stringify(first.data)} ${await first.getState()}`);
  await q.remove('4');
  const completed = until(e, 'completed', 4);
  worker('plain', async (job) => {
    await job.log(`adds ${job.data.a}`);
    await job.updateProgress(50);
    return job.data.a + job.data.b;
  });
  say('completed', words((await completed).map(([{ jobId, returnvalue }]) => `${jobId}=${returnvalue}`)));
  const job = await q.getJob('mine');
  say('job', `${job.returnvalue} at ${job.progress}%, ${await job.getState()}, attempts ${job.attemptsMade}`);
  say('logs', (await q.getJobLogs('mine')).logs.join());
  say('counts', await counts(q, 'waiting', 'active', 'completed', 'failed'));
  say('awaited', await (await q.add('sum', { a: 20, b: 22 })).waitUntilFinished(e));
  say('cleaned', (await q.clean(0, 100, 'completed')).length);
  say('deduplicated', await deduplicated(q));
}

async function deduplicated(q) {
  await q.pause();
  const once = { deduplication: { id: 'once' } };
  const [a, b] = [await q.add('sum', { a: 1, b: 1 }, once), await q.add('sum', { a: 2, b: 2 }, once)];
  return `${a.id === b.id}, ${await counts(q, 'waiting', 'paused')}`;
}

// Delayed jobs come after what waits, in the order of their delays.
async function delayed() {
  const q = queue('delayed');
  await q.add('c', {}, { delay: 600 });
  await q.add('b', {}, { delay: 100 });
  await q.add('never', {}, { delay: 3600000, jobId: 'never' });
  await q.add('a', {});
  say('delayed', await counts(q, 'waiting', 'delayed'));
  const began = [];
  const w = worker('delayed', async (job) => {
    const early = job.name !== 'never' && Date.now() < job.timestamp + (job.opts.delay ?? 0);
    began.push(`${job.name}${early ? ' too early' : ''}`);
  });
  await until(w, 'completed', 3);
  say('ran', words(began));
  const ran = until(w, 'completed');
  await (await q.getJob('never')).promote();
  await ran;
  say('promoted', began.at(-1));
}

async function priorities() {
  const q = queue('priority');
  for (const [name, priority] of [['low', 10], ['high', 1], ['middle', 5], ['high2', 1], ['none', 0], ['last', 2097151]]) {
    await q.add(name, {}, { priority, jobId: `job-${name}` });
  }
  await q.add('lifo', {}, { lifo: true });
  say('prioritized', await counts(q, 'waiting', 'prioritized'));
  await (await q.getJob('job-low')).changePriority({ priority: 3 });
  const order = [];
  const w = worker('priority', async (job) => { order.push(job.name); });
  await until(w, 'completed', 7);
  say('order', words(order));
}

// Job schedulers: one job at a time, and the next is made when it starts.
async function schedulers() {
  const q = queue('repeat');
  await q.upsertJobScheduler('often', { every: 100, limit: 3 }, { name: 'tick', data: { n: 1 } });
  await q.upsertJobScheduler('yearly', { pattern: '0 0 1 1 *', tz: 'UTC' }, { name: 'year' });
  say('schedulers', words((await q.getJobSchedulers()).map((s) => s.key).sort()));
  const w = worker('repeat', async (job) => `${job.name} ${job.repeatJobKey} ${job.data.n}`);
  const ticks = await until(w, 'completed', 3);
  say('ticks', ticks.map(([, result]) => result).join(', '));
  const next = await q.getJobScheduler('yearly');
  say('next year', new Date(next.next).toISOString().slice(4));
  say('removed', await q.removeJobScheduler('yearly'));
  say('schedulers', await q.getJobSchedulersCount());
  say('delayed', await counts(q, 'delayed'));
}

// A parent waits until its children are done, grandchildren first.
async function flows() {
  const order = [];
  const f = owned(new FlowProducer({ connection }));
  const q = queue('flow');
  const parts = queue('parts');
  const tree = await f.add({
    name: 'house', queueName: 'flow', data: {},
    children: [
      { name: 'roof', queueName: 'parts', data: { cost: 3 } },
      { name: 'walls', queueName: 'parts', data: { cost: 5 }, children: [{ name: 'bricks', queueName: 'parts', data: { cost: 7 } }] },
    ],
  });
  say('tree', `${tree.job.name} ${await tree.job.getState()}: ${words(tree.children.map(({ job }) => job.name))}`);
  say('waiting', `${await counts(q, 'waiting-children')}, parts ${await counts(parts, 'waiting', 'waiting-children')}`);
  const done = until(worker('flow', async (job) => {
    order.push(job.name);
    return Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0);
  }), 'completed');
  worker('parts', async (job) => {
    order.push(job.name);
    const below = Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0);
    return job.data.cost + below;
  });
  const [[house, cost]] = await done;
  say('flow', `${words(order)}: ${cost}`);
  const { processed, unprocessed } = await house.getDependenciesCount();
  say('dependencies', `${processed} processed, ${unprocessed} not`);
  // A child that fails fails its parent, if it says so.
  const broken = await f.add({
    name: 'broken', queueName: 'flow', data: {},
    children: [{ name: 'bad', queueName: 'bad', data: {}, opts: { failParentOnFailure: true } }],
  });
  const e = await events('flow');
  const failed = until(e, 'failed');
  queue('bad');
  worker('bad', async () => { throw new Error('no such part'); });
  const [[{ jobId }]] = await failed;
  say('parent', `${jobId === broken.job.id}, ${await broken.job.getState()}`);
}

// Two jobs in an hour: the third waits, until the limit is taken away. Under a
// limit for milliseconds the others run by themselves.
async function rateLimit() {
  const q = queue('limited');
  await q.addBulk([1, 2, 3, 4, 5].map((n) => ({ name: `job${n}`, data: {} })));
  const order = [];
  const work = async (job) => { order.push(job.name); };
  const strict = worker('limited', work, { limiter: { max: 2, duration: 3600000 } });
  await until(strict, 'completed', 2);
  const left = await q.getRateLimitTtl(2);
  await strict.close();
  say('limited', `${words(order)}, ${left > 3500000 && left <= 3600000}, ${await counts(q, 'waiting', 'completed')}`);
  await q.removeRateLimitKey();
  await until(worker('limited', work, { limiter: { max: 2, duration: 200 } }), 'completed', 3);
  say('windows', words(order));
}

async function retries() {
  const q = queue('retries');
  const e = await events('retries');
  const delays = [];
  let last = 0;
  const w = worker('retries', async (job) => {
    if (job.name === 'hopeless') throw new UnrecoverableError('not again');
    if (last) delays.push(Date.now() - last);
    last = Date.now();
    if (job.name === 'third' && job.attemptsMade < 2) throw new Error(`attempt ${job.attemptsMade + 1}`);
    if (job.name === 'never') throw new Error('never');
    return 'at last';
  });
  const failures = [];
  w.on('failed', (job, error) => failures.push(`${job.name} ${error.message}`));
  const third = await q.add('third', {}, { attempts: 5, backoff: { type: 'exponential', delay: 50 } });
  say('retried', `${await third.waitUntilFinished(e)}: ${failures.join(', ')}`);
  say('backoff', delays.map((d, i) => d >= [49, 99][i]).join(' '));
  const job = await q.getJob(third.id);
  say('attempts', `${job.attemptsMade} made, ${job.attemptsStarted} started, ${job.stacktrace.length} traces`);
  const never = await q.add('never', {}, { attempts: 2, backoff: { type: 'fixed', delay: 20 } });
  say('gave up', `${await never.waitUntilFinished(e).catch((x) => x.message)}, ${await never.getState()}`);
  const hopeless = await q.add('hopeless', {}, { attempts: 5 });
  say('unrecoverable', `${await hopeless.waitUntilFinished(e).catch((x) => x.message)}, ${(await q.getJob(hopeless.id)).attemptsMade}`);
  say('failed', await counts(q, 'failed', 'completed'));
  await w.close();
  await (await q.getJob(never.id)).retry();
  say('again', await never.getState());
}

// Many jobs and several workers: each job runs once.
async function many() {
  const q = queue('many');
  const e = await events('many');
  const seen = new Map();
  const finished = until(e, 'drained');
  await q.addBulk(Array.from({ length: 500 }, (_, i) => ({ name: 'n', data: { i }, opts: { removeOnComplete: i % 2 === 0 } })));
  for (let i = 0; i < 3; i++) {
    worker('many', async (job) => { seen.set(job.data.i, (seen.get(job.data.i) ?? 0) + 1); }, { concurrency: 20 });
  }
  await finished;
  await Promise.all(open.filter((w) => w instanceof Worker && w.name === 'many').map((w) => w.close()));
  say('many', `${seen.size} jobs, ${Math.max(...seen.values())} time each, ${await counts(q, 'waiting', 'active', 'completed')}`);
  await q.obliterate();
  const c = new Redis(connection);
  const left = await c.keys('bull:many:*');
  await c.quit();
  say('obliterated', left.length === 0 ? 'nothing is left' : words(left));
}

async function main() {
  for (const part of [jobs, delayed, priorities, schedulers, flows, rateLimit, retries, many]) await part();
  for (const thing of open) await thing.close();
}

main().catch(fail);

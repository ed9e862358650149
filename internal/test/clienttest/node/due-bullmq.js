// Takes delayed jobs of bullmq with ZPOPDUE, and prints what it sees:
//
//   node due-bullmq.js host:port
'use strict';

const { Queue, Worker } = require('bullmq');
const Redis = require('ioredis');
const [host, port] = process.argv[2].split(':');
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const say = (name, value) => console.log(`${name}: ${value}`);
const delayedKey = (q) => q.toKey('delayed');

// take returns the ids of the due jobs of a queue, and marks those that came before their time.
async function take(redis, q, ...options) {
  const reply = await redis.call('ZPOPDUE', 1, delayedKey(q), 'UNIT', 4096, ...options);
  if (reply === null) return [];
  const [, members] = reply;
  const now = Date.now();
  return members.map(([id, score]) => `${id}${now < Math.floor(score / 4096) ? ' too early' : ''}`);
}

// A program that fetches its jobs itself waits with PEEK, and then lets bullmq's script take the job.
async function manual(redis) {
  const q = new Queue('manual', { connection });
  const worker = new Worker('manual', null, { connection });
  await worker.waitUntilReady();
  await q.add('tomorrow', {}, { delay: 86400000 });
  await q.add('third', {}, { delay: 400 });
  await q.add('first', {}, { delay: 150 });
  await q.add('second', {}, { delay: 150 });
  await q.add('retried', {}, { delay: 600, attempts: 2, backoff: { type: 'fixed', delay: 100 } });
  await redis.config('RESETSTAT');
  const ran = [];
  while (ran.length < 5) {
    const due = await take(redis, q, 'PEEK', 'BLOCK', 0);
    let job;
    while ((job = await worker.getNextJob('token', { block: false }))) {
      ran.push(job.name + (Date.now() < job.timestamp + job.opts.delay ? ' too early' : ''));
      if (job.name === 'retried' && job.attemptsMade === 0) await job.moveToFailed(new Error('once'), 'token', false);
      else await job.moveToCompleted('done', 'token', false);
    }
    if (due.some((id) => id.endsWith('early'))) say('early', due);
  }
  say('ran', ran.join(' '));
  const counts = await q.getJobCounts('waiting', 'active', 'completed', 'failed', 'delayed');
  say('counts', Object.entries(counts).sort().map(([kind, n]) => `${kind}=${n}`).join(' '));
  const [, calls] = /cmdstat_zpopdue:calls=(\d+)/.exec(await redis.info('commandstats'));
  say('one wait for each due time', Number(calls) <= 5); // first and second may be due in one ms
  await worker.close();
  await q.close();
}

// The order and the instant of ZPOPDUE are those of bullmq.
async function order(redis) {
  const q = new Queue('order', { connection });
  const timestamp = Date.now() - 60000; // their time is over
  for (let i = 0; i < 30; i++) await q.add(`job${i}`, {}, { timestamp, delay: 1 + ((i * 7) % 5) * 1000, jobId: `job-${i}` });
  await q.add('later', {}, { delay: 3600000 });
  const expected = (await q.getDelayed()).map((job) => job.id).filter((id) => id.startsWith('job-'));
  const peeked = await take(redis, q, 'COUNT', 1000, 'PEEK');
  say('order', peeked.length === 30 && peeked.join() === expected.join());
  const taken = await take(redis, q, 'COUNT', 1000);
  say('taken', taken.length === 30 && taken.join() === expected.join());
  say('left', (await redis.zrange(delayedKey(q), 0, -1)).length);
  await q.close();
}

// One connection waits for the jobs of many queues.
async function watch(redis) {
  const queues = Array.from({ length: 100 }, (_, i) => new Queue(`many-${i}`, { connection }));
  const waiting = redis.call('ZPOPDUE', queues.length, ...queues.map(delayedKey), 'UNIT', 4096, 'PEEK', 'BLOCK', 0);
  await queues[70].add('job', {}, { delay: 200 });
  await queues[30].add('job', {}, { delay: 3600000 });
  say('woken by', (await waiting)[0]);
  await Promise.all(queues.map((q) => q.close()));
}

async function main() {
  const redis = new Redis(connection);
  for (const part of [manual, order, watch]) await part(redis);
  await redis.quit();
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});

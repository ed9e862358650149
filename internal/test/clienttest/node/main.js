// Plays the program of internal/test/clienttest with ioredis and prints what it sees:
//
//   node main.js host:port
'use strict';

const Redis = require('ioredis');
const [host, port] = process.argv[2].split(':');
const client = () => new Redis({ host, port: Number(port), retryStrategy: null });
const say = (name, value) => console.log(`${name}: ${value === null ? 'nil' : value}`);

// about is a TTL of which a busy machine may have spent a little.
const about = (left, whole) => (left > whole / 2 && left <= whole ? whole : left);

async function strings(c) {
  say('ping', await c.ping());
  say('set', await c.set('greeting', 'hello'));
  say('get', await c.get('greeting'));
  say('get missing', await c.get('missing'));
  say('set nx', await c.set('greeting', 'other', 'NX'));
  say('set get', await c.set('greeting', 'hello', 'GET'));
  const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  await c.set('binary', all);
  const back = await c.getBuffer('binary');
  say('binary', `${back.length} bytes, ${back.equals(all) ? 'the same' : 'different'}`);
  await c.set('big', 'x'.repeat(1 << 20));
  say('big', `${(await c.get('big')).length} bytes`);
}

async function expiry(c) {
  await c.set('k', 'v', 'EX', 100);
  say('set ex', about(await c.ttl('k'), 100));
  say('expire', await c.expire('k', 50));
  say('ttl', about(await c.ttl('k'), 50));
  say('expire missing', await c.expire('missing', 50));
  say('persist', await c.persist('k'));
  say('ttl without', await c.ttl('k'));
  say('ttl missing', await c.ttl('missing'));
  say('getex', await c.getex('k', 'PX', 60000));
  const left = await c.pttl('k');
  say('pttl in range', left > 50000 && left <= 60000 ? 'yes' : left);
}

async function numbersAndKeys(c) {
  await c.mset('m1', 1, 'm2', 2);
  say('mget', (await c.mget('m1', 'm2', 'm3')).map((v) => v ?? 'nil').join(' '));
  await c.set('n', 42);
  say('incr', await c.incr('n'));
  say('incrby', await c.incrby('n', 10));
  await c.set('f', '10.5');
  say('incrbyfloat', await c.incrbyfloat('f', 0.1));
  say('append', await c.append('greeting', ' world'));
  say('getrange', await c.getrange('greeting', 0, 4));
  say('del', await c.del('greeting'));
  say('exists', await c.exists('greeting'));
}

async function scan(c) {
  const pairs = [];
  for (let i = 0; i < 1000; i++) pairs.push(`item:${i}`, i);
  await c.mset(...pairs);
  for (const [name, options] of [['scan', {}], ['scan type', { type: 'string' }]]) {
    const seen = new Set();
    for await (const keys of c.scanStream({ match: 'item:*', count: 100, ...options })) {
      keys.forEach((k) => seen.add(k));
    }
    say(name, `${seen.size} of 1000`);
  }
}

async function errors(c) {
  await c.set('word', 'abc');
  say('wrong type', await c.incr('word').catch((e) => e.message));
  say('unknown command', await c.call('NOSUCHCOMMAND').catch((e) => e.message.slice(0, 19)));
}

async function pipelines(c) {
  const p = c.pipeline().set('count', 0);
  for (let i = 0; i < 100; i++) p.incr('count');
  const replies = await p.get('count').exec();
  say('pipeline', `${replies.length} replies, the last ${replies.at(-1)[1]}`);
  const mixed = await c.pipeline().set('a', 1).incr('word').set('b', 2).exec();
  say('pipeline error', mixed.map(([e, v]) => (e ? e.message : v)).join(', '));
}

async function transactions(c) {
  const replies = await c.multi().set('t', 0).incr('t').incr('t').get('t').exec();
  say('multi', replies.map(([, v]) => v).join(' '));
  const other = client();
  await c.watch('t');
  await other.set('t', 'other');
  say('watch', await c.multi().set('t', 'mine').exec());
  await other.quit();
  await c.multi({ pipeline: false });
  await c.set('never', 1);
  await c.discard();
  say('discard', await c.get('never'));
}

async function events(c) {
  await c.config('SET', 'notify-keyspace-events', 'KEA');
  const sub = client();
  await sub.psubscribe('__key*@0__:*');
  const expired = new Promise((done) => {
    sub.on('pmessage', (_, channel, message) => {
      const [kind, name] = channel.slice(2).split('@0__:');
      const event = kind === 'keyspace' ? message : name;
      say('event', `${kind} ${event}`);
      if (kind === 'keyevent' && event === 'expired') done();
    });
  });
  await c.set('fleeting', 'v', 'PX', 50);
  await expired;
  await sub.quit();
  say('expired', await c.exists('fleeting'));
}

async function main() {
  const c = client();
  for (const part of [strings, expiry, numbersAndKeys, scan, errors, pipelines, transactions, events]) await part(c);
  await c.quit();
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});

// Plays the program for clusters of internal/test/clienttest with ioredis and prints
// what it sees:
//
//   node cluster.js host:port
'use strict';

const Redis = require('ioredis');
const [host, port] = process.argv[2].split(':');
const say = (name, value) => console.log(`${name}: ${value}`);

async function main() {
  const c = new Redis.Cluster([{ host, port: Number(port) }], { clusterRetryStrategy: null, shardedSubscribers: true });
  say('set', await c.set('k', 'v'));
  say('get', await c.get('k'));
  say('mset', await c.mset('{a}1', 1, '{a}2', 2));
  say('mget', (await c.mget('{a}1', '{a}2', '{a}3')).map((v) => v ?? 'nil').join(' '));
  const replies = await Promise.all(Array.from({ length: 100 }, (_, i) => c.set(`key:${i}`, i)));
  say('other slots', replies.filter((r) => r === 'OK').length);
  say('cross slot', await c.mset('a', 1, 'b', 2).catch((e) => e.message));
  say('multi', (await c.multi().set('{t}n', 1).incr('{t}n').exec()).map(([, v]) => v).join(' '));
  const heard = new Promise((done) => c.on('smessage', (channel, message) => done(`${channel} ${message}`)));
  await c.ssubscribe('news');
  await c.spublish('news', 'hello');
  say('ssubscribe', await heard);
  c.disconnect();
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});

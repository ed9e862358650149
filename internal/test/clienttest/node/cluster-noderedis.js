// Plays the program for clusters of internal/test/clienttest with node-redis and prints
// what it sees:
//
//   node cluster-noderedis.js host:port
'use strict';

const { createCluster } = require('redis');
const say = (name, value) => console.log(`${name}: ${value}`);

async function main() {
  const c = createCluster({ rootNodes: [{ url: `redis://${process.argv[2]}` }] });
  await c.connect();
  say('set', await c.set('k', 'v'));
  say('get', await c.get('k'));
  say('mset', await c.mSet([['{a}1', '1'], ['{a}2', '2']]));
  say('mget', (await c.mGet(['{a}1', '{a}2', '{a}3'])).map((v) => v ?? 'nil').join(' '));
  const replies = await Promise.all(Array.from({ length: 100 }, (_, i) => c.set(`key:${i}`, String(i))));
  say('other slots', replies.filter((r) => r === 'OK').length);
  say('cross slot', await c.mSet([['a', '1'], ['b', '2']]).catch((e) => e.message));
  say('multi', (await c.multi().set('{t}n', 1).incr('{t}n').exec()).join(' '));
  let hear;
  const heard = new Promise((done) => (hear = done));
  await c.sSubscribe('news', (message, channel) => hear(`${channel} ${message}`));
  await c.sPublish('news', 'hello');
  say('ssubscribe', await heard);
  await c.close();
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});

// Plays the program on data types of internal/test/clienttest with node-redis, over
// RESP3 if the second argument is 3:
//
//   node containers-noderedis.js host:port [2 | 3]
'use strict';

const { createClient, RESP_TYPES } = require('redis');
const options = { url: `redis://${process.argv[2]}`, RESP: Number(process.argv[3] || 2) };
const say = (name, value) => console.log(`${name}: ${value}`);
const pairs = (items) => items.map((i) => `${i.value}=${i.score}`).join(' ');

async function main() {
  const c = await createClient(options).connect();
  say('hset', await c.hSet('user:1', { name: 'Ada', age: '36' }));
  say('hgetall', Object.entries(await c.hGetAll('user:1')).sort().map(([k, v]) => `${k}=${v}`).join(' '));
  say('hincrby', await c.hIncrBy('user:1', 'age', 1));
  say('rpush', await c.rPush('jobs', ['a', 'b', 'c']));
  say('lrange', (await c.lRange('jobs', 0, -1)).join(' '));
  say('lmove', await c.lMove('jobs', 'done', 'LEFT', 'RIGHT'));
  const other = await createClient(options).connect();
  const waiting = other.blPop('queue', 10);
  while (!(await c.info('clients')).includes('blocked_clients:1')) await null;
  await c.rPush('queue', 'x');
  const popped = await waiting;
  say('blpop', `${popped.key} ${popped.element}`);
  await other.close();
  say('sadd', await c.sAdd('tags', ['red', 'green', 'blue']));
  say('smembers', [...(await c.sMembers('tags'))].sort().join(' '));
  await c.sAdd('others', ['red', 'blue', 'black']);
  say('sinter', [...(await c.sInter(['tags', 'others']))].sort().join(' '));
  say('zadd', await c.zAdd('board', [{ score: 10, value: 'ann' }, { score: 20.5, value: 'bob' }, { score: 15, value: 'cat' }]));
  say('zrange', pairs(await c.zRangeWithScores('board', 0, -1)));
  say('zrank', await c.zRank('board', 'bob'));
  say('zpopmin', pairs([await c.zPopMin('board')]));
  say('xadd', await c.xAdd('log', '1-1', { k: 'v' }));
  say('xlen', await c.xLen('log'));
  await c.xGroupCreate('log', 'g', '0');
  // node-redis 5 reads streams over RESP2 only.
  const reply = await c.sendCommand(['XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', 'log', '>']);
  const [[entry, fields]] = options.RESP === 3 ? reply.log : reply[0][1];
  say('xreadgroup', `${entry} ${fields[0]}=${fields[1]}`);
  say('xpending', (await c.xPending('log', 'g')).pending);
  say('xack', await c.xAck('log', 'g', '1-1'));
  await c.pfAdd('seen', ['a', 'b', 'c', 'a']);
  say('pfcount', await c.pfCount('seen'));
  await c.geoAdd('Sicily', [{ longitude: 13.361389, latitude: 38.115556, member: 'Palermo' }, { longitude: 15.087269, latitude: 37.502669, member: 'Catania' }]);
  say('geodist', await c.geoDist('Sicily', 'Palermo', 'Catania', 'km'));
  say('geosearch', (await c.geoSearch('Sicily', { longitude: 13, latitude: 38 }, { radius: 300, unit: 'km' }, { SORT: 'ASC' })).join(' '));
  await c.rPush('nums', ['3', '1', '2']);
  say('sort', (await c.sort('nums')).join(' '));
  const raw = c.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  await c.restore('user:2', 0, await raw.dump('user:1'));
  say('restore', await c.hGet('user:2', 'name'));
  say('wrong type', await c.lPush('user:1', 'x').catch((e) => e.message));
  await c.close();
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});

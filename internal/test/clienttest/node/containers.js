// Plays the program on data types of internal/test/clienttest with ioredis and prints
// what it sees:
//
//   node containers.js host:port
'use strict';

const Redis = require('ioredis');
const [host, port] = process.argv[2].split(':');
const client = () => new Redis({ host, port: Number(port), retryStrategy: null });
const say = (name, value) => console.log(`${name}: ${value}`);
const pairs = (flat) => flat.flatMap((v, i) => (i % 2 ? [] : [`${v}=${flat[i + 1]}`])).join(' ');

async function main() {
  const c = client();
  say('hset', await c.hset('user:1', { name: 'Ada', age: '36' }));
  say('hgetall', pairs(Object.entries(await c.hgetall('user:1')).sort().flat()));
  say('hincrby', await c.hincrby('user:1', 'age', 1));
  say('rpush', await c.rpush('jobs', 'a', 'b', 'c'));
  say('lrange', (await c.lrange('jobs', 0, -1)).join(' '));
  say('lmove', await c.lmove('jobs', 'done', 'LEFT', 'RIGHT'));
  const other = client();
  const waiting = other.blpop('queue', 10);
  while (!(await c.info('clients')).includes('blocked_clients:1')) await null;
  await c.rpush('queue', 'x');
  say('blpop', (await waiting).join(' '));
  await other.quit();
  say('sadd', await c.sadd('tags', 'red', 'green', 'blue'));
  say('smembers', (await c.smembers('tags')).sort().join(' '));
  await c.sadd('others', 'red', 'blue', 'black');
  say('sinter', (await c.sinter('tags', 'others')).sort().join(' '));
  say('zadd', await c.zadd('board', 10, 'ann', 20.5, 'bob', 15, 'cat'));
  say('zrange', pairs(await c.zrange('board', 0, -1, 'WITHSCORES')));
  say('zrank', await c.zrank('board', 'bob'));
  say('zpopmin', pairs(await c.zpopmin('board')));
  say('xadd', await c.xadd('log', '1-1', 'k', 'v'));
  say('xlen', await c.xlen('log'));
  await c.xgroup('CREATE', 'log', 'g', '0');
  const [[, [[entry, fields]]]] = await c.xreadgroup('GROUP', 'g', 'c', 'STREAMS', 'log', '>');
  say('xreadgroup', `${entry} ${pairs(fields)}`);
  say('xpending', (await c.xpending('log', 'g'))[0]);
  say('xack', await c.xack('log', 'g', '1-1'));
  await c.pfadd('seen', 'a', 'b', 'c', 'a');
  say('pfcount', await c.pfcount('seen'));
  await c.geoadd('Sicily', 13.361389, 38.115556, 'Palermo', 15.087269, 37.502669, 'Catania');
  say('geodist', await c.geodist('Sicily', 'Palermo', 'Catania', 'km'));
  say('geosearch', (await c.geosearch('Sicily', 'FROMLONLAT', 13, 38, 'BYRADIUS', 300, 'km', 'ASC')).join(' '));
  await c.rpush('nums', 3, 1, 2);
  say('sort', (await c.sort('nums')).join(' '));
  await c.restore('user:2', 0, await c.dumpBuffer('user:1'));
  say('restore', await c.hget('user:2', 'name'));
  say('wrong type', await c.lpush('user:1', 'x').catch((e) => e.message));
  await c.quit();
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});

// Plays the program on scripts of internal/test/clienttest with ioredis: scripts are
// commands that it defines. It prints what it sees:
//
//   node scripts.js host:port
'use strict';

const fs = require('fs');
const path = require('path');
const Redis = require('ioredis');
const [host, port] = process.argv[2].split(':');
const client = () => new Redis({ host, port: Number(port), retryStrategy: null });
const file = (name) => fs.readFileSync(path.join(__dirname, '..', name), 'utf8');
const show = (v) => (Array.isArray(v) ? `[${v.map(show).join(' ')}]` : v ?? 'nil');
const say = (name, value) => console.log(`${name}: ${show(value)}`);
const orError = (promise) => promise.catch((e) => e.message);
const words = (text) => text.split(' ').filter(Boolean);

async function scripts(c) {
  for (const section of file('scripts.lua').split('\n--- ').slice(1)) {
    const [head, ...lines] = section.split('\n');
    const [front, args] = head.split('/');
    const [name, ...keys] = words(front);
    const lua = lines.join('\n').trim();
    const rest = [...keys, ...words(args)];
    if (name.startsWith('ro-')) {
      say(name, await orError(c.eval_ro(lua, keys.length, ...rest)));
      continue;
    }
    const command = `run-${name}`; // c has members of its own, such as status
    c.defineCommand(command, { numberOfKeys: keys.length, lua });
    say(name, await orError(c[command](...rest)));
  }
}

async function cached(c) {
  const lua = "return redis.call('INCR', KEYS[1])";
  c.defineCommand('bump', { numberOfKeys: 1, lua });
  say('loaded', await c.bump('n'));
  say('flushed', await c.script('FLUSH'));
  say('loaded again', await c.bump('n'));
  const sha = await c.script('LOAD', lua);
  say('sha', sha);
  say('exists', await c.script('EXISTS', sha, sha.replaceAll('a', 'b')));
  say('noscript', await orError(c.evalsha(sha.replaceAll('a', 'b'), 0)));
  const many = await c.pipeline().bump('n').bump('n').bump('n').exec();
  say('pipeline', many.map(([, v]) => v));
  const both = await c.multi().set('n', 10).bump('n').exec();
  say('multi', both.map(([, v]) => v));
}

async function functions(c) {
  const library = file('functions.lua');
  say('load', await c.function('LOAD', library));
  say('load again', await orError(c.function('LOAD', library)));
  say('fcall', await c.fcall('put', 1, 'shelf', 'a', 'b'));
  say('fcall_ro', await c.fcall_ro('peek', 1, 'shelf'));
  say('fcall_ro writes', await orError(c.fcall_ro('put', 1, 'shelf', 'c')));
  const dump = await c.functionBuffer('DUMP');
  say('flush', await c.function('FLUSH'));
  say('gone', await orError(c.fcall('peek', 1, 'shelf')));
  say('restore', await c.function('RESTORE', dump));
  say('back', await c.fcall('peek', 1, 'shelf'));
  const [library1] = await c.function('LIST');
  say('list', library1[1]);
}

// busy runs what never ends, on another connection, until it is killed.
async function busy(c, name, run, kill) {
  await c.config('SET', 'busy-reply-threshold', 1);
  const other = client();
  let over = false;
  const ended = orError(run(other)).finally(() => { over = true; });
  let said;
  do said = await orError(c.ping()); while (said === 'PONG' && !over);
  say(`${name} busy`, said);
  say(`${name} killed`, await kill());
  say(`${name} ended`, await ended);
  say(`${name} none`, await orError(kill()));
  await other.quit();
}

// lock takes a lock as lock libraries do: its holder has its token.
async function lock(c) {
  c.defineCommand('release', { numberOfKeys: 1, lua: "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])" });
  c.defineCommand('extend', { numberOfKeys: 1, lua: "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) + ARGV[2])" });
  const yes = (v) => (v ? 'yes' : 'no');
  const acquire = async (token) => yes(await c.set('lock', token, 'PX', 60000, 'NX'));
  say('acquire', await acquire('mine'));
  say('acquire held', await acquire('theirs'));
  say('extend', yes(await c.extend('lock', 'mine', 60000)));
  const left = await c.pttl('lock');
  say('extended', yes(left > 60000 && left <= 120000));
  say('extend of others', yes(await c.extend('lock', 'theirs', 60000)));
  say('release of others', yes(await c.release('lock', 'theirs')));
  say('release', yes(await c.release('lock', 'mine')));
  say('acquire free', await acquire('theirs'));
}

async function main() {
  const c = client();
  await scripts(c);
  await cached(c);
  await functions(c);
  await busy(c, 'script', (o) => o.eval('while true do end', 0), () => c.script('KILL'));
  await busy(c, 'function', (o) => o.fcall('endless', 0), () => c.function('KILL'));
  await lock(c);
  await c.quit();
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});

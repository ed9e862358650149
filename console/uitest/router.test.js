import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
const kept = new Map();
Object.assign(globalThis, {
  location: { hash: '' },
  sessionStorage: { getItem: (name) => kept.get(name) ?? null, setItem: (name, v) => kept.set(name, v) },
});
const { db, go, link, route } = await import('../ui/router.js');

test('a route comes back from its link', () => {
  for (const params of [{}, { db: 2, match: 'a b&c=*' }, { k: 'a2U', db: 0 }]) {
    location.hash = link('keys', params);
    const all = Object.fromEntries(Object.entries(params).map(([name, v]) => [name, String(v)]));
    assert.deepEqual({ ...route(), params: Object.fromEntries(route().params) }, { name: 'keys', params: all });
  }
});

test('a hash that names no screen leads to the first one', () => {
  for (const hash of ['', '#', '#/', '#/nothing?db=1', '#/__proto__', '#/constructor']) {
    location.hash = hash;
    assert.equal(route().name, 'now', hash);
  }
});

test('the database is that of the route, else the one before; 0 where there is none', () => {
  for (const [hash, before, want] of [
    ['#/keys?db=3', '1', 3],
    ['#/keys', '1', 1],
    ['#/keys', '', 0],
    ['#/keys?db=', '1', 0],
    ['#/keys?db=x', '1', 0],
    ['#/keys?db=-1', '1', 0],
    ['#/keys?db=1.5', '1', 0],
    ['#/keys?db=16', '1', 0],
  ]) {
    location.hash = hash;
    kept.set('ebb.db', before);
    assert.equal(db(), want, hash);
  }
});

test('go sets the hash', () => {
  go('locks', { db: 1 });
  assert.equal(location.hash, '#/locks?db=1');
});

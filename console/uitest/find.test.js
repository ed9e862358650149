import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
Object.assign(globalThis, { addEventListener() {}, localStorage: { getItem: () => null, setItem() {} } });
const { commandsWith } = await import('../ui/find.js');
const all = ['CONFIG GET', 'EXPIRY NEXT', 'EXPIRE', 'EXPIREAT', 'GET', 'HEXPIRE', 'PEXPIRE'].map((name) => ({ name }));
const names = (s) => commandsWith(all, s).map((c) => c.name);

test('commands are found by a part of their names in any case', () => {
  assert.deepEqual(names('expir'), ['EXPIRE', 'EXPIREAT', 'HEXPIRE', 'PEXPIRE', 'EXPIRY NEXT']);
  assert.deepEqual(names('config  g'), ['CONFIG GET']);
  assert.deepEqual(names('GET'), ['GET', 'CONFIG GET']);
});

test('a text that no name has finds nothing', () => {
  assert.deepEqual(names('cart'), []);
  assert.deepEqual(names(' '), []);
});

import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
/** What the browser stores. @type {Map<string, string>} */
const stored = new Map();
Object.assign(globalThis, {
  addEventListener() {},
  localStorage: { getItem: (k) => stored.get(k) ?? null, setItem: (k, v) => stored.set(k, v) },
});
const { ApiError } = await import('../ui/lib/api.js');
const { History, isKept } = await import('../ui/screens/shell.js');

test('a line that the server has not read is not kept: it may have a password', () => {
  const kept = (status, body) => isKept(new ApiError(status, { error: 'x', ...body }, 0));
  for (const status of [0, 400, 401, 421, 429, 500, 503]) assert.equal(kept(status, {}), false, String(status));
  assert.equal(kept(403, {}), false);
  assert.equal(kept(403, { code: 'DENIED' }), false);
  assert.equal(kept(403, { code: 'NOPERM' }), true);
  assert.equal(kept(403, { code: 'NOPERM', secret: true }), false);
  assert.equal(kept(409, { confirm: 'k' }), true);
});

test('a history that a logout in another tab has removed does not come back', () => {
  const tab = new History({ t: 'ann' }),
    other = new History({ t: 'ann' });
  tab.keep('GET customer:private');
  other.keep('PING');
  assert.deepEqual(other.lines, ['GET customer:private', 'PING']);
  stored.clear();
  tab.keep('TIME');
  assert.deepEqual([...stored.values()], ['["TIME"]']);
});

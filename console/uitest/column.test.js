import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
const column = await import('../ui/lib/column.js');

test('what a column sorts by is its value, not its words', () => {
  const size = column.bytes('size', 'Size', (r) => r.n);
  assert.equal(size.value({ n: 2048 }), 2048);
  assert.equal(size.num, true);
  assert.notEqual(String(size.cell({ n: 2048 })), '2048');
});

test('a lifetime sorts by its end, one without an end last', () => {
  const { value } = column.lifetime(),
    at = 1e12;
  assert.equal(value({ pttl: 500, at }), at + 500);
  assert.equal(value({ pttl: -1, at }), Infinity);
  assert.equal(value({ at }), Infinity);
  assert.ok(value({ pttl: 500, at }) < value({ pttl: 1, at: at + 1000 }));
});

test('rows of keys with the same bytes are one row', () => {
  assert.equal(column.rowKey({ k: { t: 'a' } }), column.rowKey({ k: { t: 'a' } }));
  assert.notEqual(column.rowKey({ k: { t: 'a' } }), column.rowKey({ k: { t: 'b' } }));
});

import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
const { mapTables } = await import('../ui/lib/replies.js');

test('a map, and a list of maps, are tables', () => {
  const inner = [[{ t: 'n' }, { i: '9007199254740993' }]],
    el = mapTables({
      map: [
        [{ t: 'a' }, [null, true, { d: 1.5 }]],
        [{ t: 'b' }, { map: inner }],
      ],
    });
  assert.equal(el.textContent, 'a(nil)true1.5bn9007199254740993');
  assert.equal(mapTables([{ map: inner }, { map: inner }]).children.length, 2);
});

test('other replies are text', () => {
  for (const reply of [null, true, { t: 'x' }, [], [{ map: [] }, { t: 'x' }], { set: [] }]) assert.equal(mapTables(reply), null);
  assert.equal(mapTables({ map: Array.from({ length: 1001 }, () => [null, null]) }), null);
});

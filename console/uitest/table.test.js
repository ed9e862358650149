import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
const { firstRows, sorted, table } = await import('../ui/lib/table.js');
const letters = (el) => el.inner.children[1].children.map((tr) => tr.children[0].textContent).join('');

test('rows without a value stand last in both directions', () => {
  const rows = [{ n: 2 }, { n: null }, { n: 1 }, {}, { n: 3 }];
  const by = (direction) => sorted(rows, (r) => r.n, direction).map((r) => r.n ?? '-');
  assert.deepEqual(by(1), [1, 2, 3, '-', '-']);
  assert.deepEqual(by(-1), [3, 2, 1, '-', '-']);
});

test('equal rows keep their order', () => {
  const rows = [...'abc'].map((k) => ({ k, n: 1 }));
  assert.deepEqual(
    sorted(rows, (r) => r.n, -1),
    rows,
  );
});

test('more rows are shown until five of them are alive', () => {
  const rows = Array.from({ length: 30 }, (_, i) => i);
  assert.equal(firstRows(rows, 10, () => true).length, 10);
  assert.equal(firstRows(rows, 10, (i) => i >= 12).length, 17);
  assert.equal(firstRows(rows, 10, () => false).length, 30);
});

test('a click on a head sorts, the next one turns the order', () => {
  const asked = [];
  const el = table({
    columns: [
      { id: 'k', label: 'k', value: (r) => r.k },
      { id: 'n', label: 'n', num: true, value: (r) => r.n },
    ],
    key: (r) => r.k,
    sorted: (by) => asked.push(by),
    rows: [
      { k: 'b', n: 1 },
      { k: 'a', n: 2 },
      { k: 'c', n: 0 },
    ],
  });
  const [k, n] = el.inner.children[0].children[0].children.map((th) => th.children[0]);
  assert.equal(letters(el), 'bac');
  k.dispatchEvent(new Event('click'));
  assert.equal(letters(el), 'abc');
  n.dispatchEvent(new Event('click'));
  assert.equal(letters(el), 'abc'); // figures: the largest first
  n.dispatchEvent(new Event('click'));
  assert.equal(letters(el), 'cba');
  assert.deepEqual(asked, ['k', '-n', 'n']);
});

test('a phone shows the column by which the table is sorted at first', () => {
  const columns = ['k', 'held', 'mode'].map((id) => ({ id, label: id, minor: id !== 'k', value: (r) => r[id] })),
    el = table({ columns, key: (r) => r.k, sort: ['held', -1], rows: [{ k: 'a', held: 1, mode: 'x' }] }),
    minor = (row) => row.children.filter((cell) => /minor/.test(cell.getAttribute('class'))).length;
  assert.equal(minor(el.inner.children[0].children[0]), 1);
  assert.equal(minor(el.inner.children[1].children[0]), 1);
});

test('rows that are chosen stay chosen, and rows that go are not', () => {
  let chosen = [];
  const el = table({
    columns: [{ id: 'k', label: 'k', value: (r) => r.k }],
    key: (r) => r.k,
    select: (rows) => (chosen = rows.map((r) => r.k)),
    rows: [{ k: 'a' }, { k: 'b' }],
  });
  el.choose(el.rows()[1]);
  assert.deepEqual(chosen, ['b']);
  el.set([{ k: 'b', n: 1 }, { k: 'c' }]);
  assert.deepEqual(chosen, ['b']);
  el.set([{ k: 'c' }]);
  assert.deepEqual(chosen, []);
  el.choose(el.rows()[0]);
  el.clear();
  assert.deepEqual(chosen, []);
});

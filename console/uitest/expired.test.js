import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
globalThis.ResizeObserver = class {
  observe() {}
};
globalThis.addEventListener = () => {};
const { expiredCard } = await import('../ui/cards/expired.js');

test('what has expired stands in the order of time, whichever way told of it first', (ctx) => {
  ctx.mock.timers.enable({ apis: ['setTimeout'] });
  let tell;
  const card = expiredCard({ db: 0, onEvent: (topic, of, fn) => (tell = fn) }, '');
  for (const [at, k] of [
    [1e12 + 453, 'a'],
    [1e12 + 274, 'b'],
    [1e12 + 999, 'c'],
    [1e12 + 777, 'd'],
  ])
    tell({ at, level: 'key', k: { t: k }, item: null, lag: -1 }, 'expired');
  ctx.mock.timers.tick(200);
  const rows = card.el.children.at(-2).children[0].children[0].children;
  assert.equal(rows.map((tr) => tr.children[2].textContent).join(''), 'cdab');
});

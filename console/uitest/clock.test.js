import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
const { clock, sync } = await import('../ui/lib/api.js');
const here = () => performance.timeOrigin + performance.now();
/** Asserts how far the clock is ahead of the browser's, ms. */
function isAhead(ms) {
  const by = clock() - here();
  assert.ok(Math.abs(by - ms) < 10, `${by} ms, want ${ms}`);
}

test('the clock is that of the answer with the shortest way', () => {
  sync(here() + 10_000, 40);
  isAhead(10_020);
  sync(here() + 10_030, 60); // a longer way, and within what both may be wrong by
  isAhead(10_020);
  sync(here() + 9_980, 10);
  isAhead(9_985);
});

test('an answer that shows a jump counts, whatever its way', () => {
  sync(here() + 3_600_000, 300);
  isAhead(3_600_150);
});

import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
const { ApiError } = await import('../ui/lib/api.js');
const { poll } = await import('../ui/lib/poll.js');
const settled = () => new Promise((done) => setImmediate(done));

/** A screen whose read is one of results at each call; an Error is thrown. */
function screen(t, results) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const seen = { reads: 0, failures: [], close() {} };
  const ctx = { fail: (e) => seen.failures.push(e.message), onClose: (fn) => (seen.close = fn) };
  seen.again = poll(ctx, 1000, async () => {
    const result = results[seen.reads++];
    if (result) throw result;
  });
  seen.pass = async (ms) => {
    await settled();
    t.mock.timers.tick(ms);
    await settled();
  };
  return seen;
}

test('it reads now, and again a while after each read has ended', async (t) => {
  const seen = screen(t, []);
  assert.equal(seen.reads, 1);
  await seen.pass(500);
  assert.equal(seen.reads, 1);
  await seen.pass(1000);
  assert.equal(seen.reads, 2);
  seen.close();
  await seen.pass(5000);
  assert.equal(seen.reads, 2);
});

test('a slow read is followed by a pause of at most 15 s', async (t) => {
  for (const [took, pause] of [
    [500, 5000],
    [20000, 15000],
  ]) {
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    const seen = screen(t, []);
    now = took;
    await seen.pass(pause - 1);
    assert.equal(seen.reads, 1, `read took ${took} ms`);
    await seen.pass(1);
    assert.equal(seen.reads, 2, `read took ${took} ms`);
    seen.close();
    t.mock.timers.reset();
    t.mock.restoreAll();
  }
});

test('a hidden page reads nothing', async (t) => {
  document.hidden = true;
  const seen = screen(t, []);
  await seen.pass(1000);
  assert.equal(seen.reads, 0);
  document.hidden = false;
  await seen.pass(1000);
  assert.equal(seen.reads, 1);
  seen.close();
});

test('an error is told once, until a read succeeds', async (t) => {
  const wrong = new Error('wrong');
  const seen = screen(t, [wrong, wrong, null, wrong]);
  for (let i = 0; i < 3; i++) await seen.pass(1000);
  assert.deepEqual(seen.failures, ['wrong', 'wrong']);
  seen.close();
});

test('an error that passes is not told, and hides no other', async (t) => {
  const seen = screen(t, [new ApiError(503, { error: 'busy' }, 0), new Error('wrong')]);
  await seen.pass(0);
  assert.deepEqual(seen.failures, []);
  await seen.pass(1000);
  assert.deepEqual(seen.failures, ['wrong']);
  assert.equal(seen.reads, 2);
  seen.close();
});

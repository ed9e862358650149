import test from 'node:test';
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { install } from './dom.js';

install();
/** What the page does at an event of the window, by the event's name. */
const handlers = {};
Object.assign(globalThis, {
  addEventListener: (name, fn) => (handlers[name] = fn),
  localStorage: { getItem: () => null, setItem() {} },
  fetch: async (path) => ({ json: async () => JSON.parse(await readFile(new URL('../ui/' + path, import.meta.url), 'utf8')) }),
});
const { setLang } = await import('../ui/lib/i18n.js');
const { ApiError, clock, sync } = await import('../ui/lib/api.js');
const errors = await import('../ui/lib/errors.js');
await setLang('en');
errors.start();

const messages = () => document.getElementById('toasts')?.children.map((el) => el.firstElementChild.textContent) ?? [];

/** A promise that nothing awaits is rejected. Returns whether the browser's log leaves it out. */
function reject(reason) {
  let isHandled = false;
  handlers.unhandledrejection({ reason, preventDefault: () => (isHandled = true) });
  return isHandled;
}

test('a request that fails and that nothing awaits is a message, once', () => {
  const down = new ApiError(0, { error: 'The server is not responding.' }, 0);
  assert.equal(reject(down), true);
  assert.deepEqual(messages(), ['The server is not responding.']);
  reject(down);
  assert.equal(messages().length, 1);
  reject(new ApiError(403, { error: 'NOPERM', command: 'DUMP', rule: '+dump' }, 0));
  assert.equal(messages().length, 2);
  assert.match(messages()[1], /permission to run DUMP.*\+dump/);
});

test('a mistake of the pages is a message, and stays in the log of the browser', () => {
  assert.equal(reject(new TypeError('x is not a function')), false);
  assert.equal(messages().at(-1), 'The action failed: x is not a function');
  handlers.error({ error: new Error('thrown by a handler') });
  assert.equal(messages().at(-1), 'The action failed: thrown by a handler');
});

test('the end of a screen and a missing login are not messages', () => {
  const before = messages().length;
  assert.equal(reject(new DOMException('aborted', 'AbortError')), true);
  assert.equal(reject(new ApiError(401, { error: 'log in', login: true }, 0)), true);
  handlers.error({ error: null }); // a picture that did not load
  assert.equal(messages().length, before);
});

test('an answer sets the clock right, and one with a longer way only where the clock is wrong', () => {
  const near = (want) => assert.ok(Math.abs(clock() - want) < 40, `${clock()} is not ${want}`);
  sync(1e12, 10);
  near(1e12 + 5);
  sync(1e12 - 20, 100); // it was on its way for longer than the other
  near(1e12 + 5);
  sync(1e12 + 7.2e6, 100); // the computer has slept for two hours
  near(1e12 + 7.2e6 + 50);
});

test('errors that pass lead to another try', () => {
  const passes = (status, code) => new ApiError(status, { error: 'x', code }, 0).passing;
  for (const code of ['BUSY', 'LOADING', 'MASTERDOWN']) assert.equal(passes(503, code), true, code);
  for (const status of [0, 421, 429, 502, 503, 504]) assert.equal(passes(status, ''), true, String(status));
  for (const status of [400, 403, 500]) assert.equal(passes(status, ''), false, String(status));
  for (const code of ['NOPERM', 'OOM', 'RESTING']) assert.equal(passes(503, code), false, code);
});

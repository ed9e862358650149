import test from 'node:test';
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { install } from './dom.js';

install();
Object.defineProperty(globalThis, 'localStorage', { value: { getItem: () => null, setItem() {} } });
/** What the API answers to requests for keys, and what follows each answer. */
let pages = [],
  answered = () => {};
const answer = (body) => ({ ok: true, status: 200, headers: new Map(), json: async () => body });
globalThis.fetch = async (path) => {
  if (path.startsWith('i18n/')) return answer(JSON.parse(await readFile(new URL('../ui/' + path, import.meta.url), 'utf8')));
  const page = pages.shift();
  answered();
  return answer(page);
};
const { Counter } = await import('../ui/lib/bulk-actions.js');
await (await import('../ui/lib/i18n.js')).setLang('en');

/** A page of n keys; left: how many pages follow. */
const page = (n, left) => ({ rows: Array.from({ length: n }, () => ({})), cursor: String(left), done: !left, looked: 500, total: 1500 });
const many = { db: 0, verb: 'del', match: 'coupon:*' };

test('a count says how far it is, and at its end how many keys match', async () => {
  const seen = [];
  pages = [page(200, 2), page(0, 1), page(41, 0)];
  answered = () => seen.push(counter.words.textContent);
  const counter = new Counter(many);
  await counter.run();
  assert.deepEqual(seen.slice(1), [
    'Counting: 200 keys so far, 33% of 1,500 keys scanned.',
    'Counting: 200 keys so far, 67% of 1,500 keys scanned.',
  ]);
  assert.equal(counter.words.textContent, '241 keys.');
  assert.equal(counter.stop.hidden, true);
});

test('a count that is stopped says what it has found', async () => {
  pages = [page(200, 2), page(100, 1), page(41, 0)];
  answered = () => pages.length === 1 && counter.stop.dispatchEvent(new Event('click'));
  const counter = new Counter(many);
  await counter.run();
  assert.equal(counter.words.textContent, 'At least 300 keys: 67% of 1,500 keys scanned.');
  assert.equal(pages.length, 1);
});

test('keys that were chosen need no count', () => {
  assert.equal(new Counter({ ...many, keys: [{ k: { t: 'a' } }] }).words.textContent, '1 key.');
});

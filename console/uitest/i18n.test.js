import test from 'node:test';
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { install } from './dom.js';

install();
const stored = new Map();
Object.defineProperty(globalThis, 'localStorage', {
  value: { getItem: (k) => stored.get(k) ?? null, setItem: (k, v) => stored.set(k, v) },
});
globalThis.fetch = async (path) => ({ json: async () => JSON.parse(await readFile(new URL('../ui/' + path, import.meta.url), 'utf8')) });
const { asSpan, brief, date, has, interval, lang, meanings, micros, num, parseSpan, percent, setLang, size, span, t } =
  await import('../ui/lib/i18n.js');
await setLang('en');

test('a span in words is read', () => {
  const spans = {
    '90 s': 90e3,
    '5m': 3e5,
    '1h': 36e5,
    '250ms': 250,
    90: 90e3,
    '1h 30m': 54e5,
    '1h30m': 54e5,
    '1.5 s': 1500,
    '2 W': 12096e5,
  };
  for (const [s, ms] of Object.entries(spans)) assert.equal(parseSpan(s), ms, s);
  for (const s of ['', 'x', '5 years', '1h 30', '-5s', '99999999d']) assert.ok(Number.isNaN(parseSpan(s)), s);
});

test('a span that a form shows is read as the same span', () => {
  for (const ms of [1, 250, 1500, 9999, 1e4, 9e4, 3e5, 36e5, 864e5, 123456e3, 6649e3]) assert.equal(parseSpan(asSpan(ms)), ms);
  assert.equal(asSpan(10001), '11s'); // never shorter
  assert.equal(asSpan(6649e3), '1h 50m 49s');
  assert.equal(asSpan(2 * 864e5), '2d');
  assert.equal(asSpan(-1), '1h');
});

test('a span is printed in its two largest units', () => {
  const spans = {
    0.5: '0.5 ms',
    15: '15 ms',
    4200: '4.2 s',
    9999: '9.9 s',
    59999: '59 s',
    61e3: '1 min 01 s',
    39e5: '1 h 05 min',
    9e7: '1 d 01 h',
  };
  for (const [ms, s] of Object.entries(spans)) assert.equal(span(Number(ms)), s);
  assert.equal(span(null), '–');
  assert.equal(span(-5), '-5 ms');
  assert.deepEqual([micros(120), micros(4200), micros(2e6)], ['120 µs', '4.2 ms', '2.0 s']);
});

test('a date has its zone at its end', () => {
  assert.match(date(1.7e12), /^1[45] Nov 2023, \d\d:13:20 \S+$/);
});

test('an interval is whole in its unit', () => {
  assert.deepEqual([60_000, 90_000, 36e5, 2 * 864e5, 1500, 250].map(interval), ['1 min', '90 s', '1 h', '2 d', '1.5 s', '250 ms']);
});

test('numbers', () => {
  assert.equal(num('9223372036854775807'), '9,223,372,036,854,775,807');
  assert.deepEqual([brief(9999), brief(2_100_000), brief(12), brief(null)], ['9,999', '2.1M', '12', '–']);
  assert.deepEqual([size(100), size(1536), size(2 ** 40)], ['100 B', '1.5 KiB', '1 TiB']);
  assert.deepEqual([percent(0.5), percent(0.012)], ['50%', '1.2%']);
});

test('texts have names, plurals and both languages', async () => {
  assert.equal(t('lost', { span: '3 s' }).includes('3 s'), true);
  const plural = [1, 2].map((n) => t('now.waiting', { n }));
  assert.notEqual(plural[0], plural[1].replace('2', '1'));
  assert.equal(t('no.such.key'), 'no.such.key');
  assert.equal(has('lost'), true);
  await setLang('zh');
  assert.equal(lang(), 'zh');
  assert.match(t('lost', { span: '' }), /\p{Script=Han}/u);
  assert.deepEqual([span(15), span(766e3), span(9e7), micros(120)], ['15 毫秒', '12 分 46 秒', '1 天 01 小时', '120 微秒']);
  assert.match(date(1.7e12), /^2023年11月1[45]日 \d\d:13:20 \S+$/);
  await setLang('en');
});

test('the meanings of directives are translated by text and by pattern', async () => {
  assert.equal((await meanings())('any text'), 'any text');
  await setLang('zh');
  const say = await meanings();
  assert.match(say('from 1 to 5'), /1.*5/);
  assert.equal(say('a text without a translation'), 'a text without a translation');
  await setLang('en');
});

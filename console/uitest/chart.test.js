import test from 'node:test';
import assert from 'node:assert/strict';
import { FakeElement, install } from './dom.js';

install();
globalThis.ResizeObserver = class {
  observe() {}
};
const { bars, lines } = await import('../ui/lib/chart.js');

/** The elements in el, itself too, of a class. */
function ofClass(el, name) {
  const here = (el.attributes?.get('class') ?? el.className ?? '').split(' ').includes(name) ? [el] : [];
  return here.concat(...el.children.map((c) => ofClass(c, name)));
}

/** An element with a chart of one line. */
function lineOf(values) {
  const el = Object.assign(new FakeElement('div'), { clientWidth: 800 });
  lines(
    el,
    values.map((_, i) => 1e12 + i * 1000),
    [{ label: 'a', cls: 'a', values }],
    { label: 'chart' },
  );
  return el;
}

/** What a chart of lines shows: the heights of the points in px, and the number of signs above it. */
function drawn(values) {
  const el = lineOf(values);
  const path = ofClass(el, 'series')[0].attributes.get('d');
  return {
    y: [...path.matchAll(/[ML][\d.]+ ([\d.]+)/g)].map((m) => Number(m[1])),
    jumps: path.match(/M/g).length,
    spikes: ofClass(el, 'storm').length,
    legend: ofClass(el, 'legend').length,
  };
}
const calm = Array.from({ length: 100 }, (_, i) => 10 + (i % 5));
/** Those with another value in the middle. @param {number} v */
const withOne = (v) => calm.map((x, i) => (i === 50 ? v : x));

test('a spike does not flatten the other values: the axis leaves it out', () => {
  const before = drawn(calm),
    after = drawn(withOne(1000));
  assert.equal(before.spikes, 0);
  assert.equal(after.spikes, 1);
  assert.equal(after.legend, 1); // it says how high the spike is
  const range = (d) => Math.max(...d.y) - Math.min(...d.y.filter((_, i) => i !== 50));
  assert.ok(range(after) > range(before) / 2, `${range(after)} px of ${range(before)}`);
});

test('the axis reaches the largest value unless that is a spike', () => {
  for (const values of [withOne(20), calm.map((v, i) => (i % 2 ? v * 100 : v)), [1, 1, 1, 1000]]) assert.equal(drawn(values).spikes, 0);
});

/** Shows bars of values in an element, and returns the words of the top of its axis, and how many bars are cut. */
function barsOf(values, el = Object.assign(new FakeElement('div'), { clientWidth: 800 })) {
  bars(el, [{ label: 'a', cls: 'a', values }], { label: 'chart', x: String, unit: String });
  const [picture] = el.children,
    words = picture.children.filter((e) => e.localName === 'text').map((e) => Number(e.textContent));
  return { el, top: words[2], cut: ofClass(el, 'top').length };
}
/** Sixty bars of 3, as many of them as n, and a storm. */
const storm = (n) => Array.from({ length: 60 }, (_, i) => (i === 40 ? 50_002 : i < n ? 3 : 0));

test('the axis leaves out a storm, whatever the number of other bars', () => {
  for (const n of [1, 2, 5, 28, 29, 30, 59]) assert.deepEqual([barsOf(storm(n)).top, barsOf(storm(n)).cut], [3, 1], `${n} others`);
});

test('the axis ends near the largest bar', () => {
  assert.equal(barsOf(storm(0)).top, 60_000);
  for (let most = 2; most < 1e6; most = Math.ceil(most * 1.1)) {
    const { top, cut } = barsOf([most, most, most]);
    assert.ok(cut === 0 && top >= most && top <= most * 1.5, `${top} for ${most}`);
  }
});

test('a chart does not change between two scales with each value', () => {
  const { el } = barsOf([10, 10, 10, 10, 41]),
    tops = [];
  for (const v of [39, 41, 38, 42]) tops.push(barsOf([10, 10, 10, 10, v], el).top);
  assert.deepEqual(tops, [10, 10, 10, 10]);
  tops.length = 0;
  for (const v of [20, 21, 20, 21]) tops.push(barsOf([10, 10, v], el).top);
  assert.deepEqual(tops, [20, 24, 24, 24]);
});

test('figures of broken bars do not overlap: the highest has its own', () => {
  const figures = (values) => {
    const el = Object.assign(new FakeElement('div'), { clientWidth: 400 });
    bars(el, [{ label: 'a', cls: 'a', values }], { label: 'chart', x: String, unit: String });
    return ofClass(el, 'top').map((e) => e.textContent);
  };
  const calm = Array(60).fill(3),
    at = (/** @type {Record<number, number>} */ o) => calm.map((v, i) => o[i] || v);
  assert.deepEqual(figures(at({ 20: 50_000, 22: 60_000 })), ['60000']);
  assert.deepEqual(figures(at({ 20: 50_000, 50: 60_000 })).sort(), ['50000', '60000']);
  assert.deepEqual(figures(at({ 57: 50_000, 59: 60_000 })), ['60000']);
});

test('a line ends where values are missing', () => {
  assert.equal(drawn([1, 2, 3]).jumps, 1);
  assert.equal(drawn([1, 2, null, 3]).jumps, 2);
});

test('a value without neighbours is a dot that can be seen', () => {
  /** The number of dots. */
  const dots = (values) => {
    return ofClass(lineOf(values), 'dots').flatMap((e) => e.attributes.get('d').match(/M/g)).length;
  };
  assert.equal(dots([1, 2, 3]), 0);
  assert.equal(dots([1, null, 2, null, 3, 4]), 2);
  assert.equal(dots([null, 1]), 1);
});

test('a marked bar has a sign above it', () => {
  const el = Object.assign(new FakeElement('div'), { clientWidth: 800 });
  const axis = { label: 'chart', x: String, marks: new Set([3]) };
  bars(el, [{ label: 'a', cls: 'a', values: calm }], axis);
  assert.equal(ofClass(el, 'storm').length, 1);
});

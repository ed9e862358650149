import test from 'node:test';
import assert from 'node:assert/strict';
import { FakeElement, install } from './dom.js';

install();
const { treemap } = await import('../ui/lib/treemap.js');

/** The rectangles of a treemap of values, in percent of its width and height. */
function rectangles(values) {
  const el = new FakeElement('div');
  treemap(
    el,
    values.map((value, i) => ({ label: 'part' + i, value, title: 'part' + i })),
    { rest: 'rest' },
  );
  return el.children.map((part) => {
    const [x, y, w, h] = ['left', 'top', 'width', 'height'].map((side) => parseFloat(part.style[side]));
    return { x, y, w, h, title: part.getAttribute('title') };
  });
}

test('areas are shares of the whole, and fill it without overlap', () => {
  const values = [50, 20, 10, 8, 6, 3, 2, 1],
    all = rectangles(values);
  assert.equal(all.length, values.length);
  all.forEach((r, i) => {
    assert.ok(Math.abs((r.w * r.h) / 100 - values[i]) < 1e-6, `part ${i} has ${r.w} x ${r.h} %`);
    assert.ok(r.x >= 0 && r.y >= 0 && r.x + r.w <= 100 + 1e-6 && r.y + r.h <= 100 + 1e-6);
    for (const other of all.slice(0, i)) {
      const apart = [r.x - other.x - other.w, other.x - r.x - r.w, r.y - other.y - other.h, other.y - r.y - r.h];
      assert.ok(Math.max(...apart) > -1e-6, `part ${i} overlaps another`);
    }
  });
});

test('rectangles are nearly squares', () => {
  for (const r of rectangles(Array(16).fill(1))) {
    const ratio = (r.w * 4) / r.h; // the map is four times wider than high
    assert.ok(ratio > 0.4 && ratio < 2.5, `${ratio}`);
  }
});

test('parts that are too small to see are one', () => {
  const all = rectangles([1000, ...Array(50).fill(1)]);
  assert.equal(all.length, 2);
  assert.match(all[1].title, /^rest/);
  assert.ok(Math.abs((all[1].w * all[1].h) / 100 - 100 * (50 / 1050)) < 0.1);
});

test('without values it is hidden', () => {
  const el = new FakeElement('div');
  treemap(el, [{ label: 'a', value: 0, title: 'a' }], { rest: 'rest' });
  assert.equal(el.hidden, true);
});

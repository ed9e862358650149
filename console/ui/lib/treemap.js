// A treemap: rectangles whose areas are shares of a whole. For screen readers there is a table with the same figures.
import { h, fill } from './h.js';
import { percent } from './i18n.js';

/** @typedef {{label: string, value: number, title: string, href?: string, shade?: number}} Part */
/** @typedef {{x: number, y: number, w: number, h: number}} Rect */

/** The worst aspect ratio in a row of areas along a side. @param {number[]} row @param {number} side */
function worst(row, side) {
  const sum = row.reduce((a, b) => a + b, 0),
    k = (side * side) / (sum * sum);
  return Math.max(Math.max(...row) * k, 1 / (Math.min(...row) * k));
}

/**
 * Computes rectangles for areas in descending order, which fill the room. Each row is laid along the shorter side, and grows as long as
 * that makes its rectangles squarer (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000).
 * @param {number[]} areas @param {Rect} room @returns {Rect[]}
 */
function squarify(areas, room) {
  const out = [],
    left = { ...room };
  for (let i = 0; i < areas.length;) {
    const side = Math.min(left.w, left.h),
      row = [areas[i]];
    while (i + row.length < areas.length && worst([...row, areas[i + row.length]], side) <= worst(row, side))
      row.push(areas[i + row.length]);
    const sum = row.reduce((a, b) => a + b, 0),
      flat = left.w < left.h,
      depth = sum / side;
    let at = 0;
    for (const a of row) {
      const len = a / depth;
      out.push(flat ? { x: left.x + at, y: left.y, w: len, h: depth } : { x: left.x, y: left.y + at, w: depth, h: len });
      at += len;
    }
    if (flat) {
      left.y += depth;
      left.h -= depth;
    } else {
      left.x += depth;
      left.w -= depth;
    }
    i += row.length;
  }
  return out;
}

/** A name that may break once, after its first word. @param {string} label */
function inTwo(label) {
  const end = label.search(/[. :]/) + 1;
  if (!end || end === label.length) return h('span', null, label);
  return [h('span', null, label.slice(0, end)), h('wbr'), h('span', null, label.slice(end))];
}

/**
 * Draws the parts of a whole. shade, from 0 to 1, sets the strength of a part's colour; by default it is the part's share of the biggest
 * one. The parts that are too small to see form one, with the name rest.
 * @param {HTMLElement} el @param {Part[]} parts @param {{rest: string}} o
 */
export function treemap(el, parts, o) {
  const all = parts.filter((p) => p.value > 0).sort((a, b) => b.value - a.value),
    sum = all.reduce((a, p) => a + p.value, 0);
  const shown = all.filter((p, i) => i < 40 && p.value / sum > 0.004),
    rest = sum - shown.reduce((a, p) => a + p.value, 0);
  if (rest > 0 && rest / sum > 0.001) shown.push({ label: o.rest, value: Math.max(rest, sum * 0.004), title: o.rest, shade: 0 });
  el.hidden = !shown.length;
  el.classList.add('treemap');
  el.setAttribute('aria-hidden', 'true');
  const whole = shown.reduce((a, p) => a + p.value, 0),
    w = 100,
    ht = (w * (el.clientHeight || 200)) / Math.max(200, el.clientWidth || 800);
  const rects = squarify(
    shown.map((p) => (p.value / whole) * w * ht),
    { x: 0, y: 0, w, h: ht },
  );
  fill(
    el,
    shown.map((p, i) => {
      const r = rects[i],
        style = {
          left: r.x + '%',
          top: (r.y / ht) * 100 + '%',
          width: r.w + '%',
          height: (r.h / ht) * 100 + '%',
          background: `color-mix(in srgb, var(--key) ${Math.round(10 + 35 * (p.shade ?? p.value / shown[0].value))}%, var(--card))`,
        };
      // The style sheet hides a name that does not fit.
      const title = p.title + ' ' + percent(p.value / sum),
        text = h('div', { class: 'fit' }, h('span', null, h('b', null, inTwo(p.label)), h('i', null, percent(p.value / sum))));
      return p.href
        ? h('a', { class: 'part', href: p.href, tabIndex: -1, title, style }, text)
        : h('div', { class: 'part', title, style }, text);
    }),
  );
}

// Charts in SVG: lines for what was, bars for what falls due, a heat map. Each has a crosshair, keys (left, right, Enter) and a
// table for screen readers.
import { h, svg, fill } from './h.js';
import { brief, num, t } from './i18n.js';

const H = 168,
  L = 52,
  R = 8,
  T = 10,
  B = 22;

/** @typedef {{label: string, cls: string, values: Array<number|null>, format?: (n: number) => string}} Series */
/**
 * @typedef {{x: (i: number) => string, label: string, unit?: (n: number) => string, tick?: (i: number) => string, pick?: (i: number)
 *   => void, height?: number}} Axis
 */
/** @type {WeakMap<Element, {draw: () => void, at: number, pick?: (i: number) => void}>} */
const charts = new WeakMap();
const sizes = new ResizeObserver((es) => {
  for (const e of es) charts.get(e.target)?.draw();
});

/** The first of 1, 2, 5 x 10^n that is not below n. @param {number} n */
function nice(n) {
  const p = 10 ** Math.floor(Math.log10(Math.max(n, 1e-9)));
  return ([1, 2, 5, 10].find((m) => m * p >= n) || 10) * p;
}

/**
 * @param {HTMLElement} el
 * @param {number} n
 * @param {Axis} axis
 * @param {(i: number) => any[]} figures
 * @param {(plot: {w: number, ht: number, x: (i: number) => number, y: (v: number) => number}) => any[]} marks
 * @param {number} top
 * @param {string[]} heads
 */
function plot(el, n, axis, figures, marks, top, heads) {
  const first = !charts.has(el);
  const state = charts.get(el) || { draw() {}, at: -1 };
  state.pick = axis.pick;
  state.draw = () => {
    const w = Math.max(200, el.clientWidth),
      ht = axis.height || H,
      x = (/** @type {number} */ i) => L + ((w - L - R) * i) / Math.max(1, n),
      y = (/** @type {number} */ v) => ht - B - ((ht - B - T) * v) / top;
    const unit = axis.unit || brief,
      step = Math.max(1, Math.ceil(n / Math.max(2, Math.floor(w / 110))));
    const ticks = [];
    for (let i = 0; i < n; i += step) if (x(i) < w - 50) ticks.push(svg('text', { x: x(i), y: ht - 6 }, (axis.tick || axis.x)(i)));
    const cross = svg('g');
    const tip = h('div', { class: 'tip', hidden: true });
    const at = (/** @type {number} */ i) => {
      state.at = i;
      if (i < 0 || i >= n) {
        tip.hidden = true;
        cross.replaceChildren();
        return;
      }
      cross.replaceChildren(svg('rect', { class: 'pick', x: x(i), y: T, width: Math.max(1, x(i + 1) - x(i)), height: ht - B - T }));
      fill(
        tip,
        h('b', null, axis.x(i)),
        figures(i).map((f) => h('div', null, f)),
      );
      tip.hidden = false;
      if (x(i) > w / 2) {
        tip.style.setProperty('right', w - x(i) + 8 + 'px');
        tip.style.setProperty('left', 'auto');
      } else {
        tip.style.setProperty('left', x(i + 1) + 8 + 'px');
        tip.style.setProperty('right', 'auto');
      }
    };
    const pic = svg(
      'svg',
      {
        height: ht,
        viewBox: `0 0 ${w} ${ht}`,
        'aria-hidden': 'true',
        on: {
          pointermove: (/** @type {PointerEvent} */ e) => at(Math.floor(((e.offsetX - L) / (w - L - R)) * n)),
          pointerleave: () => at(-1),
          click: () => {
            if (state.at >= 0 && state.pick) state.pick(state.at);
          },
        },
      },
      [0, 0.5, 1].map((f) => [
        svg('line', { class: 'grid', x1: L, x2: w - R, y1: y(top * f), y2: y(top * f) }),
        svg('text', { x: L - 6, y: y(top * f) + 4, 'text-anchor': 'end' }, unit(top * f)),
      ]),
      ticks,
      marks({ w, ht, x, y }),
      cross,
    );
    const thin = Math.max(1, Math.ceil(n / 60)),
      rows = [];
    for (let i = 0; i < n; i += thin)
      rows.push(
        h(
          'tr',
          null,
          h('th', null, axis.x(i)),
          figures(i).map((f) => h('td', null, f)),
        ),
      );
    const had = state.at;
    fill(
      el,
      pic,
      tip,
      h(
        'div',
        { class: 'sr' },
        h(
          'table',
          null,
          h('caption', null, axis.label),
          h(
            'tr',
            null,
            h('th'),
            heads.map((s) => h('th', null, s)),
          ),
          rows,
        ),
      ),
    );
    at(had);
    el.onkeydown = (e) => {
      if (e.key === 'ArrowRight') at(Math.min(n - 1, state.at + 1));
      else if (e.key === 'ArrowLeft') at(Math.max(0, (state.at < 0 ? n : state.at) - 1));
      else if (e.key === 'Enter' && state.at >= 0 && state.pick) state.pick(state.at);
      else if (e.key === 'Escape') at(-1);
      else return;
      e.preventDefault();
    };
  };
  charts.set(el, state);
  el.classList.add('chart');
  el.tabIndex = 0;
  el.setAttribute('role', 'group');
  el.setAttribute('aria-label', axis.label);
  if (first) sizes.observe(el);
  state.draw();
}

/**
 * Rows at even steps of time, at most 300: a chart shows places as times, but there is a sample each second only while a page is open, and
 * else each ten. A step repeats the row before it, unless that is older than 15 s and than the step.
 * @param {any[]} rows with at, in order @returns {Array<{at: number, row: any}>}
 */
export function even(rows) {
  if (!rows.length) return [];
  const first = rows[0].at,
    last = rows[rows.length - 1].at,
    step = Math.max(1000, (last - first) / 299),
    out = [];
  for (let n = 0, i = 0; first + n * step <= last + step / 2; n++) {
    const at = first + n * step;
    while (i + 1 < rows.length && rows[i + 1].at <= at + step / 2) i++;
    out.push({ at, row: at - rows[i].at <= Math.max(15000, step) ? rows[i] : null });
  }
  return out;
}

/**
 * Draws lines on one axis of y; call it again with new values to update.
 * @param {HTMLElement} el
 * @param {Series[]} series
 * @param {Axis} axis
 */
export function lines(el, series, axis) {
  const n = Math.max(0, ...series.map((s) => s.values.length));
  const top = nice(Math.max(1e-9, ...series.flatMap((s) => s.values.map((v) => v || 0))) || 1);
  plot(
    el,
    n,
    axis,
    (i) => series.map((s) => s.label + ' ' + (s.values[i] == null ? '–' : (s.format || num)(/** @type {number} */ (s.values[i])))),
    ({ x, y }) =>
      series.map((s) => {
        let d = '',
          pen = 'M';
        s.values.forEach((v, i) => {
          if (v == null) pen = 'M';
          else {
            d += pen + x(i + 0.5).toFixed(1) + ' ' + y(v).toFixed(1);
            pen = 'L';
          }
        });
        return svg('path', { class: 'series ' + s.cls, d, fill: 'none', 'fill-opacity': 0 });
      }),
    top,
    series.map((s) => s.label),
  );
}

/**
 * Draws stacked bars: series by class, one value each bucket. marks: buckets with a sign above them (a storm).
 * @param {HTMLElement} el
 * @param {Series[]} series
 * @param {Axis & {marks?: Set<number>}} axis
 */
export function bars(el, series, axis) {
  const n = Math.max(0, ...series.map((s) => s.values.length));
  const sum = (/** @type {number} */ i) => series.reduce((a, s) => a + (s.values[i] || 0), 0);
  let max = 2;
  for (let i = 0; i < n; i++) max = Math.max(max, sum(i));
  plot(
    el,
    n,
    axis,
    (i) => series.filter((s) => s.values[i] || series.length === 1).map((s) => s.label + ' ' + (s.format || num)(s.values[i] || 0)),
    ({ x, y, ht }) => {
      const out = [];
      for (let i = 0; i < n; i++) {
        let base = 0;
        for (const s of series) {
          const v = s.values[i] || 0;
          if (v) {
            const y0 = y(base),
              y1 = Math.min(y(base + v), y0 - 1.5);
            out.push(svg('rect', { class: s.cls, x: x(i) + 0.5, y: y1, width: Math.max(1, x(i + 1) - x(i) - 1.5), height: y0 - y1 }));
          }
          base += v;
        }
        if (axis.marks?.has(i)) out.push(svg('path', { class: 'storm', d: `M${(x(i) + x(i + 1)) / 2 - 5} 1h10l-5 8z` }));
      }
      return out;
    },
    nice(max),
    series.map((s) => s.label),
  );
}

/**
 * A heat map as a table: rows of {label, values}; the shade follows the logarithm.
 * @param {HTMLElement} el
 * @param {Array<{label: any, values: number[]}>} rows
 * @param {string[]} heads
 */
export function heat(el, rows, heads) {
  const max = Math.max(1, ...rows.flatMap((r) => r.values));
  fill(
    el,
    h(
      'div',
      { class: 'table heat' },
      h(
        'table',
        { 'aria-label': t('expiry.heat') },
        h(
          'thead',
          null,
          h(
            'tr',
            null,
            h('th', { scope: 'col' }, t('prefix')),
            heads.map((s) => h('th', { class: 'num', scope: 'col' }, s)),
          ),
        ),
        h(
          'tbody',
          null,
          rows.map((r) =>
            h(
              'tr',
              null,
              h('td', { class: 'wide' }, r.label),
              r.values.map((v) =>
                h(
                  'td',
                  {
                    class: 'cell',
                    style: {
                      background: v
                        ? `color-mix(in srgb, var(--key) ${Math.round(8 + 40 * (Math.log1p(v) / Math.log1p(max)))}%, transparent)`
                        : 'none',
                    },
                  },
                  v ? num(v) : '',
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

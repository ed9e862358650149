// Charts in SVG: lines for what was, bars for what falls due, a heat map. Each has a crosshair, keys (left, right, Enter) and a
// table for screen readers.
import { h, svg, fill } from './h.js';
import { brief, num, t, tick, time } from './i18n.js';

const H = 168,
  L = 52,
  R = 8,
  T = 10,
  B = 22;

/** @typedef {{label: string, cls: string, values: Array<number|null>, format?: (n: number) => string}} Series */
/**
 * @typedef {{x: (i: number) => string, label: string, unit?: (n: number) => string, tick?: (i: number) => string, pick?: (i: number)
 *   => void, height?: number, foot?: () => any}} Axis
 */
/**
 * Where things stand on the axis of x, in shares of the plot's width: of(i) is a value's place, edges(i) are those of the mark on it,
 * at(share) is the value that is nearest to a place. ticks(room) are the words below, for which there is room.
 * @typedef {{of: (i: number) => number, edges: (i: number) => [number, number], at: (share: number) => number, ticks: (room: number)
 *   => Array<[number, string]>}} Scale
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

/** The intervals between the words of bars. */
const COUNTS = [1, 2, 5, 10, 15, 20, 30];

/** The scale of n intervals of the same length. @param {number} n @param {Axis} axis @returns {Scale} */
function even(n, axis) {
  const all = Math.max(1, n);
  return {
    of: (i) => (i + 0.5) / all,
    edges: (i) => [i / all, (i + 1) / all],
    at: (share) => Math.min(n - 1, Math.floor(share * n)),
    ticks: (room) => {
      const step = COUNTS.find((x) => x * room >= n) || n,
        out = /** @type {Array<[number, string]>} */ ([]);
      for (let i = 0; i < n; i += step) out.push([i / all, (axis.tick || axis.x)(i)]);
      return out;
    },
  };
}

/** Steps between the words of an axis of time, s. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
/** A chart shows a minute at least. */
const LEAST = 60_000;
/** Samples come each second or each ten: values that are further apart have a gap between them, ms. */
const GAP = 15_000;

/** The scale of instants, in order, ms since 1970: from the first one to the last. @param {number[]} times @returns {Scale} */
function instants(times) {
  const n = times.length,
    to = times[n - 1] || 0,
    from = Math.min(times[0] || 0, to - LEAST);
  const of = (/** @type {number} */ ms) => (ms - from) / (to - from);
  return {
    of: (i) => of(times[i]),
    edges: (i) => [of(times[i]), of(times[i])],
    at: (share) => {
      const ms = from + share * (to - from);
      let best = 0;
      for (let i = 1; i < n; i++) if (Math.abs(times[i] - ms) <= Math.abs(times[best] - ms)) best = i;
      return n ? best : -1;
    },
    ticks: (room) => {
      const step = 1000 * (STEPS.find((x) => x * 1000 * room >= to - from) || 3600),
        out = /** @type {Array<[number, string]>} */ ([]);
      for (let at = Math.ceil(from / step) * step; at <= to; at += step) out.push([of(at), tick(at, step < 60_000 ? 'minute' : 'hour')]);
      return out;
    },
  };
}

/**
 * @param {HTMLElement} el
 * @param {number} n
 * @param {Axis} axis
 * @param {Scale} scale
 * @param {(i: number) => any[]} figures
 * @param {(plot: {w: number, ht: number, x: (share: number) => number, y: (v: number) => number}) => any[]} marks
 * @param {number} top
 * @param {string[]} heads
 */
function plot(el, n, axis, scale, figures, marks, top, heads) {
  const first = !charts.has(el);
  const state = charts.get(el) || { draw() {}, at: -1 };
  state.pick = axis.pick;
  state.draw = () => {
    const w = Math.max(200, el.clientWidth),
      ht = axis.height || H,
      x = (/** @type {number} */ share) => L + (w - L - R) * share,
      y = (/** @type {number} */ v) => ht - B - ((ht - B - T) * v) / top;
    const unit = axis.unit || brief;
    const ticks = scale
      .ticks(Math.max(2, Math.floor(w / 110)))
      .filter(([share]) => x(share) < w - 28)
      .map(([share, words]) => [
        svg('line', { class: 'grid', x1: x(share), x2: x(share), y1: ht - B, y2: ht - B + 4 }),
        svg('text', { x: x(share), y: ht - 5, 'text-anchor': 'middle' }, words),
      ]);
    const cross = svg('g');
    const tip = h('div', { class: 'tip', hidden: true });
    const at = (/** @type {number} */ i) => {
      state.at = i;
      if (i < 0 || i >= n) {
        tip.hidden = true;
        cross.replaceChildren();
        return;
      }
      const [left, right] = scale.edges(i).map(x);
      cross.replaceChildren(svg('rect', { class: 'pick', x: left, y: T, width: Math.max(1, right - left), height: ht - B - T }));
      fill(
        tip,
        h('b', null, axis.x(i)),
        figures(i).map((f) => h('div', null, f)),
      );
      tip.hidden = false;
      if (left > w / 2) {
        tip.style.setProperty('right', w - left + 8 + 'px');
        tip.style.setProperty('left', 'auto');
      } else {
        tip.style.setProperty('left', right + 8 + 'px');
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
          pointermove: (/** @type {PointerEvent} */ e) => at(e.offsetX < L ? -1 : scale.at((e.offsetX - L) / (w - L - R))),
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
      axis.foot && axis.foot(),
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

/** How many times larger than nearly all values a spike is that the axis leaves out. */
const SPIKE = 4;
/** The value up to which an axis shows lines: the largest one, unless a few spikes would flatten all the others. @param {number[]} all
 * @param {number} most */
function calm(all, most) {
  const sorted = all.filter((v) => v > 0).sort((a, b) => a - b),
    usual = sorted[Math.floor((sorted.length - 1) * 0.97)] || most;
  return sorted.length >= 30 && most > SPIKE * usual ? usual * 1.2 : most;
}

/**
 * Draws lines on one axis of y, with a value of each series at each of the times; call it again with new values to update. A line ends
 * where values are missing, or more than 15 s apart.
 * @param {HTMLElement} el
 * @param {number[]} times ms since 1970, in order
 * @param {Series[]} series
 * @param {{label: string, unit?: (n: number) => string, height?: number}} axis
 */
export function lines(el, times, series, axis) {
  const all = series.flatMap((s) => s.values.map((v) => v || 0)),
    most = Math.max(1e-9, ...all),
    top = nice(calm(all, most)),
    scale = instants(times);
  plot(
    el,
    times.length,
    {
      ...axis,
      x: (i) => time(times[i]),
      foot: () =>
        (series.length > 1 || most > top) &&
        h(
          'div',
          { class: 'legend', 'aria-hidden': 'true' },
          series.map((s) => h('span', null, h('i', { class: 'level ' + s.cls }), s.label)),
          most > top && h('span', null, t('chart.cut', { max: (axis.unit || brief)(most) })),
        ),
    },
    scale,
    (i) => series.map((s) => s.label + ' ' + (s.values[i] == null ? '–' : (s.format || num)(/** @type {number} */ (s.values[i])))),
    ({ x, y }) =>
      series.map((s) => {
        let d = '',
          last = -1; // the value that the pen stands on
        s.values.forEach((v, i) => {
          if (v == null) return;
          const at = x(scale.of(i)).toFixed(1) + ' ' + y(Math.min(v, top)).toFixed(1);
          // a value without neighbours is a dot
          d += last >= 0 && i - last === 1 && times[i] - times[last] <= GAP ? 'L' + at : 'M' + at + 'h0';
          last = i;
        });
        const over = s.values.flatMap((v, i) => (v != null && v > top ? [x(scale.of(i))] : []));
        return [
          svg('path', { class: 'series ' + s.cls, d, fill: 'none', 'fill-opacity': 0 }),
          over.map((at) => svg('path', { class: 'storm', d: `M${(at - 4).toFixed(1)} ${T - 1}h8l-4 -7z` })),
        ];
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
  const scale = even(n, axis);
  plot(
    el,
    n,
    axis,
    scale,
    (i) => series.filter((s) => s.values[i] || series.length === 1).map((s) => s.label + ' ' + (s.format || num)(s.values[i] || 0)),
    ({ x, y, ht }) => {
      const out = [];
      for (let i = 0; i < n; i++) {
        const [left, right] = scale.edges(i).map(x);
        let base = 0;
        for (const s of series) {
          const v = s.values[i] || 0;
          if (v) {
            const y0 = y(base),
              y1 = Math.min(y(base + v), y0 - 1.5);
            out.push(svg('rect', { class: s.cls, x: left + 0.5, y: y1, width: Math.max(1, right - left - 1.5), height: y0 - y1 }));
          }
          base += v;
        }
        if (axis.marks?.has(i)) out.push(svg('path', { class: 'storm', d: `M${(left + right) / 2 - 5} 1h10l-5 8z` }));
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

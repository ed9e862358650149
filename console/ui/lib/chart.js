// Charts in SVG: lines for the past, bars for future expirations, and a heat map. Each has a crosshair, keys (left, right, Enter), and a
// table for screen readers.
import { h, svg, fill } from './h.js';
import { brief, num, t, tick, time } from './i18n.js';

/** @import { Child } from './types.js' */

/** The height of a chart, and the margins around its plot, px. */
const HEIGHT = 168,
  LEFT = 52,
  RIGHT = 8,
  TOP = 10,
  BOTTOM = 22;

/** @typedef {{label: string, cls: string, values: Array<number|null>, format?: (n: number) => string}} Series */
/**
 * x: the text for a value's position; tick: the text below the axis; unit: the text for a height; pick: the action of a click or Enter.
 * @typedef {{x: (i: number) => string, label: string, unit?: (n: number) => string, tick?: (i: number) => string, pick?: (i: number)
 *   => void, height?: number, foot?: () => Child}} Axis
 */
/**
 * Positions on the x axis, as shares of the plot's width: of(i) is the position of a value, edges(i) are the edges of its mark, at(share)
 * is the nearest value. ticks(room) are the texts below the axis that have enough room.
 * @typedef {{of: (i: number) => number, edges: (i: number) => [number, number], at: (share: number) => number, ticks: (room: number)
 *   => Array<[number, string]>}} Scale
 */
/** The plot in px: its size, and functions that convert a share of the width to x, and a value to y. */
/** @typedef {{width: number, height: number, x: (share: number) => number, y: (v: number) => number}} Plot */
/**
 * The contents of a chart: n values on a scale up to top, the cut heads of higher ones, their figures as text, and their marks.
 * @typedef {{n: number, axis: Axis, scale: Scale, top: number, isCut: boolean, heads: string[],
 *   figures: (i: number) => string[], marks: (plot: Plot) => Child[]}} Chart
 */
/** The chart in an element, the value under the crosshair (-1: none), and a function that moves the crosshair. */
/** @typedef {{chart: Chart, at: number, point: (i: number) => void}} Shown */

/** @type {WeakMap<Element, Shown>} */
const charts = new WeakMap();
const sizes = new ResizeObserver((entries) => {
  for (const e of entries) {
    const shown = charts.get(e.target);
    if (shown) draw(/** @type {HTMLElement} */ (e.target), shown);
  }
});

/** Possible upper ends of an axis, chosen so that half of each has few digits. */
const AXIS_ENDS = [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10];

/** The smallest upper end of an axis that is at least n. @param {number} n */
function nice(n) {
  const p = 10 ** Math.floor(Math.log10(Math.max(n, 1e-9)));
  return Number(((AXIS_ENDS.find((m) => m * p >= n) || 10) * p).toPrecision(2));
}

/** The number of bars between two texts of the axis. */
const BAR_STEPS = [1, 2, 5, 10, 15, 20, 30];

/** The scale of n intervals of the same length. @param {number} n @param {Axis} axis @returns {Scale} */
function even(n, axis) {
  const all = Math.max(1, n);
  return {
    of: (i) => (i + 0.5) / all,
    edges: (i) => [i / all, (i + 1) / all],
    at: (share) => Math.min(n - 1, Math.floor(share * n)),
    ticks: (room) => {
      const step = BAR_STEPS.find((x) => x * room >= n) || n,
        out = /** @type {Array<[number, string]>} */ ([]);
      for (let i = 0; i < n; i += step) out.push([i / all, (axis.tick || axis.x)(i)]);
      return out;
    },
  };
}

/** The steps between the texts of a time axis, s. */
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
/** A chart shows a minute at least. */
const MIN_SPAN = 60_000;
/** A sample comes each second, or each ten. If two are further apart, the line has a gap between them, ms. */
const GAP_AFTER = 15_000;

/**
 * A scale from the first to the last of some instants, which are ms since 1970 in ascending order.
 * @param {number[]} times @returns {Scale}
 */
function instants(times) {
  const n = times.length,
    to = times[n - 1] || 0,
    from = Math.min(times[0] || 0, to - MIN_SPAN);
  /** @param {number} ms */
  const of = (ms) => (ms - from) / (to - from);
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
      const step = 1000 * (TIME_STEPS.find((x) => x * 1000 * room >= to - from) || 3600),
        out = /** @type {Array<[number, string]>} */ ([]);
      for (let at = Math.ceil(from / step) * step; at <= to; at += step) out.push([of(at), tick(at, step < 60_000 ? 'minute' : 'hour')]);
      return out;
    },
  };
}

/** Draws a chart in an element, or updates the chart there. @param {HTMLElement} el @param {Chart} chart */
function show(el, chart) {
  const before = charts.get(el),
    shown = before || { chart, at: -1, point() {} };
  shown.chart = chart;
  charts.set(el, shown);
  el.classList.add('chart');
  el.tabIndex = 0;
  el.setAttribute('role', 'group');
  el.setAttribute('aria-label', chart.axis.label);
  el.onkeydown = (e) => keydown(e, shown);
  if (!before) sizes.observe(el);
  draw(el, shown);
}

/** @param {KeyboardEvent} e @param {Shown} shown */
function keydown(e, shown) {
  const { n, axis } = shown.chart;
  if (e.key === 'ArrowRight') shown.point(Math.min(n - 1, shown.at + 1));
  else if (e.key === 'ArrowLeft') shown.point(Math.max(0, (shown.at < 0 ? n : shown.at) - 1));
  else if (e.key === 'Enter' && shown.at >= 0 && axis.pick) axis.pick(shown.at);
  else if (e.key === 'Escape') shown.point(-1);
  else return;
  e.preventDefault();
}

/** @param {HTMLElement} el @param {Shown} shown */
function draw(el, shown) {
  const { axis, scale, top, marks } = shown.chart,
    width = Math.max(200, el.clientWidth),
    height = axis.height || HEIGHT,
    inner = width - LEFT - RIGHT;
  /** @type {Plot} */
  const plot = {
    width,
    height,
    x: (share) => LEFT + inner * share,
    y: (v) => height - BOTTOM - ((height - BOTTOM - TOP) * v) / top,
  };
  const cross = svg('g'),
    tip = h('div', { class: 'tip', hidden: true });
  shown.point = (i) => {
    shown.at = i;
    point(shown.chart, plot, i, cross, tip);
  };
  const place = (/** @type {PointerEvent} */ e) => shown.point(e.offsetX < LEFT ? -1 : scale.at((e.offsetX - LEFT) / inner));
  const picture = svg(
    'svg',
    {
      height,
      viewBox: `0 0 ${width} ${height}`,
      'aria-hidden': 'true',
      on: {
        pointermove: place,
        pointerdown: place, // a finger taps without moving first
        pointerleave: () => shown.point(-1),
        click: () => {
          if (shown.at >= 0) axis.pick?.(shown.at);
        },
      },
    },
    grid(shown.chart, plot),
    marks(plot),
    cross,
  );
  fill(el, picture, axis.foot && axis.foot(), tip, h('div', { class: 'sr' }, figuresTable(shown.chart)));
  shown.point(shown.at);
}

/** The lines and texts of both axes. @param {Chart} chart @param {Plot} plot @returns {Child[]} */
function grid({ axis, scale, top }, { width, height, x, y }) {
  const unit = axis.unit || brief;
  const heights = [0, 0.5, 1].map((share) => [
    svg('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(top * share), y2: y(top * share) }),
    svg('text', { x: LEFT - 6, y: y(top * share) + 4, 'text-anchor': 'end' }, unit(top * share)),
  ]);
  const ticks = scale
    .ticks(Math.max(2, Math.floor(width / 110)))
    .filter(([share]) => x(share) < width - 28)
    .map(([share, words]) => [
      svg('line', { class: 'grid', x1: x(share), x2: x(share), y1: height - BOTTOM, y2: height - BOTTOM + 4 }),
      svg('text', { x: x(share), y: height - 5, 'text-anchor': 'middle' }, words),
    ]);
  return [heights, ticks];
}

/**
 * Moves the crosshair to a value, and shows its figures beside it.
 * @param {Chart} chart
 * @param {Plot} plot
 * @param {number} i
 * @param {Element} cross
 * @param {HTMLElement} tip
 */
function point({ n, axis, scale, figures }, { width, height, x }, i, cross, tip) {
  tip.hidden = i < 0 || i >= n;
  cross.replaceChildren();
  if (tip.hidden) return;
  const [left, right] = scale.edges(i).map(x),
    before = left > width / 2;
  cross.append(svg('rect', { class: 'pick', x: left, y: TOP, width: Math.max(1, right - left), height: height - BOTTOM - TOP }));
  fill(
    tip,
    h('b', null, axis.x(i)),
    figures(i).map((f) => h('div', null, f)),
  );
  tip.style.setProperty('right', before ? width - left + 8 + 'px' : 'auto');
  tip.style.setProperty('left', before ? 'auto' : right + 8 + 'px');
}

/** A table of a chart's figures for screen readers, with some 60 rows. @param {Chart} chart */
function figuresTable({ n, axis, figures, heads }) {
  const rows = [],
    step = Math.max(1, Math.ceil(n / 60));
  for (let i = 0; i < n; i += step)
    rows.push(
      h(
        'tr',
        null,
        h('th', null, axis.x(i)),
        figures(i).map((f) => h('td', null, f)),
      ),
    );
  const head = h(
    'tr',
    null,
    h('th'),
    heads.map((s) => h('th', null, s)),
  );
  return h('table', null, h('caption', null, axis.label), head, rows);
}

/** How many times larger than nearly all values a spike is that the axis leaves out. One that was left out comes back below a lower
 * ratio, and an axis stays while the values fill this share of it: a chart that changes its scale each second cannot be read. */
const SPIKE = { begins: 4, ends: 2.5 },
  FILLED = 0.7;
/** The share of the values that may be spikes, and the number that may be spikes among a few values. */
const SPIKES = { share: 0.03, least: 2 };

/**
 * Returns the largest value that is not a spike. At most half of the values above zero are spikes.
 * @param {number[]} all
 * @param {number} ratio
 */
function calm(all, ratio) {
  const sorted = all.filter((v) => v > 0).sort((a, b) => b - a),
    few = Math.max(SPIKES.least, Math.floor(all.length * SPIKES.share)),
    usual = sorted[Math.min(few, Math.floor(sorted.length / 2))];
  return sorted.find((v) => v <= ratio * usual) ?? 0;
}

/**
 * Returns the upper end of the y axis: the largest value that is not a spike, or a little more.
 * @param {Element} el the element of the chart
 * @param {number[]} all
 * @param {number} least of an axis
 * @param {number} enough the number of values above zero from which an axis leaves out spikes
 */
function end(el, all, least, enough) {
  const before = charts.get(el)?.chart,
    most = Math.max(least, ...all),
    ratio = before?.isCut ? SPIKE.ends : SPIKE.begins,
    high = all.filter((v) => v > 0).length < enough ? most : Math.max(least, calm(all, ratio)),
    stays = before && high <= before.top && high >= before.top * FILLED,
    top = stays ? before.top : nice(high);
  return { most, top, isCut: most > top };
}

/** The number of samples from which on a high value counts as a spike. A server's first samples are no basis for that. */
const SPIKES_FROM = 30;

/**
 * Draws lines on one y axis, with a value of each series for each time. Call it again with new values for an update. A line has a gap if
 * values are missing or more than 15 s apart.
 * @param {HTMLElement} el
 * @param {number[]} times ms since 1970, in order
 * @param {Series[]} series
 * @param {{label: string, unit?: (n: number) => string, height?: number, least?: number}} axis least: where it ends, or above
 */
export function lines(el, times, series, axis) {
  const all = series.flatMap((s) => s.values.map((v) => v || 0)),
    { most, top, isCut } = end(el, all, axis.least || 1e-9, SPIKES_FROM),
    scale = instants(times);
  const legend = () =>
    (series.length > 1 || isCut) &&
    h(
      'div',
      { class: 'legend', 'aria-hidden': 'true' },
      series.map((s) => h('span', null, h('i', { class: 'level ' + s.cls }), s.label)),
      isCut && h('span', null, t('chart.cut', { max: (axis.unit || brief)(most) })),
    );
  show(el, {
    n: times.length,
    axis: { ...axis, x: (i) => time(times[i]), foot: legend },
    scale,
    top,
    isCut,
    heads: series.map((s) => s.label),
    figures: (i) => series.map((s) => s.label + ' ' + figure(s, s.values[i])),
    marks: (plot) => series.map((s) => lineOf(s, times, scale, top, plot)),
  });
}

/** @param {Series} s @param {number|null} v */
const figure = (s, v) => (v === null || v === undefined ? '–' : (s.format || num)(v));

/**
 * Returns the path of a series, with a mark if a value exceeds the chart.
 * @param {Series} s
 * @param {number[]} times
 * @param {Scale} scale
 * @param {number} top
 * @param {Plot} plot
 */
function lineOf(s, times, scale, top, { x, y }) {
  let path = '',
    dots = '';
  const is = (/** @type {number} */ i) => s.values[i] !== null && s.values[i] !== undefined,
    follows = (/** @type {number} */ i) => is(i - 1) && is(i) && times[i] - times[i - 1] <= GAP_AFTER;
  s.values.forEach((v, i) => {
    if (v === null || v === undefined) return;
    const at = x(scale.of(i)).toFixed(1) + ' ' + y(Math.min(v, top)).toFixed(1);
    path += follows(i) ? 'L' + at : 'M' + at + 'h0';
    if (!follows(i) && !follows(i + 1)) dots += 'M' + at + 'h0';
  });
  const over = s.values.flatMap((v, i) => (v !== null && v > top ? [x(scale.of(i))] : []));
  return [
    svg('path', { class: 'series ' + s.cls, d: path, fill: 'none', 'fill-opacity': 0 }),
    // without a dot, a value without neighbours would be invisible
    dots && svg('path', { class: 'dots ' + s.cls, d: dots }),
    over.map((at) => svg('path', { class: 'storm', d: `M${(at - 4).toFixed(1)} ${TOP - 1}h8l-4 -7z` })),
  ];
}

/**
 * Draws stacked bars, one value of each series per bucket; each series has a CSS class. marks: the buckets with a symbol above them (a
 * storm). If a few spikes would flatten all other bars, the chart cuts them at its top and shows their figures beside them.
 * @param {HTMLElement} el
 * @param {Series[]} series
 * @param {Axis & {marks?: Set<number>}} axis
 */
export function bars(el, series, axis) {
  const n = Math.max(0, ...series.map((s) => s.values.length)),
    scale = even(n, axis),
    sums = Array.from({ length: n }, (_, i) => series.reduce((sum, s) => sum + (s.values[i] || 0), 0)),
    { top, isCut } = end(el, sums, 2, 2);
  show(el, {
    n,
    axis,
    scale,
    top,
    isCut,
    heads: series.map((s) => s.label),
    figures: (i) => series.filter((s) => s.values[i] || series.length === 1).map((s) => s.label + ' ' + figure(s, s.values[i] || 0)),
    marks: (plot) => {
      const edges = (/** @type {number} */ i) => scale.edges(i).map(plot.x),
        bar = (/** @type {number} */ i) => {
          const [left, right] = edges(i);
          return [
            barOf(series, i, left, right, (v) => plot.y(Math.min(v, top))),
            axis.marks?.has(i) && svg('path', { class: 'storm', d: `M${(left + right) / 2 - 5} 1h10l-5 8z` }),
            sums[i] > top && svg('path', { class: 'gap', d: `M${left - 3} ${TOP + 15}L${right + 3} ${TOP + 9}` }),
          ];
        },
        broken = sums.map((_, i) => i).filter((i) => sums[i] > top);
      return [sums.map((_, i) => bar(i)), figuresOf(broken, sums, axis.unit || brief, (i) => (edges(i)[0] + edges(i)[1]) / 2, plot)];
    },
  });
}

const DIGIT = 7; // the width of a digit, px

/**
 * Places the figures of cut bars beside the bars' heads. If several would overlap, only the figure of the highest bar remains.
 * @param {number[]} broken
 * @param {number[]} sums
 * @param {(v: number) => string} unit
 * @param {(i: number) => number} middle
 * @param {Plot} plot
 */
function figuresOf(broken, sums, unit, middle, { width }) {
  const taken = /** @type {Array<[number, number]>} */ ([]);
  return broken
    .toSorted((a, b) => sums[b] - sums[a])
    .map((i) => {
      const isLast = middle(i) > width - 60,
        x = middle(i) + (isLast ? -9 : 9),
        figure = unit(sums[i]),
        from = isLast ? x - figure.length * DIGIT : x - 18, // the symbol of a marked bar stands to the left
        to = isLast ? x + 18 : x + figure.length * DIGIT;
      if (taken.some(([a, b]) => from < b && to > a)) return null;
      taken.push([from, to]);
      return svg('text', { class: 'top', x, y: TOP - 1, 'text-anchor': isLast ? 'end' : 'start' }, figure);
    });
}

/** The parts of a bar, one above the other. @param {Series[]} series @param {number} i @param {number} left @param {number} right
 * @param {(v: number) => number} y */
function barOf(series, i, left, right, y) {
  const out = [];
  let base = 0;
  for (const s of series) {
    const v = s.values[i] || 0;
    if (v) {
      const foot = y(base),
        head = Math.min(y(base + v), foot - 1.5);
      out.push(svg('rect', { class: s.cls, x: left + 0.5, y: head, width: Math.max(1, right - left - 1.5), height: foot - head }));
    }
    base += v;
  }
  return out;
}

/**
 * Makes a heat map as a table with rows of {label, values}. The shade is logarithmic.
 * @param {HTMLElement} el
 * @param {Array<{label: Child, values: number[]}>} rows
 * @param {string[]} heads
 */
export function heat(el, rows, heads) {
  const most = Math.max(1, ...rows.flatMap((r) => r.values));
  /** @param {number} v */
  const shade = (v) => `color-mix(in srgb, var(--key) ${Math.round(8 + 40 * (Math.log1p(v) / Math.log1p(most)))}%, transparent)`;
  const head = h(
    'tr',
    null,
    h('th', { scope: 'col' }, t('prefix')),
    heads.map((s) => h('th', { class: 'num', scope: 'col' }, s)),
  );
  const body = rows.map((r) =>
    h(
      'tr',
      null,
      h('td', { class: 'wide' }, r.label),
      r.values.map((v) => h('td', { class: 'cell', style: { background: v ? shade(v) : 'none' } }, v ? num(v) : '')),
    ),
  );
  fill(
    el,
    h('div', { class: 'table heat' }, h('table', { 'aria-label': t('expiry.heat') }, h('thead', null, head), h('tbody', null, body))),
  );
}

// The rates per second of all limiters or all queues of the server: a line of text and a chart.
import { h, setText, section } from '../lib/h.js';
import { clock } from '../lib/api.js';
import { lines } from '../lib/chart.js';
import { samples } from '../lib/events.js';
import { t, num } from '../lib/i18n.js';

/** @import { Ctx } from '../lib/types.js' */
/** A series: its field in a sample, the key of its text, and its colour. */
/** @typedef {{name: 'allowed'|'denied'|'jobsAdded'|'jobsDelivered'|'jobsAcked', word: string, cls: string}} Rate */

/** How many values the page keeps of one limiter: a quarter of an hour. */
const MAX_VALUES = 900;

/** A chart of a limiter's remaining capacity. The server keeps no series of single limiters, so the chart begins when the page opens. */
export function remainingCard() {
  const chart = h('div'),
    el = section(t('limits.seen'), chart);
  /** @type {number[]} */
  let times = [];
  /** @type {Array<number|null>} */
  let values = [];
  let least = 1;
  return {
    el,
    /** @param {{remaining: number, limit: number}|null} limiter null: it does not exist */
    add(limiter) {
      times = [...times, clock()].slice(-MAX_VALUES);
      values = [...values, limiter && limiter.remaining].slice(-MAX_VALUES);
      least = limiter ? limiter.limit : least;
      lines(chart, times, [{ label: t('limits.remaining'), cls: 's-key', values }], { label: t('limits.seen'), height: 132, least });
    },
  };
}

/** The present rates, in words with their names. @param {Ctx} ctx @param {string} words @param {Rate[]} rates */
export function ratesLine(ctx, words, rates) {
  const el = h('p', { class: 'faint' });
  function paint() {
    const s = samples().at(-1);
    if (s) setText(el, t(words, Object.fromEntries(rates.map(({ name }) => [name, num(s[name] ?? 0, 1)]))));
  }
  ctx.onEvent('sample', '', paint);
  paint();
  return el;
}

/** The chart of the rates, if any was above zero. @param {Ctx} ctx @param {string} title @param {Rate[]} rates */
export function ratesCard(ctx, title, rates) {
  const chart = h('div'),
    el = section(t(title), chart);
  function paint() {
    const all = samples();
    el.hidden = !all.some((p) => rates.some(({ name }) => p[name]));
    if (el.hidden) return;
    lines(
      chart,
      all.map((p) => p.at),
      rates.map(({ name, word, cls }) => ({
        label: t(word),
        cls,
        values: all.map((p) => p[name] ?? null),
        format: (/** @type {number} */ n) => num(n, 1) + '/s',
      })),
      { label: t(title), height: 132 },
    );
  }
  ctx.onEvent('sample', '', paint);
  paint();
  return el;
}

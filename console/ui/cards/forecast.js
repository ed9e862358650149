// The forecast on the screen Expiry: the number of keys and items that expire in each interval.
import { h, fill, setText, section } from '../lib/h.js';
import { ApiError, clock, get, isPassing } from '../lib/api.js';
import { bars } from '../lib/chart.js';
import { t, span, time, date, tick } from '../lib/i18n.js';

/** @import { Bucket, Ctx, Forecast } from '../lib/types.js' */
/** @import { Unit } from '../lib/i18n.js' */

/** A bucket stands out if it has at least this many, and this many times as many as its neighbours. */
const PEAK = { least: 50, times: 5 };

/** The text for an instant of a forecast. @param {Unit} unit @returns {(ms: number) => string} */
export const instantWords = (unit) => (unit === 'month' || unit === 'day' ? date : (ms) => time(ms));

/** @param {Bucket|undefined} b */
const total = (b) => (b ? b.keys + b.containers : 0);

/** The indexes of the buckets that stand out. @param {Bucket[]} buckets @param {Unit} unit */
const steepOnes = (buckets, unit) =>
  buckets.flatMap((b, i) => {
    if (!i && unit !== 'minute') return []; // the first bucket always contains the keys with a TTL of seconds
    const near = (total(buckets[i - 1]) + total(buckets[i + 1])) / 2;
    return total(b) >= PEAK.least && total(b) > PEAK.times * Math.max(1, near) ? [i] : [];
  });

/** A summary of a forecast. @param {Forecast} f @param {Unit} unit */
function summary(f, unit) {
  const n = f.buckets.reduce((sum, b) => sum + total(b), 0),
    within = t('expiry.in.' + unit);
  return [
    n ? t('expiry.due', { n, span: within }) : t('expiry.nothing', { span: within }),
    f.later ? t('expiry.later', { n: f.later }) : '',
    n || f.later ? t(f.exact ? 'expiry.exact' : 'expiry.estimate') : '',
  ]
    .filter(Boolean)
    .join(' ');
}

/**
 * @param {Ctx} ctx
 * @param {string} match
 * @param {Unit} unit
 * @param {(b: Bucket) => void} choose called with the interval that the reader chooses
 */
export function forecastCard(ctx, match, unit, choose) {
  const chart = h('div'),
    note = h('p', { class: 'faint' }),
    hint = h('p', { class: 'look', hidden: true }),
    legend = h('div', { class: 'legend' }),
    words = instantWords(unit);
  // With a pattern the server counts each item, and otherwise the containers whose items expire.
  const keys = t(match ? 'expiry.keysitems' : 'level.key');
  fill(
    legend,
    h('span', null, h('i', { class: 'level key' }), keys),
    !match && h('span', null, h('i', { class: 'level field' }), t('expiry.containers')),
  );
  /** @param {Bucket|undefined} worst */
  function paintHint(worst) {
    hint.hidden = !worst;
    if (!worst) return;
    const n = total(worst);
    if (unit === 'minute') setText(hint, t('expiry.storm', { n, at: time(worst.from), in: span(Math.max(0, worst.from - clock())) }));
    else setText(hint, t('expiry.peak', { n, from: words(worst.from), to: words(worst.to) }));
  }
  /** @param {Forecast} f */
  function paint(f) {
    const all = f.buckets,
      steep = steepOnes(all, unit);
    setText(note, summary(f, unit));
    paintHint(all[[...steep].sort((a, b) => total(all[b]) - total(all[a]))[0]]);
    const series = [{ label: keys, cls: 's-key', values: all.map((b) => b.keys) }];
    if (!match) series.push({ label: t('expiry.containers'), cls: 's-field', values: all.map((b) => b.containers) });
    bars(chart, series, {
      label: t('expiry.forecast'),
      x: (i) => (all[i] ? words(all[i].from) + ' – ' + words(all[i].to) : ''),
      tick: (i) => (all[i] ? tick(all[i].from, unit) : ''),
      marks: new Set(steep),
      height: 208,
      pick: (i) => choose(all[i]),
    });
  }
  async function read() {
    try {
      paint(await get('forecast', { db: ctx.db, match, span: unit }, ctx.stop));
    } catch (e) {
      if (e instanceof ApiError && e.code === 'RESTING') setText(note, e.message);
      else if (!isPassing(e)) ctx.fail(e); // otherwise the page asks again
    }
  }
  return { el: section(t('expiry.forecast'), note, hint, chart, legend), read };
}

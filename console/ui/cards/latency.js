// The card of latency events on the screen Performance.
import { h, fill, list } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { bars } from '../lib/chart.js';
import { commandButton } from '../lib/command-button.js';
import { form } from '../lib/dialog.js';
import { card } from './card.js';
import { argv } from '../lib/bytes.js';
import { t, span, time, date, has } from '../lib/i18n.js';

/** @import { Ctx, LatencyAnswer, LatencyRow } from '../lib/types.js' */

/** The least number of bars in a chart, as a few bars alone would be too wide. */
const MIN_BARS = 40;

/**
 * Asks for a directive's number, and sets it. Returns whether it succeeded.
 * @param {number} db
 * @param {string} name
 * @param {string|number} value
 * @param {string} hint
 */
export async function setThreshold(db, name, value, hint) {
  const a = await form({
    title: t('latency.set'),
    fields: [{ name: 'n', label: name, type: 'number', value: String(value), required: true, hint }],
    command: (v) => (v.n === '' ? t('form.number') : argv('CONFIG', 'SET', name, v.n)),
  });
  return !!a && !!(await run(db, a.argv, { quiet: true }));
}

/** The chart of an event. @param {LatencyRow} e */
function eventChart(e) {
  const el = h('div'),
    name = has('latency.' + e.event) ? t('latency.' + e.event) : e.event,
    before = Math.max(0, MIN_BARS - e.samples.length);
  /** @param {number} i @param {(ms: number) => string} words */
  const at = (i, words) => (i < before ? '' : words(e.samples[i - before][0]));
  bars(
    el,
    [{ label: t('latency.longest'), cls: 's-key', values: [...Array(before).fill(0), ...e.samples.map((s) => s[1])], format: span }],
    { label: name, height: 112, unit: span, x: (i) => at(i, date), tick: (i) => at(i, (ms) => time(ms)) },
  );
  const words = t('latency.worst', { max: span(e.max), last: span(e.ms), at: date(e.at) });
  return h('div', null, h('h3', null, name), h('p', { class: 'faint' }, words), el);
}

/** The card's text about the monitor. @param {LatencyAnswer} a */
function monitorWords(a) {
  if (a.denied) return '';
  if (a.threshold === 0) return t('latency.off');
  return (a.threshold ? t('latency.on', { span: span(a.threshold) }) + ' ' : '') + (a.events.length ? '' : t('latency.none'));
}

/** @param {Ctx} ctx */
export function latency(ctx) {
  const body = h('div', { class: 'cols' }),
    note = h('p', { class: 'faint' });
  let threshold = 0;
  const set = async () => {
    if (await setThreshold(ctx.db, 'latency-monitor-threshold', threshold || 100, t('latency.hint'))) again();
  };
  const reset = commandButton(
    ctx,
    'performance.latreset',
    t('acllog.reset'),
    () => ['LATENCY', 'RESET'],
    () => again(),
  );
  const { el, again } = card(ctx, {
    title: t('latency.title'),
    ms: 5000,
    tools: h('span', { class: 'row' }, ctx.button('performance.config', t('latency.set'), set, { small: true }), reset),
    body: [note, body],
    read: async () => {
      const a = await get('latency', {}, ctx.stop);
      threshold = a.threshold || 0;
      fill(note, monitorWords(a));
      if (reset) reset.hidden = !a.events.length;
      list(body, a.events, (e) => e.event + e.at + e.max, eventChart);
      return a.denied;
    },
  });
  return el;
}

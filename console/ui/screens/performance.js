// Performance: commands by calls and time, slow calls, hot keys, memory by prefix, latency events, scripts, and errors by code.
import { h, fill, setText, section } from '../lib/h.js';
import { get } from '../lib/api.js';
import * as column from '../lib/column.js';
import { commandButton } from '../lib/command-button.js';
import { table } from '../lib/table.js';
import { treemap } from '../lib/treemap.js';
import { card, jumps, refused } from '../cards/card.js';
import { hotKeys } from '../cards/hot.js';
import { latency, setThreshold } from '../cards/latency.js';
import { memory } from '../cards/memory.js';
import { scripts } from '../cards/scripts.js';
import { show, text } from '../lib/bytes.js';
import { t, num, micros, span, time } from '../lib/i18n.js';

/** @import { Column, CommandStat, Ctx, ErrorStat, PerformanceAnswer, SlowRow } from '../lib/types.js' */
/** A command, with the us per call and the calls per second. @typedef {CommandStat & {each: number|null, rate: number|null}} Row */

export const title = 'performance.title';

/** @param {'usec'|'each'|'p50'|'p99'|'p999'} name @param {string} label @param {Partial<Column<Row>>} [more] @returns {Column<Row>} */
const microsColumn = (name, label, more) => column.of(name, label, (r) => r[name], { num: true, cell: (r) => micros(r[name]), ...more });

/** The name of a command. On a phone, which has no column for failed calls, a badge shows them. @param {Row} r */
const commandCell = (r) => [
  h('span', { class: 'mono' }, r.name),
  r.failed > 0 && [' ', h('span', { class: 'badge look instead' }, t('performance.failed.n', { n: r.failed }))],
];

/** @returns {Column<Row>[]} */
const commandColumns = () => [
  column.of('name', t('performance.command'), (r) => r.name, { wide: true, cell: commandCell }),
  column.of('rate', t('performance.rate'), (r) => r.rate, {
    num: true,
    cell: (r) => (r.rate === null ? '–' : num(r.rate, r.rate < 10 ? 1 : 0)),
  }),
  column.number('calls', t('performance.calls'), (r) => r.calls, { minor: true }),
  microsColumn('usec', t('performance.time'), { minor: true, cell: (r) => span(r.usec / 1000) }),
  microsColumn('each', t('performance.each'), { minor: true }),
  microsColumn('p50', 'p50', { minor: true }),
  microsColumn('p99', 'p99'),
  microsColumn('p999', 'p99.9', { minor: true }),
  column.number('failed', t('performance.failed'), (r) => r.failed, { minor: true }),
  column.number('rejected', t('performance.rejected'), (r) => r.rejected, { minor: true }),
];

/** @returns {Column<ErrorStat>[]} */
const errorColumns = () => [
  column.name('code', t('performance.code'), (r) => r.code, { wide: true }),
  column.number('n', t('performance.count'), (r) => r.n),
];

/** The delay between the first and the second answer, from which the rates follow, ms. */
const SECOND = 1000;

/** The rates between two answers; null for a command that was missing in the first one. */
class Rates {
  /** The calls of each command, and the time of the answer. @type {Map<string, [number, number]>} */
  before = new Map();

  /** @param {PerformanceAnswer} a @returns {Row[]} */
  rows(a) {
    const rows = a.commands.map((x) => ({ ...x, each: x.calls ? x.usec / x.calls : null, rate: this.rate(x, a.now) }));
    this.before = new Map(a.commands.map((x) => [x.name, [x.calls, a.now]]));
    return rows;
  }

  /** @param {CommandStat} x @param {number} now */
  rate({ name, calls }, now) {
    const before = this.before.get(name);
    if (!before) return null;
    const [callsBefore, at] = before;
    return now > at ? Math.max(0, (calls - callsBefore) / ((now - at) / 1000)) : 0;
  }
}

/** The cards of commands and of errors, which share one answer. @param {Ctx} ctx */
function commands(ctx) {
  const map = h('div', { hidden: true }),
    note = h('p', { class: 'faint' }),
    rates = new Rates();
  const rows = table({
    label: t('performance.commands'),
    key: (r) => r.name,
    fade: false,
    sort: ['usec', -1],
    columns: commandColumns(),
    empty: () => t('performance.nocommands'),
  });
  const errors = table({
    label: t('performance.errors'),
    key: (r) => text(r.code),
    fade: false,
    sort: ['n', -1],
    columns: errorColumns(),
    empty: () => t('performance.noerrors'),
  });
  const errorCard = section(t('performance.errors'), errors.el);
  let first = true;
  const { el, again } = card(ctx, {
    title: t('performance.commands'),
    ms: 2000,
    body: [note, map, rows.el],
    read: async () => {
      const a = await get('performance', {}, ctx.stop),
        sum = a.commands.reduce((all, x) => all + x.usec, 0);
      rows.el.hidden = !!a.denied;
      refused(errorCard, a.denied || []);
      if (first) setTimeout(again, SECOND);
      first = false;
      rows.set(rates.rows(a));
      setText(note, !sum ? '' : t('performance.map', { span: span(sum / 1000) }) + (a.timing ? '' : ' ' + t('performance.untimed')));
      treemap(
        map,
        a.commands.map((x) => ({ label: x.name, value: x.usec, title: x.name + ' ' + span(x.usec / 1000) })),
        { rest: t('performance.others') },
      );
      errors.set(a.errors);
      return a.denied;
    },
  });
  return [el, errorCard];
}

/** Whether a call is the console's own. @param {SlowRow} r */
const isOwn = (r) => text(r.name) === 'ebb-console';

/** The address of a client, with a badge if it is the console. @param {SlowRow} r */
const clientCell = (r) => (isOwn(r) ? [r.addr, ' ', h('span', { class: 'badge' }, t('performance.console'))] : r.addr);

/** @returns {Column<SlowRow>[]} */
const slowColumns = () => [
  column.of('at', t('performance.at'), (r) => r.at, { cell: (r) => time(r.at) }),
  column.of('us', t('performance.took'), (r) => r.us, { num: true, cell: (r) => micros(r.us) }),
  column.of('argv', t('performance.command'), (r) => r.argv.map(text).join(' '), {
    wide: true,
    sort: false,
    cell: (r) => r.argv.map((a, i) => [i ? ' ' : '', show(a, 60)]),
  }),
  column.of('addr', t('performance.client'), (r) => r.addr, { minor: true, cell: clientCell }),
];

/** @param {string|undefined} threshold us */
function thresholdWords(threshold) {
  if (threshold === undefined) return '';
  return Number(threshold) < 0 ? t('performance.off') : t('performance.threshold', { span: micros(Number(threshold)) });
}

/**
 * A checkbox that hides the console's own calls among the slow ones, and shows their number. fit returns the rows to show.
 * @param {() => void} changed
 */
function ownCalls(changed) {
  const box = h('input', { type: 'checkbox', checked: true, on: { change: changed } }),
    words = h('span'),
    el = h('label', { class: 'row', hidden: true }, box, words);
  return {
    el,
    isHiding: () => box.checked && !el.hidden,
    /** @param {SlowRow[]} all */
    fit(all) {
      const others = all.filter((r) => !isOwn(r));
      el.hidden = others.length === all.length;
      setText(words, t('performance.slow.hide', { n: all.length - others.length }));
      return box.checked ? others : all;
    },
  };
}

/** @param {Ctx} ctx */
function slowlog(ctx) {
  const note = h('p', { class: 'faint' }),
    own = ownCalls(() => {
      rows.set(own.fit(all));
    });
  let threshold = '10000';
  /** @type {SlowRow[]} */
  let all = [];
  const rows = table({
    label: t('performance.slow'),
    stack: true,
    key: (r) => String(r.id),
    fade: false,
    columns: slowColumns(),
    empty: () => t(own.isHiding() ? 'performance.noslow.others' : 'performance.noslow'),
  });
  const set = async () => {
    if (await setThreshold(ctx.db, 'slowlog-log-slower-than', threshold, t('performance.slow.hint'))) again();
  };
  const reset = commandButton(
    ctx,
    'performance.slowreset',
    t('performance.slowreset'),
    () => ['SLOWLOG', 'RESET'],
    () => again(),
  );
  const { el, again } = card(ctx, {
    title: t('performance.slow'),
    ms: 2000,
    tools: [ctx.button('performance.config', t('latency.set'), set, { small: true }), reset],
    body: [note, own.el, rows.el],
    read: async () => {
      const a = await get('slowlog', {}, ctx.stop);
      all = a.rows;
      rows.set(own.fit(all));
      rows.el.hidden = !!a.denied;
      if (reset) reset.hidden = !all.length;
      threshold = a.threshold ?? threshold;
      setText(note, thresholdWords(a.threshold));
      return a.denied;
    },
  });
  return el;
}

/** @param {HTMLElement} root @param {Ctx} ctx */
export function open(root, ctx) {
  const [times, errors] = commands(ctx),
    head = h('div', { class: 'titlebar' }, h('h1', null, t('performance.title'))),
    slow = slowlog(ctx),
    hot = hotKeys(ctx),
    below = [memory(ctx), latency(ctx), scripts(ctx)].filter((el) => el !== null);
  fill(root, head, jumps([times, slow, hot, errors, ...below]), times, slow, h('div', { class: 'cols' }, hot, errors), below);
}

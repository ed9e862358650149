// Limits: the limiters that deny the most requests now, and the state of each limiter.
import { h, fill, setText, section } from '../lib/h.js';
import { clock } from '../lib/api.js';
import * as column from '../lib/column.js';
import { table } from '../lib/table.js';
import { listed, missing, partly } from '../lib/poll.js';
import { firstCommand } from '../cards/first-command.js';
import { minutes, remaining, reset, showLimiter, whatIf } from '../cards/limiter.js';
import { prefixesCard, showReservations } from '../cards/limiters.js';
import { ratesCard, ratesLine, remainingCard } from '../cards/rates.js';
import { fromUrl } from '../lib/bytes.js';
import { t, interval, num, span } from '../lib/i18n.js';

/** @import { B, Column, Ctx, LimitRow, TopRow } from '../lib/types.js' */

export const title = 'limits.title';
/** @type {import('../cards/rates.js').Rate[]} */
const RATES = [
  { name: 'allowed', word: 'limits.rate.allowed', cls: 's-key' },
  { name: 'denied', word: 'limits.rate.denied', cls: 's-look' },
];
/** An example request that creates a limiter. */
const FIRST_COMMAND = 'RL.TAKE api:ann 5 60000';

/**
 * The columns about the state of a limiter; of returns the state, or null.
 * @template R
 * @param {(row: R) => LimitRow|null} of
 * @returns {Column<R>[]}
 */
const stateColumns = (of) => {
  /** @param {R} row @param {(r: LimitRow) => import('../lib/types.js').Child} words */
  const known = (row, words) => {
    const r = of(row);
    return r ? words(r) : '–';
  };
  return [
    column.of('left', t('limits.remaining'), (row) => (of(row)?.remaining ?? 0) / Math.max(1, of(row)?.limit ?? 0), {
      num: true,
      cell: (row) => known(row, remaining),
    }),
    column.of('retry', t('limits.retry'), (row) => of(row)?.retry, {
      num: true,
      cell: (row) => known(row, (r) => (r.retry > 0 ? span(r.retry) : t('time.now'))),
    }),
    column.duration('reset', t('limits.full'), (row) => of(row)?.reset, { minor: true }),
    column.of('algo', t('limits.algorithm'), (row) => of(row)?.algorithm, { minor: true }),
  ];
};

/** @param {Ctx} ctx @returns {Column<TopRow>[]} */
const topColumns = (ctx) => [
  column.key(ctx, 'limits'),
  column.of('rate', t('limits.rate'), (r) => r.denied / minutes(r), {
    num: true,
    cell: (r) => h('b', { class: 'look' }, num(r.denied / minutes(r))),
  }),
  column.number('allowed', t('limits.allowed'), (r) => r.allowed / minutes(r), { minor: true }),
  ...stateColumns((/** @type {TopRow} */ r) => r.info),
  column.of('since', t('limits.since'), (r) => r.since, { num: true, minor: true, cell: (r) => span(clock() - r.since) }),
];

/** The reservations of a limiter, collapsed at first. @param {Ctx} ctx @param {LimitRow} r */
const held = (ctx, r) =>
  r.reservations
    ? h('button', { type: 'button', class: 'small', on: { click: () => showReservations(ctx, r.k) } }, num(r.reservations))
    : '0';

/** @param {Ctx} ctx @returns {Column<LimitRow>[]} */
const columns = (ctx) => [
  column.key(ctx, 'limits'),
  ...stateColumns((/** @type {LimitRow} */ r) => r),
  column.duration('period', t('limits.period'), (r) => r.period, { minor: true, cell: (r) => interval(r.period) }),
  column.of('held', t('limits.reservations'), (r) => r.reservations, { num: true, minor: true, cell: (r) => held(ctx, r) }),
  column.of('line', t('limits.waiting'), (r) => r.line, { num: true, minor: true }),
];

/** @param {HTMLElement} root @param {Ctx} ctx */
export function open(root, ctx) {
  const { db, params } = ctx;
  if (params.has('k')) return showLimiter(root, ctx, fromUrl(params.get('k') || ''), remainingCard());
  const [note, more] = [h('p', { class: 'faint' }), h('p', { class: 'faint' })],
    prefixes = prefixesCard(ctx, minutes),
    head = h('div', { class: 'titlebar' });
  /** @param {() => {k: B}} now */
  const resetButton = (now) => ctx.button('limits.reset', t('limits.reset'), () => reset(ctx, now().k, list.read), { small: true });
  const top = table({
    label: t('limits.top'),
    key: column.rowKey,
    fade: false,
    sort: ['rate', -1],
    columns: topColumns(ctx),
    actions: (now) => [resetButton(now)],
    empty: () => t('limits.top.none'),
  });
  const all = table({
    label: t('limits.all'),
    key: column.rowKey,
    fade: false,
    sort: ['left', 1],
    sorted: (by) => list.sorted(by),
    columns: columns(ctx),
    actions: (now) => [
      ctx.button('limits.take', t('limits.whatif'), () => whatIf(db, now(), list.read), { small: true }),
      ' ',
      resetButton(now),
    ],
    empty: () => (params.get('match') ? t('keys.nomatch') : [t('limits.none'), firstCommand(ctx, FIRST_COMMAND)]),
  });
  fill(
    root,
    h('div', { class: 'titlebar' }, h('h1', null, t('limits.title'))),
    h('p', { class: 'faint' }, t('limits.about')),
    ratesLine(ctx, 'limits.decisions', RATES),
    note,
    section(t('limits.top'), top.el),
    prefixes.el,
    ratesCard(ctx, 'limits.history', RATES),
    section(null, head, all.el, more),
  );
  const list = listed(ctx, 'limits', 'left', (a) => {
    top.set(a.top);
    prefixes.set(a.top);
    all.set(a.rows);
    setText(note, missing(a.denied));
    setText(more, partly(a));
  });
  fill(head, h('h2', null, t('limits.all')), list.filter);
}

// Queues: delay queues with their lateness and waiting consumers. cards/queue.js shows one of them with its jobs by state.
import { h, fill, setText, section } from '../lib/h.js';
import { clock } from '../lib/api.js';
import * as column from '../lib/column.js';
import { table } from '../lib/table.js';
import { listed, missing, partly } from '../lib/poll.js';
import { firstCommand } from '../cards/first-command.js';
import { counts, names, showQueue, stateBar } from '../cards/queue.js';
import { ratesCard, ratesLine } from '../cards/rates.js';
import { id, text, url } from '../lib/bytes.js';
import { t, num, span } from '../lib/i18n.js';

/** @import { B, Column, Ctx, QueueRow } from '../lib/types.js' */
/** A queue; sources are the queues that send their dead letters to it. */
/** @typedef {QueueRow & {sources: B[], shared: boolean}} Row */

export const title = 'queues.title';
/** @type {import('../cards/rates.js').Rate[]} */
const RATES = [
  { name: 'jobsAdded', word: 'queues.rate.added', cls: 's-key' },
  { name: 'jobsDelivered', word: 'queues.rate.delivered', cls: 's-member' },
  { name: 'jobsAcked', word: 'queues.rate.acked', cls: 's-field' },
];
const FIRST_COMMAND = 'DQ.ADD mail * hello DELAY 30000';
/** The delay after which a due job is late, ms. */
const LATE_AFTER = 5000;

/** The name of a queue, with badges for its special states. @param {Ctx} ctx @param {Row} r */
const nameCell = (ctx, r) => [
  column.keyLink(ctx, 'queues', r.k),
  r.paused && [' ', h('span', { class: 'badge look' }, t('queues.paused'))],
  r.sources.length > 0 && [' ', h('span', { class: 'badge' }, t('queues.deadletters.of')), ' ', names(r.sources)],
  r.shared && [' ', h('span', { class: 'badge' }, t('queues.shared'))],
  r.stream && [' ', h('span', { class: 'badge' }, t('queues.delivers')), ' ', column.keyLink(ctx, 'streams', r.stream)],
  r.unattended && [' ', h('span', { class: 'badge look' }, t('queues.unattended'))],
];

/** The number of dead letters. @param {Ctx} ctx @param {Row} r */
function deadCell(ctx, r) {
  if (r.letters === null) return '–';
  if (!r.letters) return '0';
  return h('a', { class: 'look', href: ctx.link('queues', { db: ctx.db, k: url(r.k), s: 'dead' }) }, num(r.letters));
}

/** @param {Ctx} ctx @returns {Column<Row>[]} */
const columns = (ctx) => [
  column.of('k', t('keys.name'), (r) => text(r.k), { wide: true, cell: (r) => nameCell(ctx, r) }),
  column.of('states', t('queues.states'), (r) => r.ready, {
    minor: true,
    sort: false,
    cell: (r) => stateBar(r.sources.length ? { dead: r.ready + r.delayed + r.leased } : counts(r)),
  }),
  column.number('ready', t('queues.ready'), (r) => r.ready),
  column.number('delayed', t('queues.delayed'), (r) => r.delayed),
  column.number('leased', t('queues.leased'), (r) => r.leased, { minor: true }),
  // Dead letters are never late, because no worker waits for them.
  column.of('late', t('queues.late'), (r) => (r.sources.length ? -1 : r.late), {
    num: true,
    cell: (r) => (r.ready && !r.sources.length ? h('span', { class: ['steady', r.late > LATE_AFTER && 'look'] }, span(r.late)) : '–'),
  }),
  column.of('next', t('queues.next'), (r) => r.next ?? Infinity, {
    num: true,
    minor: true,
    cell: (r) => h('span', { class: 'steady' }, r.next === null ? '–' : r.next > clock() ? span(r.next - clock()) : t('time.now')),
  }),
  column.number('waiting', t('queues.consumers'), (r) => r.waiting, { minor: true }),
  column.of('dead', t('queues.dead'), (r) => r.letters ?? -1, { num: true, cell: (r) => deadCell(ctx, r) }),
  column.number('dropped', t('queues.dropped'), (r) => r.dropped, { minor: true }),
];

/** The state of each queue in a list. @param {QueueRow[]} queues @returns {Row[]} */
function rowsOf(queues) {
  /** The dead-letter queues, with their source queues. @type {Map<string, B[]>} */
  const sources = new Map();
  for (const { k, to } of queues) if (to) sources.set(id(to), [...(sources.get(id(to)) || []), k]);
  return queues.map((r) => {
    const shared = r.to !== null && (sources.get(id(r.to)) || []).length > 1;
    return { ...r, sources: sources.get(id(r.k)) || [], shared };
  });
}

/** @param {HTMLElement} root @param {Ctx} ctx */
export function open(root, ctx) {
  const { db, params } = ctx,
    note = h('p', { class: 'faint' });
  if (params.has('k')) {
    showQueue(root, ctx);
    return;
  }
  const queues = table({
    label: t('queues.title'),
    key: column.rowKey,
    fade: false,
    sort: ['late', -1],
    stack: true,
    sorted: (by) => list.sorted(by),
    open: (r) => ctx.go('queues', { db, k: url(r.k) }),
    columns: columns(ctx),
    empty: () => (params.get('match') ? t('keys.nomatch') : [t('queues.none'), firstCommand(ctx, FIRST_COMMAND)]),
  });
  const list = listed(ctx, 'queues', '-late', (a) => {
    queues.set(rowsOf(a.rows));
    setText(note, missing(a.denied) || partly(a));
  });
  fill(
    root,
    h('div', { class: 'titlebar' }, h('h1', null, t('queues.title')), list.filter),
    h('p', { class: 'faint' }, t('queues.about')),
    ratesLine(ctx, 'queues.rates', RATES),
    note,
    section(null, queues.el),
    ratesCard(ctx, 'queues.history', RATES),
  );
}

// Streams: streams with their groups, and the expiry rules. cards/stream.js shows one of them in detail.
import { h, fill, setText, section } from '../lib/h.js';
import { get } from '../lib/api.js';
import * as column from '../lib/column.js';
import { commandButton } from '../lib/command-button.js';
import { table } from '../lib/table.js';
import { filterBox, poll, missing, partly } from '../lib/poll.js';
import { firstCommand } from '../cards/first-command.js';
import { MAX_LAG, showStream } from '../cards/stream.js';
import { id, show, text, url } from '../lib/bytes.js';
import { t, num, percent, span } from '../lib/i18n.js';

/** @import { B, Column, Ctx, RuleRow, StreamRow } from '../lib/types.js' */
/** A group of a stream, or a stream that has no groups. */
/**
 * @typedef {{k: B, length: number, group: B|null, lag?: number|null, pending?: number, oldest?: number, consumers?: number, last:
 *   string}} Row
 */

export const title = 'streams.title';
/** If the lag of a group exceeds this share of the entries that the stream keeps, the group is about to lose entries. */
const NEAR_LOSS = 0.8;
/** How long an entry may be pending before it needs attention, ms. */
const PENDING_AFTER = 60_000;

/** @param {StreamRow} s @returns {Row[]} */
const rowsOf = ({ k, length, last, groups }) =>
  groups.length
    ? groups.map((g) => {
        const { lag, pending, oldest, consumers } = g;
        return { k, length, group: g.name, lag, pending, oldest, consumers, last: g.last };
      })
    : [{ k, length, group: null, last }];

/** @param {Ctx} ctx @param {Map<string, number>} bounds how many entries the streams of rules keep @returns {Column<Row>[]} */
const columns = (ctx, bounds) => [
  column.key(ctx, 'streams'),
  column.number('length', t('streams.length'), (r) => r.length),
  column.of('group', t('streams.group'), (r) => text(r.group), {
    cell: (r) => (r.group ? show(r.group, 60) : h('span', { class: 'faint' }, t('streams.nogroup'))),
  }),
  column.of('lag', t('streams.lag'), (r) => r.lag, {
    num: true,
    cell: (r) => {
      const most = bounds.get(id(r.k)) || 0,
        lag = r.lag || 0,
        losing = most > 0 && lag > most * NEAR_LOSS;
      return [
        losing && [h('span', { class: 'badge look' }, t('streams.lag.losing', { share: percent(lag / most) })), ' '],
        h('span', { class: losing ? 'look strong' : lag >= MAX_LAG ? 'badge look' : '' }, num(r.lag)),
      ];
    },
  }),
  column.number('pending', t('streams.pending'), (r) => r.pending),
  column.duration('oldest', t('streams.oldest'), (r) => r.oldest, {
    cell: (r) => h('span', { class: (r.oldest || 0) > PENDING_AFTER ? 'look' : '' }, r.pending ? span(r.oldest) : '–'),
  }),
  column.number('consumers', t('streams.consumers'), (r) => r.consumers),
  column.code('last', t('streams.last'), (r) => r.last, { minor: true }),
];

/** @param {Ctx} ctx @returns {Column<RuleRow>[]} */
const ruleColumns = (ctx) => [
  column.name('name', t('keys.name'), (r) => r.name, { wide: true }),
  column.name('match', t('streams.match'), (r) => r.match),
  column.of('levels', t('streams.levels'), (r) => r.levels.join(), {
    minor: true,
    cell: (r) => r.levels.map((l) => t('level.one.' + l)).join(', '),
  }),
  column.of('to', t('streams.target'), (r) => text(r.to), {
    cell: (r) => (r.queue ? [t('streams.queue') + ' ', column.keyLink(ctx, 'queues', r.to)] : column.keyLink(ctx, 'streams', r.to)),
  }),
  column.of('fired', t('streams.fired'), (r) => r.fired, {
    num: true,
    title: t('streams.missed.why'),
    cell: (r) => num(r.fired) + (r.missed ? ' ' + t('streams.missed', { n: r.missed }) : ''),
  }),
  column.number('suspended', t('streams.suspended'), (r) => r.suspended),
  column.of('why', t('streams.state'), (r) => text(r.why), {
    cell: (r) => (r.why ? h('b', { class: 'bad' }, show(r.why, 120)) : t('streams.works')),
  }),
];

/** @param {HTMLElement} root @param {Ctx} ctx */
export function open(root, ctx) {
  const { db } = ctx,
    note = h('p', { class: 'faint' });
  if (ctx.params.has('k')) {
    showStream(root, ctx);
    return;
  }
  let by = '-lag';
  /** @type {Map<string, number>} */
  const bounds = new Map();
  const streams = table({
    label: t('streams.title'),
    key: (r) => id(r.k) + '/' + id(r.group),
    fade: false,
    sort: ['lag', -1],
    sorted: (s) => {
      by = s;
      again();
    },
    open: (r) => ctx.go('streams', { db, k: url(r.k), g: r.group ? url(r.group) : undefined }),
    columns: columns(ctx, bounds),
    empty: () => (ctx.params.get('match') ? t('keys.nomatch') : [t('streams.none'), firstCommand(ctx, 'XADD orders * id 17')]),
  });
  const rules = table({
    label: t('streams.rules'),
    key: (r) => id(r.name),
    fade: false,
    columns: ruleColumns(ctx),
    actions: (now) =>
      commandButton(
        ctx,
        'streams.rule',
        t('streams.delrule'),
        () => ['EXPIRY', 'RULE', 'DEL', now().name],
        () => again(),
        { danger: true },
      ),
    empty: () => [t('streams.norules'), firstCommand(ctx, 'EXPIRY RULE SET sessions MATCH session:* LEVEL KEY TO ended')],
  });
  fill(
    root,
    h('div', { class: 'titlebar' }, h('h1', null, t('streams.title')), filterBox(ctx, 'streams')),
    h('p', { class: 'faint' }, t('streams.about')),
    note,
    section(null, streams.el),
    section(t('streams.rules'), rules.el),
  );
  const again = poll(ctx, 2000, async () => {
    const a = await get('streams', { db, match: ctx.params.get('match'), sort: by }, ctx.stop);
    bounds.clear();
    for (const r of a.rules) if (r.maxLen > 0) bounds.set(id(r.to), r.maxLen);
    streams.set(a.rows.flatMap(rowsOf));
    rules.set(a.rules);
    setText(note, missing(a.denied) || partly(a));
  });
}

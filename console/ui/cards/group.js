// The card of the group on the screen Server: its state, and its nodes.
import { h, fill, setText } from '../lib/h.js';
import { get } from '../lib/api.js';
import * as column from '../lib/column.js';
import { commandButton } from '../lib/command-button.js';
import { table } from '../lib/table.js';
import { card, property } from './card.js';
import { t, num, size, span } from '../lib/i18n.js';

/** @import { Child, Column, Ctx, GroupAnswer, MemberRow, NodeRow } from '../lib/types.js' */

/** The least part of the bar that a node fills that is behind, so that a reader sees it. */
const LEAST = 0.04;
/** The roles in which a node does its work. Others need attention. */
const WORKS = ['master', 'insync', 'witness'];

/** @param {MemberRow} g @returns {Child[]} */
const properties = (g) => [
  property(t('group.state'), t('group.state.' + g.state)),
  g.node > 0 && property(t('group.node'), t(g.isIn ? 'group.node.in' : 'group.node.out', { n: g.node }), g.isIn ? '' : 'look'),
  g.writable === false && property(t('group.writes'), t('group.writes.refused'), 'bad'),
  g.lease === false && property(t('group.reads'), t('group.reads.wait'), 'bad'),
  property(t('group.master'), g.master || '–'),
  property(t('group.insync'), num(g.inSync), g.inSync > g.k ? '' : 'bad'),
  property(t('group.k'), num(g.k)),
  property(t('group.epoch'), num(g.epoch)),
  property(t('group.version'), num(g.version)),
  property(t('group.leader'), g.leader || '–'),
  g.voters > 0 && property(t('group.voters'), num(g.voters)),
  property(t('group.losses'), num(g.losses), g.losses > 0 ? 'look' : ''),
];

/** @param {NodeRow} r @returns {Child} */
const nodeCell = (r) =>
  h(
    'span',
    { class: 'row' },
    h('b', null, r.node),
    r.addr && h('span', { class: 'mono any' }, r.addr),
    r.isPort && h('span', { class: 'faint' }, 'group-port'),
    r.isThis && h('span', { class: 'badge' }, t('repl.this')),
  );

/** @param {NodeRow} r */
const roleWords = (r) =>
  [r.role && t('group.role.' + r.role), r.silent >= 0 && t('group.silent', { span: span(r.silent) })].filter(Boolean).join(', ');

/** @param {NodeRow} r @returns {Child} */
const roleCell = (r) =>
  h(
    'span',
    null,
    r.role && h('span', { class: ['badge', !WORKS.includes(r.role) && 'look'] }, t('group.role.' + r.role)),
    ' ',
    r.silent >= 0 && h('span', { class: 'badge bad' }, t('group.silent', { span: span(r.silent) })),
  );

/** How far a node is behind: a bar that is full where the backlog does not have what the node lacks. @param {NodeRow} r @returns {Child} */
function behindCell(r) {
  if (r.behind < 0) return '–';
  const value = r.behind ? Math.max(LEAST, r.share) : 0,
    words = r.behind ? size(r.behind) + ', ' + span(r.since) : t('repl.behind.none');
  return h('span', null, h('meter', { min: 0, max: 1, low: 0.1, high: 0.5, optimum: 0, value, 'aria-hidden': 'true' }), ' ', words);
}

/** @returns {Column<NodeRow>[]} */
const columns = () => [
  column.of('node', t('group.column.node'), (r) => r.node, { cell: nodeCell }),
  column.of('role', t('group.column.role'), roleWords, { cell: roleCell }),
  column.of('incarnation', t('group.column.incarnation'), (r) => r.incarnation, { num: true, cell: (r) => num(r.incarnation || null) }),
  column.of('link', t('group.column.link'), (r) => r.link && t('group.link.' + r.link), {
    cell: (r) => (r.link ? h('span', { class: r.link === 'up' ? '' : 'look' }, t('group.link.' + r.link)) : '–'),
  }),
  column.of('offset', t('group.column.offset'), (r) => (r.offset ? Number(r.offset) : null), { num: true, cell: (r) => num(r.offset) }),
  column.of('behind', t('group.column.behind'), (r) => (r.behind < 0 ? null : r.behind), {
    num: true,
    cell: behindCell,
    title: t('group.bar'),
  }),
];

/** What the table lacks, and why. @param {GroupAnswer} a */
function gaps(a) {
  const g = a.group,
    master = a.nodes.find((r) => r.role === 'master');
  if (!g) return '';
  return [
    !a.listed && t('group.unlisted'),
    !g.master && t('group.nomaster'),
    master && master.silent >= 0 && t('group.master.silent', { n: g.master }),
    g.master > 0 && g.writable === undefined && t('group.partial'),
    g.writable !== undefined && a.nodes.some((r) => r.behind > 0) && t('group.bar'),
  ]
    .filter(Boolean)
    .join(' ');
}

/** A button that makes a node the master. @param {Ctx} ctx @param {number} n @param {() => unknown} after */
const promote = (ctx, n, after) =>
  commandButton(ctx, 'server.promote', t('server.promote', { n }), () => ['GROUP', 'PROMOTE', n], after, {
    danger: true,
    text: t('group.promote.text', { n }),
  });

/** @param {Ctx} ctx */
export function group(ctx) {
  const facts = h('dl', { class: 'facts' }),
    why = h('p', { class: 'faint' }),
    nodes = table({
      label: t('group.nodes'),
      key: (r) => String(r.node),
      fade: false,
      stack: true,
      sort: ['node', 1],
      columns: columns(),
      actions: (now) => now().next && promote(ctx, now().node, () => again()),
      shape: (r) => String(r.next),
      empty: () => t('group.nonodes'),
    });
  const { el, again } = card(ctx, {
    title: t('group.title'),
    ms: 2000,
    body: [facts, nodes.el, why],
    read: async () => {
      const a = await get('group', {}, ctx.stop);
      fill(facts, a.group && properties(a.group));
      nodes.el.hidden = !a.group;
      nodes.set(a.nodes);
      setText(why, gaps(a));
      return a.denied;
    },
  });
  return el;
}

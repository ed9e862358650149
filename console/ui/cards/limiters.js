// The other cards of the screen Limits: denials by prefix, and the reservations of a limiter.
import { h, fill, section } from '../lib/h.js';
import { clock, errorOf, exec, integerOf } from '../lib/api.js';
import { beginning, id, show, text, upToColon } from '../lib/bytes.js';
import * as column from '../lib/column.js';
import { commandButton } from '../lib/command-button.js';
import { ttl } from '../lib/countdown.js';
import { dialog } from '../lib/dialog.js';
import { t, num } from '../lib/i18n.js';
import { table } from '../lib/table.js';

/** @import { B, Column, Ctx, Resp, TopRow } from '../lib/types.js' */
/** The sums over the keys of one prefix. @typedef {{k: B, keys: number, denied: number, allowed: number}} Prefix */
/** A reservation, with the ms since 1970 at which it is due. @typedef {{id: string, cost: string, due: number}} Reservation */

/** The sums by prefix, for prefixes of several limiters. @param {TopRow[]} rows @param {(r: TopRow) => number} minutes */
function prefixesOf(rows, minutes) {
  /** @type {Map<string, Prefix>} */
  const all = new Map();
  for (const r of rows) {
    const k = upToColon(r.k, 0);
    if (!k) continue;
    const p = all.get(id(k)) || { k, keys: 0, denied: 0, allowed: 0 };
    all.set(id(k), { k, keys: p.keys + 1, denied: p.denied + r.denied / minutes(r), allowed: p.allowed + r.allowed / minutes(r) });
  }
  return [...all.values()].filter((p) => p.keys > 1);
}

/** @param {Ctx} ctx @returns {Column<Prefix>[]} */
const prefixColumns = (ctx) => [
  column.of('k', t('prefix'), (r) => text(r.k), {
    wide: true,
    cell: (r) => h('a', { href: ctx.link('keys', { db: ctx.db, ...beginning(r.k) }) }, show(r.k, 60, true)),
  }),
  column.number('keys', t('limits.all'), (r) => r.keys),
  column.number('rate', t('limits.rate'), (r) => r.denied),
  column.number('allowed', t('limits.allowed'), (r) => r.allowed, { minor: true }),
];

/** A table of denials by prefix, hidden while no two limiters share one. @param {Ctx} ctx @param {(r: TopRow) => number} minutes */
export function prefixesCard(ctx, minutes) {
  const prefixes = table({
    label: t('limits.prefixes'),
    key: (r) => id(r.k),
    fade: false,
    sort: ['rate', -1],
    columns: prefixColumns(ctx),
  });
  const el = section(t('limits.prefixes'), prefixes.el);
  el.hidden = true;
  return {
    el,
    /** @param {TopRow[]} rows */
    set(rows) {
      const all = prefixesOf(rows, minutes);
      el.hidden = !all.length;
      prefixes.set(all);
    },
  };
}

/** The reservations in a reply of RL.INFO. @param {Resp} reply @returns {Reservation[]} */
function reservationsIn(reply) {
  const pairs = (reply && typeof reply === 'object' && !Array.isArray(reply) && reply.map) || [],
    list = pairs.find(([name]) => text(/** @type {B} */ (name)) === 'reservations')?.[1],
    at = clock();
  if (!Array.isArray(list)) return [];
  return list.map((x) => {
    const [name, cost, us] = Array.isArray(x) ? x.map((v) => integerOf(v) || '') : [];
    return { id: name, cost, due: at + Number(us) / 1000 };
  });
}

/** @returns {Column<Reservation>[]} */
const reservationColumns = () => [
  column.code('id', 'ID', (r) => r.id),
  column.of('cost', t('limits.cost'), (r) => Number(r.cost), { num: true, cell: (r) => num(r.cost) }),
  column.of('due', t('queues.due'), (r) => r.due, { num: true, cell: (r) => ttl(r.due - clock()) }),
];

/** Shows the reservations of a limiter, each with a button to cancel it. @param {Ctx} ctx @param {B} k */
export async function showReservations(ctx, k) {
  const why = h('p', { class: 'error', role: 'alert' }),
    o = { danger: true, text: t('limits.cancel.text'), unchanged: t('limits.cancel.gone') };
  const rows = table({
    label: t('limits.reservations'),
    key: (r) => r.id,
    sort: ['due', 1],
    columns: reservationColumns(),
    actions: (now) => commandButton(ctx, 'limits.cancel', t('limits.cancel'), () => ['RL.CANCEL', k, now().id], read, o),
    empty: () => t('limits.noreservations'),
  });
  async function read() {
    const { reply, text: words } = await exec(ctx.db, ['RL.INFO', k]);
    fill(why, errorOf(reply) ? words : '');
    rows.set(reservationsIn(reply));
  }
  await read();
  await dialog({ title: t('limits.reservations') + ': ' + text(k), wide: true, body: [why, rows.el] });
}

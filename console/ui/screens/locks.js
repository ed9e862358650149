// Locks: locks and semaphores with their holders and waiting clients. cards/lock.js shows one of them in detail.
import { h, fill, setText, section } from '../lib/h.js';
import { clock } from '../lib/api.js';
import * as column from '../lib/column.js';
import { since } from '../lib/countdown.js';
import { samples } from '../lib/events.js';
import { table } from '../lib/table.js';
import { listed, missing, partly } from '../lib/poll.js';
import { firstCommand } from '../cards/first-command.js';
import { Leases, showLock } from '../cards/lock.js';
import { show, text, url } from '../lib/bytes.js';
import { t, num, span } from '../lib/i18n.js';

/** @import { Column, Ctx, LockRow } from '../lib/types.js' */

export const title = 'locks.title';

/** The holder whose lease ends first. @param {LockRow} r */
const firstEnd = (r) => [...r.holders].sort((a, b) => a.until - b.until)[0];

/** The time at which the first holder got the lock. @param {LockRow} r */
const heldSince = (r) => Math.min(...r.holders.map((x) => x.since));

/** @param {Ctx} ctx @param {Leases} leases @returns {Column<LockRow>[]} */
const columns = (ctx, leases) => [
  column.key(ctx, 'locks'),
  column.of('kind', t('keys.type'), (r) => r.kind, { minor: true, cell: (r) => t('locks.' + (r.kind === 'lock' ? r.mode : 'semaphore')) }),
  column.of('holder', t('locks.holder'), (r) => text(r.holders[0]?.owner), {
    wide: true,
    cell: (r) => [show(r.holders[0]?.owner, 28, true), r.holders.length > 1 && ' +' + num(r.holders.length - 1)],
  }),
  column.of('held', t('locks.held'), (r) => clock() - heldSince(r), { num: true, minor: true, cell: (r) => since(heldSince(r)) }),
  column.countdown(
    'lease',
    t('locks.lease'),
    (r) => firstEnd(r)?.until,
    (r) => leases.spanOf(r.k, firstEnd(r)),
  ),
  column.of('waiting', t('locks.waiting'), (r) => r.waiting, {
    num: true,
    cell: (r) => h('span', { class: r.waiting ? 'look' : '' }, num(r.waiting)),
  }),
  column.of('longest', t('locks.longest'), (r) => r.longest, { num: true, cell: (r) => (r.waiting ? span(r.longest) : '') }),
];

/** A line about the leases that were lost in the last minute. @param {Ctx} ctx */
function lostLeases(ctx) {
  const el = h('p', { class: 'look', hidden: true });
  function paint() {
    const n =
      samples()
        .at(-1)
        ?.attention?.find((a) => a.code === 'leases')?.n || 0;
    el.hidden = !n;
    setText(el, t('locks.lost', { n }));
  }
  ctx.onEvent('sample', '', paint);
  paint();
  return el;
}

/** @param {HTMLElement} root @param {Ctx} ctx */
export function open(root, ctx) {
  const { db, params } = ctx,
    note = h('p', { class: 'faint' });
  if (params.has('k')) {
    showLock(root, ctx);
    return;
  }
  const leases = new Leases();
  const locks = table({
    label: t('locks.title'),
    key: column.rowKey,
    fade: false,
    sort: ['held', -1],
    sorted: (by) => list.sorted(by),
    open: (r) => ctx.go('locks', { db, k: url(r.k) }),
    columns: columns(ctx, leases),
    empty: () => (params.get('match') ? t('keys.nomatch') : [t('locks.none'), firstCommand(ctx, 'LOCK.ACQUIRE report worker-1 30000')]),
  });
  const list = listed(ctx, 'locks', '-held', (a) => {
    leases.note(a.rows);
    locks.set(a.rows);
    setText(note, missing(a.denied) || partly(a));
  });
  fill(
    root,
    h('div', { class: 'titlebar' }, h('h1', null, t('locks.title')), list.filter),
    h('p', { class: 'faint' }, t('locks.about')),
    lostLeases(ctx),
    note,
    section(null, locks.el),
  );
}

// Locks: locks and semaphores, their holders and their waiters. cards/lock.js has one of them in detail.
import { h, fill, setText, section } from '../lib/h.js';
import * as column from '../lib/column.js';
import { table } from '../lib/table.js';
import { listed, missing, partly } from '../lib/poll.js';
import { showLock } from '../cards/lock.js';
import { show, text, url } from '../lib/bytes.js';
import { t, num, span } from '../lib/i18n.js';

/** @import { Column, Ctx, LockRow } from '../lib/types.js' */

export const title = 'locks.title';

/** The end of the first lease; Infinity without a holder. @param {LockRow} r */
const firstEnd = (r) => Math.min(...r.holders.map((x) => x.until));

/** @param {Ctx} ctx @returns {Column<LockRow>[]} */
const columns = (ctx) => [
  column.key(ctx, 'locks'),
  column.of('kind', t('keys.type'), (r) => r.kind, { minor: true, cell: (r) => t('locks.' + (r.kind === 'lock' ? r.mode : 'semaphore')) }),
  column.of('holder', t('locks.holder'), (r) => text(r.holders[0]?.owner), {
    wide: true,
    cell: (r) => [show(r.holders[0]?.owner, 28, true), r.holders.length > 1 && ' +' + num(r.holders.length - 1)],
  }),
  lease(),
  column.of('waiting', t('locks.waiting'), (r) => r.waiting, {
    num: true,
    cell: (r) => h('span', { class: r.waiting ? 'look' : '' }, num(r.waiting)),
  }),
  column.of('longest', t('locks.longest'), (r) => r.longest, { num: true, cell: (r) => (r.waiting ? span(r.longest) : '') }),
];

/** @returns {Column<LockRow>} */
function lease() {
  /** @type {Column<LockRow>} */
  const counts = column.countdown('lease', t('locks.lease'), firstEnd);
  return { ...counts, cell: (r) => (r.holders.length ? counts.cell?.(r) : '') };
}

/** @param {HTMLElement} root @param {Ctx} ctx */
export function open(root, ctx) {
  const { db, params } = ctx,
    note = h('p', { class: 'faint' });
  if (params.has('k')) {
    showLock(root, ctx);
    return;
  }
  const locks = table({
    label: t('locks.title'),
    key: column.rowKey,
    fade: false,
    sort: ['waiting', -1],
    sorted: (by) => list.sorted(by),
    open: (r) => ctx.go('locks', { db, k: url(r.k) }),
    columns: columns(ctx),
    empty: () =>
      params.get('match') ? t('keys.nomatch') : [t('locks.none'), h('pre', { class: 'command' }, 'LOCK.ACQUIRE report worker-1 30000')],
  });
  const list = listed(ctx, 'locks', '-waiting', (a) => {
    locks.set(a.rows);
    setText(note, missing(a.denied) || partly(a));
  });
  fill(
    root,
    h('div', { class: 'titlebar' }, h('h1', null, t('locks.title')), list.filter),
    h('p', { class: 'faint' }, t('locks.about')),
    note,
    section(null, locks.el),
  );
}

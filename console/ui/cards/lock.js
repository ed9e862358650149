// One lock or semaphore: its holders, and the line of its waiters.
import { h, fill, section } from '../lib/h.js';
import { clock, get, isGone } from '../lib/api.js';
import * as column from '../lib/column.js';
import { commandButton } from '../lib/command-button.js';
import { table } from '../lib/table.js';
import { poll } from '../lib/poll.js';
import { id, show } from '../lib/bytes.js';
import { t, num, span } from '../lib/i18n.js';

/** @import { Column, Ctx, HolderRow, LockRow, WaiterRow } from '../lib/types.js' */

/** @returns {Column<HolderRow>[]} */
const holderColumns = () => [
  column.name('owner', t('locks.holder'), (r) => r.owner, { wide: true }, 100),
  column.of('permits', t('locks.permits'), (r) => r.permits || 1, { num: true, minor: true }),
  column.of('token', t('locks.token'), (r) => r.token, { num: true, minor: true }),
  column.countdown('lease', t('locks.lease'), (r) => r.until),
];

/** @returns {Column<WaiterRow>[]} */
const waiterColumns = () => [
  column.name('owner', t('locks.waiter'), (r) => r.owner, { wide: true }, 100),
  column.of('client', t('locks.client'), (r) => r.client?.id, { cell: (r) => (r.client ? r.client.id + ' ' + r.client.addr : '–') }),
  column.of('mode', t('locks.wants'), (r) => r.mode || r.permits, {
    minor: true,
    cell: (r) => (r.mode ? t('locks.' + r.mode) : num(r.permits)),
  }),
  column.of('since', t('locks.longest'), (r) => r.since, { num: true, cell: (r) => span(clock() - r.since) }),
];

/** @param {LockRow} lock @param {HolderRow} holder */
const releaseCommand = (lock, holder) =>
  lock.kind === 'lock' ? ['LOCK.RELEASE', lock.k, holder.owner, holder.token] : ['SEM.RELEASE', lock.k, holder.owner];

/** @param {HTMLElement} root @param {Ctx} ctx */
export function showLock(root, ctx) {
  const { db } = ctx,
    k = ctx.params.get('k') || '',
    head = h('div', { class: 'titlebar' });
  /** @type {LockRow} */
  let lock;
  const holders = table({
    label: t('locks.holders'),
    key: (r) => id(r.owner) + r.token,
    fade: false,
    columns: holderColumns(),
    actions: (now) =>
      commandButton(
        ctx,
        lock.kind === 'lock' ? 'locks.release' : 'locks.semrelease',
        t('locks.release'),
        () => releaseCommand(lock, now()),
        () => again(),
        { danger: true, text: t('locks.release.text'), unchanged: t('locks.changed') },
      ),
  });
  const waiters = table({
    label: t('locks.line'),
    key: (r) => id(r.owner) + (r.client ? r.client.id : ''),
    fade: false,
    columns: waiterColumns(),
    actions: (now) =>
      now().client &&
      kill(
        ctx,
        () => now().client?.id ?? '',
        () => again(),
      ),
    empty: () => t('locks.noline'),
  });
  fill(
    root,
    h('p', null, h('a', { href: ctx.link('locks', { db }) }, t('locks.others'))),
    head,
    section(t('locks.holders'), h('div', null, holders.el)),
    section(t('locks.line'), h('div', null, waiters.el)),
  );
  const again = poll(ctx, 1000, async () => {
    try {
      lock = await get('lock', { db, k }, ctx.stop);
      fill(
        head,
        h('h1', null, show(lock.k, 120)),
        h('span', { class: 'badge' }, t('locks.' + (lock.kind === 'lock' ? lock.mode : 'semaphore'))),
      );
      holders.set(lock.holders);
      waiters.set(lock.line || []);
    } catch (e) {
      if (!isGone(e)) throw e;
      fill(head, h('h1', null, t('locks.free')));
      holders.set([]);
      waiters.set([]);
    }
  });
}

/** A button that closes a connection. @param {Ctx} ctx @param {() => string|number} client @param {() => unknown} after */
const kill = (ctx, client, after) =>
  commandButton(ctx, 'locks.kill', t('locks.kill'), () => ['CLIENT', 'KILL', 'ID', client()], after, {
    danger: true,
    unchanged: t('server.killed'),
  });

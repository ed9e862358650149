// One lock or semaphore: its holders and its waiting clients.
import { h, fill, section } from '../lib/h.js';
import { clock, get, isGone } from '../lib/api.js';
import * as column from '../lib/column.js';
import { commandButton } from '../lib/command-button.js';
import { table } from '../lib/table.js';
import { poll } from '../lib/poll.js';
import { id, show, url } from '../lib/bytes.js';
import { since } from '../lib/countdown.js';
import { t, num, span } from '../lib/i18n.js';

/** @import { B, Column, Ctx, HolderRow, LockRow, WaiterRow } from '../lib/types.js' */

/** If the ends of two leases differ by less than this, they are the same lease, ms. */
const SAME_LEASE = 20;

/**
 * The spans of leases, for bars. The server tells when a holder got the lock and when its lease ends. The difference is the span, until
 * the holder renews the lease. The page notices a renewal, and begins a new span.
 */
export class Leases {
  /** @type {Map<string, {until: number, whole: number}>} */
  known = new Map();

  /** Records the holders of locks. @param {LockRow[]} locks */
  note(locks) {
    const next = new Map();
    for (const { k, holders } of locks)
      for (const x of holders) {
        const old = this.known.get(keyOf(k, x)),
          { until } = x;
        if (!old) next.set(keyOf(k, x), { until, whole: until - x.since });
        else next.set(keyOf(k, x), until > old.until + SAME_LEASE ? { until, whole: until - clock() } : old);
      }
    this.known = next;
  }

  /** @param {B} k @param {HolderRow|undefined} x */
  spanOf(k, x) {
    return x && this.known.get(keyOf(k, x))?.whole;
  }
}

/** @param {B} k @param {HolderRow} x */
const keyOf = (k, x) => [id(k), id(x.owner), x.token].join(' ');

/** @param {LockRow['kind']} kind @param {(x: HolderRow) => number|undefined} whole @returns {Column<HolderRow>[]} */
const holderColumns = (kind, whole) => [
  column.name('owner', t('locks.holder'), (r) => r.owner, { wide: true }, 100),
  ...(kind === 'lock' ? [] : [column.of('permits', t('locks.permits'), (/** @type {HolderRow} */ r) => r.permits || 1, { num: true })]),
  column.of('token', t('locks.token'), (r) => r.token, { num: true }),
  column.of('held', t('locks.held'), (r) => clock() - r.since, { num: true, cell: (r) => since(r.since) }),
  column.countdown('lease', t('locks.lease'), (r) => r.until, whole),
];

/** A client, as a link to its row in the list of clients. @param {Ctx} ctx @param {WaiterRow} r */
const clientCell = (ctx, { client }) =>
  client ? h('a', { href: ctx.link('server', { find: client.addr }) }, client.id + ' ' + client.addr) : '–';

/** @param {Ctx} ctx @returns {Column<WaiterRow>[]} */
const waiterColumns = (ctx) => [
  column.name('owner', t('locks.waiter'), (r) => r.owner, { wide: true }, 100),
  column.of('client', t('locks.client'), (r) => r.client?.id, { cell: (r) => clientCell(ctx, r) }),
  column.of('mode', t('locks.wants'), (r) => r.mode || r.permits, {
    cell: (r) => (r.mode ? t('locks.' + r.mode) : num(r.permits)),
  }),
  column.of('since', t('locks.waits'), (r) => r.since, { num: true, cell: (r) => span(clock() - r.since) }),
];

/** @param {LockRow} lock @param {HolderRow} holder */
const releaseCommand = (lock, holder) =>
  lock.kind === 'lock' ? ['LOCK.RELEASE', lock.k, holder.owner, holder.token] : ['SEM.RELEASE', lock.k, holder.owner];

/**
 * The holders of a lock of a known kind, each with a button.
 * @param {Ctx} ctx
 * @param {() => LockRow} lock
 * @param {Leases} leases
 * @param {() => unknown} after called after a release
 */
function holdersTable(ctx, lock, leases, after) {
  const { kind } = lock(),
    o = { danger: true, text: t('locks.release.text'), unchanged: t('locks.changed') };
  return table({
    label: t('locks.holders'),
    key: (r) => id(r.owner) + r.token,
    fade: false,
    columns: holderColumns(kind, (x) => leases.spanOf(lock().k, x)),
    actions: (now) =>
      commandButton(
        ctx,
        kind === 'lock' ? 'locks.release' : 'locks.semrelease',
        t('locks.release'),
        () => releaseCommand(lock(), now()),
        after,
        o,
      ),
  });
}

/** The name of a lock, its mode, and a link to its key. @param {Ctx} ctx @param {LockRow} lock */
const headOf = (ctx, { k, kind, mode }) => [
  h('h1', null, show(k, 120)),
  h('span', { class: 'badge' }, t('locks.' + (kind === 'lock' ? mode : 'semaphore'))),
  h('a', { href: ctx.link('key', { db: ctx.db, k: url(k) }) }, t('queues.raw')),
];

/** @param {HTMLElement} root @param {Ctx} ctx */
export function showLock(root, ctx) {
  const { db } = ctx,
    k = ctx.params.get('k') || '',
    leases = new Leases(),
    head = h('div', { class: 'titlebar' }),
    held = h('div');
  /** @type {LockRow} */
  let lock;
  /** null until the kind of the lock is known. @type {ReturnType<typeof holdersTable>|undefined} */
  let holders;
  const showHolders = () => {
    const made = holdersTable(
      ctx,
      () => lock,
      leases,
      () => again(),
    );
    fill(held, made.el);
    return made;
  };
  const waiters = table({
    label: t('locks.line'),
    key: (r) => id(r.owner) + (r.client ? r.client.id : ''),
    fade: false,
    columns: waiterColumns(ctx),
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
    section(t('locks.holders'), held),
    section(t('locks.line'), h('div', null, waiters.el)),
  );
  const again = poll(ctx, 1000, async () => {
    try {
      lock = await get('lock', { db, k }, ctx.stop);
      fill(head, headOf(ctx, lock));
      leases.note([lock]);
      holders ??= showHolders();
      holders.set(lock.holders);
      waiters.set(lock.line || []);
    } catch (e) {
      if (!isGone(e)) throw e;
      fill(head, h('h1', null, t('locks.free')));
      holders?.set([]);
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

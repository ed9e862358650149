// Locks: locks and semaphores, their holders and their waiters; one of them in detail.
import { h, fill, say } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { table } from '../lib/table.js';
import { listed, live, missing, partly } from '../lib/poll.js';
import { ttl } from '../lib/countdown.js';
import { clock } from '../lib/events.js';
import { id, show, text, url } from '../lib/bytes.js';
import { t, num, span } from '../lib/i18n.js';

export const title = 'locks.title';

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const { db, params, button } = ctx,
    k = params.get('k') || '';
  const said = h('p', { class: 'faint' });
  if (params.has('k')) {
    detail();
    return;
  }
  const one = table({
    label: t('locks.title'),
    key: (r) => id(r.k),
    fade: false,
    sort: ['waiting', -1],
    sorted: (by) => all.sorted(by),
    open: (r) => ctx.go('locks', { db, k: url(r.k) }),
    columns: [
      {
        id: 'k',
        label: t('keys.name'),
        wide: true,
        value: (r) => text(r.k),
        cell: (r) => h('a', { href: ctx.link('locks', { db, k: url(r.k) }) }, show(r.k, 100, true)),
      },
      {
        id: 'kind',
        label: t('keys.type'),
        minor: true,
        value: (r) => r.kind,
        cell: (r) => t('locks.' + (r.kind === 'lock' ? r.mode : 'semaphore')),
      },
      {
        id: 'holder',
        label: t('locks.holder'),
        wide: true,
        value: (r) => text((r.holders[0] || {}).owner),
        cell: (r) => [show((r.holders[0] || {}).owner, 28, true), r.holders.length > 1 && ' +' + num(r.holders.length - 1)],
      },
      {
        id: 'lease',
        label: t('locks.lease'),
        num: true,
        value: (r) => Math.min(...r.holders.map((/** @type {any} */ x) => x.until)),
        cell: (r) => {
          const at = clock();
          return r.holders.length ? ttl(Math.max(0, Math.min(...r.holders.map((/** @type {any} */ x) => x.until)) - at), at) : '';
        },
      },
      {
        id: 'waiting',
        label: t('locks.waiting'),
        num: true,
        value: (r) => r.waiting,
        cell: (r) => h('span', { class: r.waiting ? 'look' : '' }, num(r.waiting)),
      },
      { id: 'longest', label: t('locks.longest'), num: true, value: (r) => r.longest, cell: (r) => (r.waiting ? span(r.longest) : '') },
    ],
    empty: () =>
      params.get('match') ? t('keys.nomatch') : [t('locks.none'), h('pre', { class: 'command' }, 'LOCK.ACQUIRE report worker-1 30000')],
  });
  const all = listed(ctx, 'locks', '-waiting', (a) => {
    one.set(a.rows);
    say(said, missing(a.denied, t) || partly(a));
  });
  fill(
    root,
    h('div', { class: 'titlebar' }, h('h1', null, t('locks.title')), all.filter),
    h('p', { class: 'faint' }, t('locks.about')),
    said,
    h('section', { class: 'card' }, one.el),
  );

  function detail() {
    const head = h('div', { class: 'titlebar' }),
      holders = h('div'),
      line = h('div');
    /** @type {any} */ let row = null;
    fill(
      root,
      h('p', null, h('a', { href: ctx.link('locks', { db }) }, t('locks.others'))),
      head,
      h('section', { class: 'card' }, h('h2', null, t('locks.holders')), holders),
      h('section', { class: 'card' }, h('h2', null, t('locks.line')), line),
    );
    async function release(/** @type {any} */ who) {
      const a = row.kind === 'lock' ? ['LOCK.RELEASE', row.k, who.owner, who.token] : ['SEM.RELEASE', row.k, who.owner];
      if (await run(db, a, { danger: true, text: t('locks.release.text'), unchanged: t('locks.changed') })) again();
    }
    const held = table({
      label: t('locks.holders'),
      key: (r) => id(r.owner) + r.token,
      fade: false,
      columns: [
        { id: 'owner', label: t('locks.holder'), wide: true, value: (r) => text(r.owner), cell: (r) => show(r.owner, 100) },
        { id: 'permits', label: t('locks.permits'), num: true, minor: true, value: (r) => r.permits || 1 },
        { id: 'token', label: t('locks.token'), num: true, minor: true, value: (r) => r.token },
        {
          id: 'lease',
          label: t('locks.lease'),
          num: true,
          value: (r) => r.until,
          cell: (r) => {
            const at = clock();
            return ttl(Math.max(0, r.until - at), at);
          },
        },
      ],
      actions: (now) => [
        button(row.kind === 'lock' ? 'locks.release' : 'locks.semrelease', t('locks.release'), () => release(now()), {
          danger: true,
          small: true,
        }),
      ],
    });
    const wait = table({
      label: t('locks.line'),
      key: (r) => id(r.owner) + (r.client ? r.client.id : ''),
      fade: false,
      columns: [
        { id: 'owner', label: t('locks.waiter'), wide: true, value: (r) => text(r.owner), cell: (r) => show(r.owner, 100) },
        {
          id: 'client',
          label: t('locks.client'),
          value: (r) => (r.client ? r.client.id : ''),
          cell: (r) => (r.client ? r.client.id + ' ' + r.client.addr : '–'),
        },
        {
          id: 'mode',
          label: t('locks.wants'),
          minor: true,
          value: (r) => r.mode || r.permits,
          cell: (r) => (r.mode ? t('locks.' + r.mode) : num(r.permits)),
        },
        { id: 'since', label: t('locks.longest'), num: true, value: (r) => r.since, cell: (r) => span(clock() - r.since) },
      ],
      actions: (now) => [
        now().client &&
          button(
            'locks.kill',
            t('locks.kill'),
            async () => {
              if (await run(db, ['CLIENT', 'KILL', 'ID', now().client.id], { danger: true, unchanged: t('server.killed') })) again();
            },
            { small: true },
          ),
      ],
      empty: () => t('locks.noline'),
    });
    fill(holders, held.el);
    fill(line, wait.el);
    const again = live(ctx, 1000, async () => {
      try {
        row = await get('lock', { db, k }, ctx.stop);
      } catch (e) {
        if (!(/** @type {any} */ (e).gone)) throw e;
        fill(head, h('h1', null, t('locks.free')));
        held.set([]);
        wait.set([]);
        return;
      }
      fill(
        head,
        h('h1', null, show(row.k, 120)),
        h('span', { class: 'badge' }, t('locks.' + (row.kind === 'lock' ? row.mode : 'semaphore'))),
      );
      held.set(row.holders);
      wait.set(row.line || []);
    });
  }
}

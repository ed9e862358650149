// Server: what it is, its replication, files, clients, configuration and users, and every field of INFO.
import { h, fill, say } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { table } from '../lib/table.js';
import { live, missing, refusal } from '../lib/poll.js';
import { card, col, fact } from '../cards/card.js';
import { files, replication } from '../cards/replication.js';
import { configuration } from '../cards/config.js';
import { audit, refusals, users } from '../cards/users.js';
import { show, text } from '../lib/bytes.js';
import { t, num, size, span } from '../lib/i18n.js';

export const title = 'server.title';

/** The card of the clients. @param {import('../app.js').Ctx} ctx */
function clients(ctx) {
  const seconds = (/** @type {string} */ name) =>
    col(name, t('server.' + name), (r) => r[name], {
      num: true,
      minor: name === 'age',
      cell: (/** @type {any} */ r) => (r[name] ? span(r[name] * 1000) : '0 s'),
    });
  /** A column of a text that the client has chosen. @param {string} id @param {string} label @param {(r: any) => string} value */
  const named = (id, label, value) =>
    col(id, label, value, { minor: true, cell: (/** @type {any} */ r) => (value(r) ? show({ t: value(r) }, 40, true) : '') });
  let by = 'id',
    find = '';
  const search = h('input', {
    type: 'search',
    placeholder: t('server.clients.find'),
    'aria-label': t('server.clients.find'),
    spellcheck: 'false',
    on: {
      input: () => {
        find = search.value.trim();
        c.again();
      },
    },
  });
  const more = h('p', { class: 'faint' });
  const rows = table({
    label: t('server.clients'),
    key: (r) => String(r.id),
    fade: false,
    sort: ['id', 1],
    sorted: (s) => {
      by = s;
      c.again();
    },
    columns: [
      col('id', 'ID', (r) => r.id, { num: true, minor: true }),
      col('addr', t('server.addr'), (r) => r.addr, { wide: true, cell: (/** @type {any} */ r) => h('span', { class: 'mono' }, r.addr) }),
      named('name', t('keys.name'), (r) => r.name),
      col('user', t('server.user'), (r) => text(r.user), { cell: (/** @type {any} */ r) => show(r.user, 60) }),
      col('db', 'db', (r) => r.db, { num: true, minor: true }),
      { ...named('cmd', t('performance.command'), (r) => r.cmd), minor: false },
      seconds('age'),
      seconds('idle'),
      col('mem', t('keys.bytes'), (r) => r.mem, { num: true, minor: true, cell: (/** @type {any} */ r) => size(r.mem) }),
      named('lib', t('server.lib'), (r) => (r.lib ? r.lib + ' ' + r.libVer : '')),
    ],
    actions: (now) => [
      ctx.button(
        'server.kill',
        t('server.kill'),
        async () => {
          if (await run(ctx.db, ['CLIENT', 'KILL', 'ID', now().id], { danger: true, unchanged: t('server.killed') })) c.again();
        },
        { small: true, danger: true },
      ),
    ],
    empty: () => t(find ? 'keys.nomatch' : 'server.noclients'),
  });
  const c = card(ctx, {
    title: t('server.clients'),
    ms: 2000,
    tools: search,
    body: [rows.el, more],
    read: async () => {
      const a = await get('clients', { find, sort: by }, ctx.stop);
      rows.el.hidden = search.hidden = !!a.denied;
      rows.set(a.rows);
      say(more, a.more ? t('list.first', { n: a.rows.length, all: a.looked }) : '');
      return a.denied;
    },
  });
  return c.el;
}

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const facts = h('dl', { class: 'facts' }),
    why = h('p', { class: 'faint' });
  const info = table({
    label: 'INFO',
    key: (r) => r.section + '.' + r.name,
    fade: false,
    columns: [
      col('section', t('server.section'), (r) => r.section, { minor: true }),
      col('name', t('server.field'), (r) => r.name, { cell: (/** @type {any} */ r) => h('span', { class: 'mono any' }, r.name) }),
      col('value', t('key.value'), (r) => r.value, {
        wide: true,
        cell: (/** @type {any} */ r) => h('span', { class: 'mono any' }, r.value),
      }),
    ],
  });
  let find = '';
  const search = h('input', {
    type: 'search',
    placeholder: t('server.find'),
    'aria-label': t('server.find'),
    spellcheck: 'false',
    on: {
      input: () => {
        find = search.value.toLowerCase();
        paint();
      },
    },
  });
  const factCard = h('section', { class: 'card' }, facts);
  const infoCard = h('section', { class: 'card tall' }, h('div', { class: 'titlebar' }, h('h2', null, 'INFO'), search), info.el);
  fill(
    root,
    h('div', { class: 'titlebar' }, h('h1', null, t('server.title'))),
    why,
    factCard,
    h('div', { class: 'cols' }, replication(ctx), files(ctx)),
    clients(ctx),
    configuration(ctx),
    users(ctx),
    refusals(ctx),
    audit(ctx),
    infoCard,
  );
  /** @type {any[]} */ let fields = [];
  function paint() {
    info.set(fields.filter((r) => !find || (r.section + ' ' + r.name).toLowerCase().includes(find)));
  }
  live(ctx, 2000, async () => {
    /** @type {any} */ let a;
    try {
      a = await get('server', {}, ctx.stop);
    } catch (e) {
      const err = /** @type {any} */ (e);
      if (err.passing || err.name === 'AbortError' || err.login) throw e;
      say(why, refusal(e)); // the cards go on
      return;
    }
    const i = a.info,
      s = i.server || {},
      r = i.replication || {},
      m = i.memory || {},
      x = i.expiry || {};
    const offset = Number(x.clock_offset_us) || 0;
    factCard.hidden = infoCard.hidden = !!a.denied;
    if (!a.denied) {
      fill(
        facts,
        fact(t('server.version'), s.ebb_version || s.redis_version),
        fact(t('server.uptime'), span(Number(s.uptime_in_seconds) * 1000)),
        fact(t('server.memory'), size(Number(m.used_memory)) + (Number(m.maxmemory) ? ' / ' + size(Number(m.maxmemory)) : '')),
        fact(t('server.rss'), size(Number(m.used_memory_rss))),
        fact(t('server.role'), t(r.role === 'slave' ? 'role.replica' : 'role.master')),
        fact(t('server.replicas'), num(Number(r.connected_slaves))),
        x.clock_offset_us !== undefined &&
          fact(t('server.clock'), Math.abs(offset) < 1000 ? '0 ms' : span(offset / 1000), Math.abs(offset) > 1e6 ? 'look' : ''),
        Number(x.clock_steps) > 0 && fact(t('server.steps'), num(Number(x.clock_steps)), 'look'),
      );
    }
    fields = Object.entries(i)
      .filter(([name]) => !['commandstats', 'latencystats', 'errorstats'].includes(name))
      .flatMap(([section, f]) => Object.entries(f).map(([name, value]) => ({ section, name, value })));
    paint();
    say(why, missing(a.denied, t));
  });
}

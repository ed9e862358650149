// Server: what it is, its clients, its files and its replication, and every field of INFO.
import { h, fill, say } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { table } from '../lib/table.js';
import { live } from '../lib/live.js';
import { show, text } from '../lib/bytes.js';
import { t, num, size, span } from '../lib/i18n.js';

export const title = 'server.title';

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const { button } = ctx, facts = h('dl', { class: 'facts' }), why = h('p', { class: 'faint' });
  const clients = table({ label: t('server.clients'), key: (r) => String(r.id), fade: false, sort: ['id', 1], columns: [
    { id: 'id', label: 'ID', num: true, value: (r) => r.id },
    { id: 'addr', label: t('server.addr'), wide: true, value: (r) => r.addr, cell: (r) => h('span', { class: 'mono' }, r.addr) },
    { id: 'name', label: t('keys.name'), value: (r) => r.name }, { id: 'user', label: t('server.user'), value: (r) => text(r.user), cell: (r) => show(r.user, 60) },
    { id: 'db', label: 'db', num: true, minor: true, value: (r) => r.db }, { id: 'cmd', label: t('performance.command'), value: (r) => r.cmd },
    { id: 'age', label: t('server.age'), num: true, value: (r) => r.age, cell: (r) => span(r.age * 1000) }, { id: 'idle', label: t('server.idle'), num: true, value: (r) => r.idle, cell: (r) => span(r.idle * 1000) },
    { id: 'mem', label: t('keys.bytes'), num: true, minor: true, value: (r) => r.mem, cell: (r) => size(r.mem) },
    { id: 'lib', label: t('server.lib'), minor: true, value: (r) => (r.lib ? r.lib + ' ' + r.libVer : '') }],
  actions: (now) => [button('server.kill', t('server.kill'), async () => { if (await run(ctx.db, ['CLIENT', 'KILL', 'ID', now().id], { danger: true })) again(); }, { small: true, danger: true })],
  empty: () => t('server.noclients') });
  const info = table({ label: 'INFO', key: (r) => r.section + '.' + r.name, fade: false, columns: [
    { id: 'section', label: t('server.section'), minor: true, value: (r) => r.section }, { id: 'name', label: t('server.field'), value: (r) => r.name, cell: (r) => h('span', { class: 'mono' }, r.name) },
    { id: 'value', label: t('key.value'), wide: true, value: (r) => r.value, cell: (r) => h('span', { class: 'mono' }, r.value) }] });
  let find = '';
  const search = h('input', { type: 'search', placeholder: t('server.find'), 'aria-label': t('server.find'), spellcheck: 'false', on: { input: () => { find = search.value.toLowerCase(); paint(); } } });
  const verb = (/** @type {string} */ action, /** @type {string[]} */ a) => button('server.' + action, t('server.' + action), async () => { if (await run(ctx.db, a)) again(); });
  fill(root, h('div', { class: 'titlebar' }, h('h1', null, t('server.title')), h('span', { class: 'grow' }), verb('bgsave', ['BGSAVE']), verb('bgrewrite', ['BGREWRITEAOF'])), why,
    h('section', { class: 'card' }, facts), h('section', { class: 'card' }, h('h2', null, t('server.clients')), clients.el),
    h('section', { class: 'card' }, h('div', { class: 'titlebar' }, h('h2', null, 'INFO'), search), info.el));
  /** @type {any[]} */ let fields = [];
  function paint() { info.set(fields.filter((r) => !find || (r.section + ' ' + r.name).toLowerCase().includes(find))); }
  const again = live(ctx, 2000, async () => {
    const a = await get('server', {}, ctx.stop), i = a.info, s = i.server || {}, p = i.persistence || {}, r = i.replication || {}, m = i.memory || {};
    const fact = (/** @type {string} */ name, /** @type {any} */ v) => v !== undefined && v !== '' && h('div', null, h('dt', null, t('server.' + name)), h('dd', null, v));
    fill(facts, fact('version', s.ebb_version || s.redis_version), fact('uptime', span(Number(s.uptime_in_seconds) * 1000)), fact('memory', size(Number(m.used_memory))), fact('rss', size(Number(m.used_memory_rss))),
      fact('role', r.role === 'slave' ? t('role.replica') + ' ' + r.master_host + ':' + r.master_port + ' ' + r.master_link_status : t('role.master')), fact('replicas', num(Number(r.connected_slaves))),
      fact('saved', Number(p.rdb_last_save_time) ? span(a.now - Number(p.rdb_last_save_time) * 1000) : undefined), fact('changes', num(Number(p.rdb_changes_since_last_save))),
      fact('aof', p.aof_enabled === '1' ? size(Number(p.aof_current_size)) : t('server.off')));
    fields = Object.entries(i).filter(([name]) => !['commandstats', 'latencystats', 'errorstats'].includes(name)).flatMap(([section, f]) => Object.entries(f).map(([name, value]) => ({ section, name, value })));
    paint();
    try { clients.set((await get('clients', {}, ctx.stop)).rows); say(why, ''); } catch (e) { say(why, /** @type {Error} */ (e).message); }
  });
}

// Performance: commands by calls and time, slow calls, and errors by code.
import { h, fill, say } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { table } from '../lib/table.js';
import { live } from '../lib/live.js';
import { show, text } from '../lib/bytes.js';
import { t, num, micros, time } from '../lib/i18n.js';

export const title = 'performance.title';

/** The fields of a value such as calls=1,usec=2. @param {string} s */
const fields = (s) => new Map(s.split(',').map((f) => { const [name, v] = f.split('='); return [name, Number(v)]; }));

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const { button } = ctx, said = h('p', { class: 'faint' }), why = h('p', { class: 'faint' });
  /** @type {Map<string, [number, number]>} */
  let before = new Map();
  const us = (/** @type {string} */ name, /** @type {string} */ label) => ({ id: name, label, num: true, value: (/** @type {any} */ r) => r[name], cell: (/** @type {any} */ r) => micros(r[name]) });
  const commands = table({ label: t('performance.commands'), key: (r) => r.name, fade: false, sort: ['rate', -1], columns: [
    { id: 'name', label: t('performance.command'), wide: true, value: (r) => r.name, cell: (r) => h('span', { class: 'mono' }, r.name.toUpperCase().replace('|', ' ')) },
    { id: 'rate', label: t('performance.rate'), num: true, value: (r) => r.rate, cell: (r) => num(r.rate, r.rate < 10 ? 1 : 0) },
    { id: 'calls', label: t('performance.calls'), num: true, minor: true, value: (r) => r.calls, cell: (r) => num(r.calls) },
    us('each', t('performance.each')), us('p50', 'p50'), us('p99', 'p99'), us('p999', 'p99.9'),
    { id: 'failed', label: t('performance.failed'), num: true, value: (r) => r.failed, cell: (r) => num(r.failed) },
    { id: 'rejected', label: t('performance.rejected'), num: true, minor: true, value: (r) => r.rejected, cell: (r) => num(r.rejected) }] });
  const slow = table({ label: t('performance.slow'), key: (r) => String(r.id), fade: false, columns: [
    { id: 'at', label: t('performance.at'), value: (r) => r.at, cell: (r) => time(r.at) }, us('us', t('performance.took')),
    { id: 'argv', label: t('performance.command'), wide: true, sort: false, value: (r) => r.argv.map(text).join(' '), cell: (r) => r.argv.map((/** @type {any} */ a, /** @type {number} */ i) => [i ? ' ' : '', show(a, 60)]) },
    { id: 'addr', label: t('performance.client'), minor: true, value: (r) => r.addr }], empty: () => t('performance.noslow') });
  const errors = table({ label: t('performance.errors'), key: (r) => r.code, fade: false, sort: ['n', -1], columns: [
    { id: 'code', label: t('performance.code'), wide: true, value: (r) => r.code }, { id: 'n', label: t('performance.count'), num: true, value: (r) => r.n, cell: (r) => num(r.n) }], empty: () => t('performance.noerrors') });
  fill(root, h('h1', null, t('performance.title')), said, h('section', { class: 'card' }, h('h2', null, t('performance.commands')), commands.el),
    h('section', { class: 'card' }, h('div', { class: 'titlebar' }, h('h2', null, t('performance.slow')),
      button('performance.slowreset', t('performance.slowreset'), async () => { if (await run(ctx.db, ['SLOWLOG', 'RESET'])) again(); })), why, slow.el),
    h('section', { class: 'card' }, h('h2', null, t('performance.errors')), errors.el));
  const again = live(ctx, 2000, async () => {
    const a = await get('server', {}, ctx.stop), now = new Map(), rows = [];
    const late = a.info.latencystats || {};
    for (const [name, v] of Object.entries(a.info.commandstats || {})) {
      const f = fields(String(v)), cmd = name.replace(/^cmdstat_/, ''), was = before.get(cmd), l = fields(String(late['latency_percentiles_usec_' + cmd] || ''));
      now.set(cmd, [f.get('calls'), a.now]);
      rows.push({ name: cmd, calls: f.get('calls'), rate: was && a.now > was[1] ? Math.max(0, ((f.get('calls') || 0) - was[0]) / ((a.now - was[1]) / 1000)) : 0, each: f.get('usec_per_call'),
        p50: l.get('p50'), p99: l.get('p99'), p999: l.get('p99.9'), failed: f.get('failed_calls'), rejected: f.get('rejected_calls') });
    }
    before = now;
    commands.set(rows);
    errors.set(Object.entries(a.info.errorstats || {}).map(([code, v]) => ({ code: code.replace(/^errorstat_/, ''), n: fields(String(v)).get('count') })));
    try {
      const s = await get('slowlog', {}, ctx.stop);
      slow.set(s.rows);
      say(why, s.threshold === undefined ? '' : Number(s.threshold) < 0 ? t('performance.off') : t('performance.threshold', { span: micros(Number(s.threshold)) }));
    } catch (e) { say(why, /** @type {Error} */ (e).message); }
    say(said, '');
  });
}

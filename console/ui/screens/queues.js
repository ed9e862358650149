// Queues: delay queues, their jobs by state, lateness and waiting consumers.
import { h, fill, say } from '../lib/h.js';
import { get } from '../lib/api.js';
import { table } from '../lib/table.js';
import { live, missing } from '../lib/live.js';
import { clock } from '../lib/feed.js';
import { id, show, text, url } from '../lib/bytes.js';
import { t, num, span } from '../lib/i18n.js';

export const title = 'queues.title';

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const { db } = ctx, said = h('p', { class: 'faint' });
  /** The instant at which a queue was first seen with ready jobs and no consumer. @type {Map<string, number>} */
  const alone = new Map();
  const count = (/** @type {string} */ name) => ({ id: name, label: t('queues.' + name), num: true, value: (/** @type {any} */ r) => r[name], cell: (/** @type {any} */ r) => num(r[name]) });
  const one = table({ label: t('queues.title'), key: (r) => id(r.k), fade: false, columns: [
    { id: 'k', label: t('keys.name'), wide: true, value: (r) => text(r.k), cell: (r) => [h('a', { href: ctx.link('key', { db, k: url(r.k) }) }, show(r.k, 100)),
      r.alone && [' ', h('span', { class: 'badge look' }, t('queues.unattended'))]] },
    count('delayed'), count('ready'), count('leased'),
    { id: 'late', label: t('queues.late'), num: true, value: (r) => r.late, cell: (r) => h('span', { class: r.late > 5000 ? 'look' : '' }, r.ready ? span(r.late) : '') },
    { id: 'next', label: t('queues.next'), num: true, value: (r) => r.next ?? Infinity, cell: (r) => (r.next === null ? '' : r.next > clock() ? span(r.next - clock()) : t('limits.now')) },
    { id: 'waiting', label: t('queues.consumers'), num: true, value: (r) => r.waiting, cell: (r) => num(r.waiting) },
    { id: 'dead', label: t('queues.dead'), num: true, value: (r) => r.dead, cell: (r) => (r.to && r.dead ? h('a', { href: ctx.link('key', { db, k: url(r.to) }) }, num(r.dead)) : num(r.dead)) },
    { ...count('dropped'), minor: true }],
  empty: () => [t('queues.none'), h('pre', { class: 'command' }, 'DQ.ADD mail * hello DELAY 30000')] });
  fill(root, h('h1', null, t('queues.title')), said, h('section', { class: 'card' }, one.el));
  live(ctx, 1000, async () => {
    const a = await get('queues', { db }, ctx.stop), now = clock();
    for (const r of a.rows) {
      const k = id(r.k);
      if (r.ready > 0 && r.waiting === 0 && r.leased === 0) { if (!alone.has(k)) alone.set(k, now); } else alone.delete(k);
      r.alone = alone.has(k) && now - /** @type {number} */ (alone.get(k)) > 10000;
    }
    one.set(a.rows);
    say(said, missing(a.denied, t) || (a.more ? t('list.more', { n: a.rows.length }) : ''));
  });
}

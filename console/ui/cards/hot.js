// The card of hot keys on the screen Performance. The server samples commands while the card is open.
import { h, say } from '../lib/h.js';
import { get } from '../lib/api.js';
import { table } from '../lib/table.js';
import { live, missing } from '../lib/poll.js';
import { id, show, text, url } from '../lib/bytes.js';
import { t, num, percent, span } from '../lib/i18n.js';

/** @param {import('../app.js').Ctx} ctx @returns {HTMLElement} */
export function hotKeys(ctx) {
  const said = h('p', { class: 'faint' });
  /** @param {any} r */
  const link = (r) => h('a', { href: ctx.link('key', { db: r.db, k: url(r.k) }) }, show(r.k, 100, true));
  let waiting = true,
    few = false;
  const keys = table({
    label: t('performance.hot'),
    key: (r) => r.db + id(r.k),
    fade: false,
    most: 10,
    sort: ['qps', -1],
    columns: [
      { id: 'k', label: t('keys.name'), wide: true, value: (r) => text(r.k), cell: link },
      { id: 'db', label: t('performance.hot.db'), num: true, minor: true, value: (r) => r.db },
      { id: 'qps', label: t('performance.hot.qps'), num: true, value: (r) => r.qps, cell: (r) => num(r.qps, r.qps < 10 ? 1 : 0) },
      { id: 'share', label: t('performance.hot.share'), num: true, value: (r) => r.share, cell: (r) => percent(r.share) },
    ],
    empty: () => (waiting ? '' : t(few ? 'performance.hot.few' : 'performance.hot.none')),
  });
  live(ctx, 2000, async () => {
    const a = await get('hot', {}, ctx.stop);
    waiting = a.waiting;
    few = a.few;
    keys.el.hidden = !!a.denied;
    keys.set(a.rows);
    const words = a.waiting
      ? t('performance.hot.wait', { span: span(a.window) })
      : t('performance.hot.how', { span: span(a.window), percent: percent(a.percent / 100) });
    say(said, missing(a.denied, t) || words);
  });
  return h('section', { class: 'card' }, h('h2', null, t('performance.hot')), said, keys.el);
}

// The card of hot keys on the screen Performance. The server samples commands while the card is open.
import { h, setText, section } from '../lib/h.js';
import { get } from '../lib/api.js';
import * as column from '../lib/column.js';
import { table } from '../lib/table.js';
import { poll } from '../lib/poll.js';
import { refused } from './card.js';
import { id, text } from '../lib/bytes.js';
import { t, num, percent, span } from '../lib/i18n.js';

/** @import { Column, Ctx, HotRow } from '../lib/types.js' */

/** @param {Ctx} ctx @returns {HTMLElement} */
export function hotKeys(ctx) {
  const note = h('p', { class: 'faint' });
  let waiting = true,
    few = false;
  /** @type {Column<HotRow>[]} */
  const columns = [
    column.of('k', t('keys.name'), (r) => text(r.k), { wide: true, cell: (r) => column.keyLink(ctx, 'key', r.k, r.db) }),
    column.of('db', t('performance.hot.db'), (r) => r.db, { num: true, minor: true }),
    column.of('qps', t('performance.hot.qps'), (r) => r.qps, { num: true, cell: (r) => num(r.qps, r.qps < 10 ? 1 : 0) }),
    column.of('share', t('performance.hot.share'), (r) => r.share, { num: true, cell: (r) => percent(r.share) }),
  ];
  const keys = table({
    label: t('performance.hot'),
    key: (r) => r.db + id(r.k),
    fade: false,
    most: 10,
    sort: ['qps', -1],
    columns,
    empty: () => (waiting ? '' : t(few ? 'performance.hot.few' : 'performance.hot.none')),
  });
  const el = section(t('performance.hot'), note, keys.el);
  poll(ctx, 2000, async () => {
    const a = await get('hot', {}, ctx.stop);
    waiting = a.waiting;
    few = a.few;
    keys.el.hidden = !!a.denied;
    keys.set(a.rows);
    const words = a.waiting
      ? t('performance.hot.wait', { span: span(a.window) })
      : t('performance.hot.how', { span: span(a.window), percent: percent(a.percent / 100) });
    setText(note, words);
    refused(el, a.denied || []);
  });
  return el;
}

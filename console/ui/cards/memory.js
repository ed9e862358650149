// The cards of a walk over the keys: memory by prefix, and the biggest keys.
import { h, say } from '../lib/h.js';
import { del, get, post } from '../lib/api.js';
import { live } from '../lib/poll.js';
import { table } from '../lib/table.js';
import { treemap } from '../lib/treemap.js';
import { toast } from '../lib/dialog.js';
import { ttl } from '../lib/countdown.js';
import { clock } from '../lib/events.js';
import { col } from './card.js';
import { beginning, id, show, text, url } from '../lib/bytes.js';
import { t, num, percent, size, span } from '../lib/i18n.js';

// The latest walk of this tab: its result is still there when the user comes back to the screen.
let walk = '';

/** @param {import('../app.js').Ctx} ctx @returns {HTMLElement|null} */
export function memory(ctx) {
  if (!ctx.me.can['walk.use']) return null;
  const said = h('p', { class: 'faint', role: 'status' }),
    map = h('div', { hidden: true }),
    go = h('button', { type: 'button', class: 'small' }, t('expiry.walk'));
  const sep = h(
    'select',
    { 'aria-label': t('memory.sep'), title: t('memory.sep') },
    [':', '/', '.', '-', '_', '|'].map((s) => h('option', { value: s }, t('memory.sep') + ' ' + s)),
  );
  let db = ctx.db,
    running = false;
  const name = (/** @type {any} */ r) => (r.p.t === '' ? t('prefix.none') : text(r.p));
  const rows = table({
    label: t('memory.title'),
    key: (r) => id(r.p),
    fade: false,
    sort: ['bytes', -1],
    columns: [
      col('p', t('prefix'), name, {
        wide: true,
        cell: (/** @type {any} */ r) =>
          r.p.t === ''
            ? h('span', { class: 'faint' }, name(r))
            : h('a', { href: ctx.link('keys', { db, ...beginning(r.p) }) }, show(r.p, 80, true)),
      }),
      col('keys', t('keys.title'), (r) => r.keys, { num: true, cell: (/** @type {any} */ r) => num(r.keys) }),
      col('bytes', t('keys.bytes'), (r) => r.bytes, { num: true, cell: (/** @type {any} */ r) => size(r.bytes) }),
      col('ttl', t('memory.ttl'), (r) => r.bytesTTL / Math.max(1, r.bytes), {
        num: true,
        minor: true,
        title: t('memory.ttl.why'),
        cell: (/** @type {any} */ r) => percent(r.bytesTTL / Math.max(1, r.bytes)),
      }),
      col('types', t('memory.types'), (r) => Object.keys(r.types).join(', '), { minor: true, sort: false }),
    ],
  });
  const big = table({
    label: t('memory.big'),
    key: (r) => id(r.k),
    fade: false,
    sort: ['bytes', -1],
    columns: [
      col('k', t('keys.name'), (r) => text(r.k), {
        wide: true,
        cell: (/** @type {any} */ r) => h('a', { href: ctx.link('key', { db, k: url(r.k) }) }, show(r.k, 100, true)),
      }),
      col('type', t('keys.type'), (r) => r.type, { minor: true }),
      col('bytes', t('keys.bytes'), (r) => r.bytes, { num: true, cell: (/** @type {any} */ r) => size(r.bytes) }),
      col('ttl', 'TTL', (r) => (r.pttl < 0 ? Infinity : r.pttl), { num: true, cell: (/** @type {any} */ r) => ttl(r.pttl, r.at) }),
    ],
  });
  const found = h('div', { class: 'tall', hidden: true }, map, rows.el),
    bigCard = h(
      'section',
      { class: 'card tall', hidden: true },
      h('h2', null, t('memory.big')),
      h('p', { class: 'faint' }, t('memory.big.text')),
      big.el,
    );
  async function look() {
    const w = await get('walk', { id: walk }, ctx.stop).catch((e) => {
      if (!e.gone) throw e;
      return null;
    });
    if (!w) {
      walk = '';
      running = false;
      paint();
      return;
    }
    db = w.db;
    running = !w.over;
    paint();
    say(
      said,
      w.error ||
        (w.over
          ? t('memory.done', { n: w.keys, db: String(db), size: size(w.bytes), span: span(w.took) })
          : t('expiry.walked', { share: percent(w.done), n: w.looked })),
    );
    found.hidden = bigCard.hidden = !w.rows.length;
    const at = clock();
    rows.set(w.rows.slice(0, 100));
    big.set(w.big.map((/** @type {any} */ r) => ({ ...r, at })));
    treemap(
      map,
      w.rows.map((/** @type {any} */ r) => ({
        label: name(r),
        value: r.bytes,
        title: name(r) + ' ' + size(r.bytes),
        shade: 1 - r.bytesTTL / Math.max(1, r.bytes),
        href: r.p.t === '' ? undefined : ctx.link('keys', { db, ...beginning(r.p) }),
      })),
      { rest: t('memory.rest') },
    );
  }
  const paint = () => {
    say(go, t(running ? 'keys.stop' : 'expiry.walk'));
    sep.hidden = running;
  };
  go.addEventListener('click', async () => {
    try {
      if (running) {
        await del('walk', { id: walk });
        return;
      }
      walk = (await post('walk', { db: ctx.db, kind: 'prefixes', sep: sep.value, depth: 1, match: '*' })).id;
      again();
    } catch (e) {
      toast(/** @type {Error} */ (e).message, 'bad');
    }
  });
  const again = live(ctx, 1000, async () => {
    if (walk && (running || found.hidden)) await look();
  });
  say(said, t('memory.text'));
  return h(
    'div',
    null,
    h('section', { class: 'card' }, h('div', { class: 'titlebar' }, h('h2', null, t('memory.title')), go, sep), said, found),
    bigCard,
  );
}

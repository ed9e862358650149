// The next expirations on the screen Expiry: of all times, or of the interval that the reader has selected.
import { h, fill, setText } from '../lib/h.js';
import { clock, get, refusal } from '../lib/api.js';
import * as column from '../lib/column.js';
import { table } from '../lib/table.js';
import { instantWords } from './forecast.js';
import { swatch } from './expired.js';
import { beginning, id, show, text, upToColon, url } from '../lib/bytes.js';
import { t, percent } from '../lib/i18n.js';

/** @import { B, Bucket, Column, Ctx, SoonAnswer, SoonRow } from '../lib/types.js' */
/** @import { Unit } from '../lib/i18n.js' */

/** How many rows the page asks for. Expirations before a selected interval may come first. */
const COUNT = { all: 200, interval: 1000 };

/** @param {Ctx} ctx @returns {Column<SoonRow>[]} */
const columns = (ctx) => [
  column.of('level', t('expiry.level'), (r) => r.level, { cell: (r) => swatch(r.level), minor: true }),
  column.of('k', t('key.title'), (r) => text(r.k), { wide: true, cell: (r) => column.keyLink(ctx, 'key', r.k) }),
  column.of('item', t('expiry.item'), (r) => text(r.item), {
    cell: (r) => r.item && h('span', { title: text(r.item) }, show(r.item, 80, true)),
  }),
  column.countdown('ttl', 'TTL', (r) => r.at),
];

/** Up to five prefixes that occur in the most rows. @param {SoonRow[]} rows */
function topPrefixes(rows) {
  /** @type {Map<string, {k: B, n: number}>} */
  const prefixes = new Map();
  for (const r of rows) {
    const k = upToColon(r.k, 0) || r.k,
      p = prefixes.get(id(k)) || { k, n: 0 };
    p.n++;
    prefixes.set(id(k), p);
  }
  return [...prefixes.values()].sort((x, y) => y.n - x.n).slice(0, 5);
}

/** A text about the most frequent prefixes. @param {Ctx} ctx @param {SoonRow[]} rows */
const prefixWords = (ctx, rows) => [
  t('expiry.sample', { n: rows.length }),
  ' ',
  topPrefixes(rows).map(({ k, n }, i) => [
    i ? ', ' : '',
    h('a', { href: ctx.link('keys', { db: ctx.db, ...beginning(k) }) }, show(k, 40, true)),
    ' ' + percent(n / rows.length),
  ]),
];

/** @param {Ctx} ctx @param {string} match @param {Unit} unit */
export function nextCard(ctx, match, unit) {
  const head = h('h2'),
    note = h('p', { class: 'faint' }),
    words = instantWords(unit);
  /** @type {Bucket|null} */
  let chosen = null;
  /** State of the last answer: why it failed, whether it is complete, and whether the table could show more rows. */
  let latest = { why: '', whole: false, more: false },
    asking = 0;
  /** Whether there are more rows than the table shows. Then each row that expires makes room for another. */
  const rows = table({
    label: t('expiry.next'),
    most: 15,
    key: (r) => r.level + id(r.k) + '/' + id(r.item),
    open: (r) => ctx.go('key', { db: ctx.db, k: url(r.k) }),
    columns: columns(ctx),
    empty: () => latest.why || t(latest.whole ? 'expiry.next.none' : 'expiry.next.far'),
    alive: (r) => r.at > clock(),
    tooFew: () => {
      if (latest.more && !asking) read();
    },
  });
  /** @param {SoonRow[]} shown */
  function paint(shown) {
    setText(head, chosen ? t('expiry.next.at', { from: words(chosen.from), to: words(chosen.to) }) : t('expiry.next'));
    note.hidden = shown.length < 2;
    fill(note, prefixWords(ctx, shown));
    rows.set(shown);
  }
  async function read() {
    if (chosen && chosen.to <= clock()) chosen = null;
    const b = chosen,
      count = b ? COUNT.interval : COUNT.all,
      within = b ? Math.max(1, Math.ceil(b.to - clock())) : undefined;
    let why = '';
    asking++;
    /** @type {SoonAnswer} */
    const a = await get('soon', { db: ctx.db, count, match, within }, ctx.stop).catch((e) => {
      why = refusal(e);
      return { rows: [], whole: true };
    });
    asking--;
    if (b !== chosen) return;
    const full = a.rows.length >= count;
    // A full list may end before the interval ends, or even before it begins.
    latest = { why, whole: a.whole && !(b && full && a.rows[a.rows.length - 1].at < b.to), more: full };
    paint(a.rows.filter((r) => !b || (r.at >= b.from && r.at < b.to)));
  }
  return {
    el: h('section', { class: 'card brief' }, head, note, rows.el),
    read,
    /** Shows the expirations of an interval. @param {Bucket} b */
    choose(b) {
      chosen = b;
      read();
    },
  };
}

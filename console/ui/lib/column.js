// Columns that several tables share.
import { clock } from './api.js';
import { id, show, text, url } from './bytes.js';
import { ttl } from './countdown.js';
import { h } from './h.js';
import { num, size, span, t } from './i18n.js';

/** @import { B, Child, Column, Ctx } from './types.js' */

/**
 * A column of any kind.
 * @template R
 * @param {string} id
 * @param {string} label
 * @param {Column<R>['value']} value
 * @param {Partial<Column<R>>} [more]
 * @returns {Column<R>}
 */
export const of = (id, label, value, more) => ({ id, label, value, ...more });

/**
 * A link to the screen of a key or of something else with a name.
 * @param {Ctx} ctx @param {string} screen @param {B} k @param {number} [db]
 */
export const keyLink = (ctx, screen, k, db = ctx.db) => h('a', { href: ctx.link(screen, { db, k: url(k) }) }, show(k, 100, true));

/**
 * The name of a row's key, as a link to a screen about the key.
 * @template {{k: B}} R
 * @param {Ctx} ctx
 * @param {string} [screen]
 * @returns {Column<R>}
 */
export const key = (ctx, screen = 'key') =>
  of('k', t('keys.name'), (r) => text(r.k), { wide: true, cell: (r) => keyLink(ctx, screen, r.k) });

/**
 * A byte string: a name or a value.
 * @template R
 * @param {string} id
 * @param {string} label
 * @param {(row: R) => B|null|undefined} bytes
 * @param {Partial<Column<R>>} [more]
 * @param {number} [max] the length above which the text is shortened
 * @returns {Column<R>}
 */
export const name = (id, label, bytes, more, max = 60) =>
  of(id, label, (r) => text(bytes(r)), { cell: (r) => show(bytes(r), max), ...more });

/**
 * Text in monospace.
 * @template R
 * @param {string} id
 * @param {string} label
 * @param {(row: R) => string} words
 * @param {Partial<Column<R>>} [more]
 * @returns {Column<R>}
 */
export const code = (id, label, words, more) => of(id, label, words, { cell: (r) => h('span', { class: 'mono' }, words(r)), ...more });

/**
 * A column of figures, aligned to the right.
 * @param {(n: number|null|undefined) => string} words
 */
const figures =
  (words) =>
  /**
   * @template R
   * @param {string} id
   * @param {string} label
   * @param {(row: R) => number|null|undefined} value
   * @param {Partial<Column<R>>} [more]
   * @returns {Column<R>}
   */
  (id, label, value, more) =>
    of(id, label, value, { num: true, cell: (r) => words(value(r)), ...more });

/** A number, or a dash if it is not known. */
export const number = figures((n) => num(n));
/** A number of bytes. */
export const bytes = figures(size);
/** A time in ms. */
export const duration = figures(span);

/**
 * The remaining time until an instant, as a countdown.
 * @template R
 * @param {string} id
 * @param {string} label
 * @param {(row: R) => number|undefined} until ms since 1970; Infinity: no deadline; undefined: not known
 * @param {(row: R) => number|undefined} [whole] the full span, for a bar
 * @returns {Column<R>}
 */
export const countdown = (id, label, until, whole) => of(id, label, until, { num: true, cell: (r) => left(until(r), whole?.(r)) });

/** @param {number|undefined} until @param {number} [whole] @returns {Child} */
function left(until, whole) {
  if (until === undefined) return ttl(undefined);
  if (until === Infinity) return ttl(-1);
  const at = clock();
  return ttl(Math.max(0, until - at), at, { whole });
}

/**
 * The TTL of a key or an item. A sliding TTL has a bar.
 * @template {{pttl?: number, at: number, slide?: number}} R
 * @returns {Column<R>}
 */
export const lifetime = () =>
  of('ttl', 'TTL', (r) => (r.pttl === undefined || r.pttl < 0 ? Infinity : r.at + r.pttl), {
    num: true,
    cell: (r) => ttl(r.pttl, r.at, { whole: r.slide }),
  });

/** The key of a row for a table. @param {{k: B}} row */
export const rowKey = (row) => id(row.k);

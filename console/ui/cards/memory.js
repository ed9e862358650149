// The cards of a walk over the keys: memory by prefix, and the biggest keys.
import { h, setText, section } from '../lib/h.js';
import { clock, endWalk, get, isGone, post } from '../lib/api.js';
import * as column from '../lib/column.js';
import { poll } from '../lib/poll.js';
import { table } from '../lib/table.js';
import { treemap } from '../lib/treemap.js';
import { beginning, id, show, text } from '../lib/bytes.js';
import { t, percent, size, span, typeWords } from '../lib/i18n.js';

/** @import { BigRow, Column, Ctx, WalkAnswer, WalkRow } from '../lib/types.js' */

const SEPARATORS = [':', '/', '.', '-', '_', '|'];
/** How many prefixes the table shows. */
const MAX_ROWS = 100;

// The latest walk of this tab. Its result is still available when the user returns to the screen.
let walk = '';

/** The share of bytes that have a deadline. @param {WalkRow} r */
const shareTTL = (r) => r.bytesTTL / Math.max(1, r.bytes);
/** @param {WalkRow} r */
const nameOf = (r) => (r.p.t === '' ? t('prefix.none') : text(r.p));
/** A link to the keys of a prefix. @param {Ctx} ctx @param {WalkRow} r @param {number} db */
const keysLink = (ctx, r, db) => ctx.link('keys', { db, ...beginning(r.p) });

/** @param {Ctx} ctx @param {() => number} db @returns {Column<WalkRow>[]} */
const columns = (ctx, db) => [
  column.of('p', t('prefix'), nameOf, {
    wide: true,
    cell: (r) => (r.p.t === '' ? h('span', { class: 'faint' }, nameOf(r)) : h('a', { href: keysLink(ctx, r, db()) }, show(r.p, 80, true))),
  }),
  column.number('keys', t('keys.title'), (r) => r.keys),
  column.bytes('bytes', t('keys.bytes'), (r) => r.bytes),
  column.of('ttl', t('memory.ttl'), shareTTL, { num: true, minor: true, title: t('memory.ttl.why'), cell: (r) => percent(shareTTL(r)) }),
  column.of('types', t('memory.types'), (r) => Object.keys(r.types).map(typeWords).join(', '), { minor: true, sort: false }),
];

/** @param {Ctx} ctx @param {() => number} db @returns {Column<BigRow & {at: number}>[]} */
const bigColumns = (ctx, db) => [
  column.of('k', t('keys.name'), (r) => text(r.k), { wide: true, cell: (r) => column.keyLink(ctx, 'key', r.k, db()) }),
  column.of('type', t('keys.type'), (r) => typeWords(r.type), { minor: true }),
  column.bytes('bytes', t('keys.bytes'), (r) => r.bytes),
  column.lifetime(),
];

/** The results of a walk, as two cards. @param {Ctx} ctx */
function results(ctx) {
  let db = ctx.db;
  const map = h('div', { hidden: true }),
    rows = table({
      label: t('memory.title'),
      key: (r) => id(r.p),
      fade: false,
      sort: ['bytes', -1],
      columns: columns(ctx, () => db),
    }),
    big = table({
      label: t('memory.big'),
      key: column.rowKey,
      fade: false,
      sort: ['bytes', -1],
      columns: bigColumns(ctx, () => db),
    }),
    el = h('div', { class: 'tall', hidden: true }, map, rows.el),
    bigCard = h(
      'section',
      { class: 'card tall', hidden: true },
      h('h2', null, t('memory.big')),
      h('p', { class: 'faint' }, t('memory.big.text')),
      big.el,
    );
  return {
    el,
    bigCard,
    /** @param {WalkAnswer} w */
    set(w) {
      const at = clock();
      db = w.db;
      el.hidden = bigCard.hidden = !w.rows.length;
      rows.set(w.rows.slice(0, MAX_ROWS));
      big.set(w.big.map((r) => ({ ...r, at })));
      treemap(
        map,
        w.rows.map((r) => ({
          label: nameOf(r),
          value: r.bytes,
          title: nameOf(r) + ' ' + size(r.bytes),
          shade: 1 - shareTTL(r),
          href: r.p.t === '' ? undefined : keysLink(ctx, r, db),
        })),
        { rest: t('memory.rest') },
      );
    },
  };
}

/** The progress of a walk. @param {WalkAnswer} w */
function progressWords(w) {
  if (w.error) return w.error;
  if (!w.over) return t('walk.progress', { share: percent(w.done), n: w.looked });
  return t('memory.done', { n: w.keys, db: String(w.db), size: size(w.bytes), span: span(w.took) });
}

/** @param {Ctx} ctx @returns {HTMLElement|null} */
export function memory(ctx) {
  if (!ctx.me.can['walk.use']) return null;
  const note = h('p', { class: 'faint', role: 'status' }, t('memory.text')),
    start = h('button', { type: 'button', class: 'small' }, t('walk.start')),
    separator = h(
      'select',
      { 'aria-label': t('memory.sep'), title: t('memory.sep') },
      SEPARATORS.map((s) => h('option', { value: s }, t('memory.sep') + ' ' + s)),
    ),
    found = results(ctx);
  let running = false;
  const setRunning = (/** @type {boolean} */ on) => {
    running = on;
    setText(start, t(on ? 'keys.stop' : 'walk.start'));
    separator.hidden = on;
  };
  async function read() {
    try {
      const w = await get('walk', { id: walk }, ctx.stop);
      setRunning(!w.over);
      setText(note, progressWords(w));
      found.set(w);
    } catch (e) {
      if (!isGone(e)) throw e;
      walk = '';
      setRunning(false);
    }
  }
  async function toggle() {
    if (running) {
      await endWalk(walk);
      return;
    }
    walk = (await post('walk', { db: ctx.db, kind: 'prefixes', sep: separator.value, depth: 1, match: '*' })).id;
    again();
  }
  start.addEventListener('click', toggle);
  // Reads a walk that has just begun, even if an older one was found.
  let readWalk = '';
  const again = poll(ctx, 1000, async () => {
    if (!walk || (!running && walk === readWalk)) return;
    const now = walk;
    await read();
    readWalk = now;
  });
  return h(
    'div',
    null,
    section(null, h('div', { class: 'titlebar' }, h('h2', null, t('memory.title')), start, separator), note, found.el),
    found.bigCard,
  );
}

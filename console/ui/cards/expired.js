// Past expirations on the screen Expiry: how late they were, and the latest ones. Also a heat map of remaining times by prefix.
import { h, fill, list, setText } from '../lib/h.js';
import { endWalk, get, isAbort, post, refusal } from '../lib/api.js';
import * as column from '../lib/column.js';
import { heat } from '../lib/chart.js';
import { table } from '../lib/table.js';
import { beginning, id, show, text } from '../lib/bytes.js';
import { t, span, micros, time, percent } from '../lib/i18n.js';

/** @import { Column, Ctx, ExpiredEvent, LagAnswer, LagRow, WalkAnswer } from '../lib/types.js' */

export const LEVELS = ['key', 'field', 'member', 'element', 'lease'];
/** How many expirations the page keeps, how many it shows, and how often it shows new ones, ms. */
const MAX_KEPT = 500,
  SHOWN = 100,
  PAINT = 200;
/** How many prefixes the heat map has. */
const PREFIXES = 40;

/** The colour and the name of a level. @param {string} level */
export const swatch = (level) => h('span', { title: t('level.' + level) }, h('i', { class: 'level ' + level }), t('level.one.' + level));

/** @param {'p50'|'p99'|'p999'|'max'} name @param {string} label @returns {Column<LagRow>} */
const lagColumn = (name, label) =>
  column.of(name, label, (r) => r[name], {
    num: true,
    minor: name === 'p50' || name === 'p999',
    cell: (r) => (r.count ? micros(r[name]) : '–'),
  });

/** @returns {Column<LagRow>[]} */
const lagColumns = () => [
  column.of('name', t('expiry.level'), (r) => r.name, {
    cell: (r) => (LEVELS.includes(r.name) ? swatch(r.name) : h('b', null, t('expiry.total'))),
  }),
  column.number('count', t('expiry.count'), (r) => r.count),
  lagColumn('p50', 'p50'),
  lagColumn('p99', 'p99'),
  lagColumn('p999', 'p99.9'),
  lagColumn('max', t('expiry.max')),
];

/** The lateness of expirations. @param {Ctx} ctx @param {(a: LagAnswer) => void} told called with each answer */
export function lagCard(ctx, told) {
  const el = h('div');
  async function read() {
    try {
      const answer = await get('lag', { db: ctx.db }, ctx.stop),
        { rows, backlog } = answer;
      told(answer);
      fill(
        el,
        h('p', { class: backlog ? 'look' : 'faint' }, backlog ? t('now.backlog', { n: backlog }) : t('expiry.nobacklog')),
        table({ label: t('expiry.ontime'), rows, key: (r) => r.name, fade: false, columns: lagColumns() }).el,
      );
    } catch (e) {
      if (!isAbort(e)) fill(el, h('p', { class: 'faint' }, refusal(e)));
    }
  }
  return { el, read };
}

/** @param {ExpiredEvent} r */
const expiredRow = (r) =>
  h(
    'tr',
    null,
    h('td', null, time(r.at, true)),
    h('td', { class: 'minor' }, swatch(r.level)),
    h('td', { class: 'wide' }, show(r.k, 100), r.item && [' › ', show(r.item, 60)]),
    h('td', { class: 'num' }, r.lag < 0 ? '' : '+' + span(r.lag)),
  );

/** Whether two expirations concern the same item. @param {ExpiredEvent} a @param {ExpiredEvent} b */
const sameName = (a, b) => id(a.k) === id(b.k) && id(a.item) === id(b.item);

/** The latest expirations. @param {Ctx} ctx @param {string} match */
export function expiredCard(ctx, match) {
  /** @type {Array<ExpiredEvent & {seq: number}>} */
  let recent = [];
  let seq = 0,
    painting = false;
  const body = h('tbody'),
    source = h('p', { class: 'faint' }),
    none = h('p', { class: 'empty' }, t('expiry.recent.none')),
    prefix = match.endsWith('*') ? match.slice(0, -1) : '';
  const level = h(
    'select',
    { 'aria-label': t('expiry.level') },
    h('option', { value: '' }, t('expiry.levels')),
    LEVELS.map((l) => h('option', { value: l }, t('level.' + l))),
  );
  function paint() {
    const rows = recent.filter((r) => (!level.value || r.level === level.value) && text(r.k).startsWith(prefix)).slice(0, SHOWN);
    none.hidden = rows.length > 0;
    list(body, rows, (r) => String(r.seq), expiredRow);
  }
  level.addEventListener('change', paint);
  ctx.onEvent('expired', String(ctx.db), (e, event) => {
    if (event === 'resync' || e.skipped || recent.some((r) => r.at === e.at && r.level === e.level && sameName(r, e))) return;
    // Keys and items arrive on two paths, one of which is slower.
    recent = [{ ...e, seq: ++seq }, ...recent].sort((a, b) => b.at - a.at).slice(0, MAX_KEPT);
    if (painting) return;
    painting = true;
    setTimeout(() => {
      painting = false;
      paint();
    }, PAINT);
  });
  const head = h('div', { class: 'titlebar' }, h('h2', null, t('expiry.recent')), level);
  const rows = h('div', { class: 'table' }, h('table', { 'aria-label': t('expiry.recent') }, body));
  return {
    el: h('section', { class: 'card recent' }, head, source, rows, none),
    /** Tells which expirations the card shows, and how the user can see more. @param {LagAnswer} a */
    tell({ rules, enable, need }) {
      const command = enable && h('span', { class: 'mono' }, 'CONFIG SET notify-keyspace-events ' + enable),
        hint = need ? t('needs', { rule: need }) : command;
      fill(source, t(hint ? (rules ? 'expiry.recent.rules' : 'expiry.recent.off') : 'expiry.recent.all'), hint && [' ', hint]);
      setText(none, hint && !rules ? '' : t('expiry.recent.none'));
    },
  };
}

/** Remaining times by prefix, from a walk over all keys that the user starts. @param {Ctx} ctx @param {string} match */
export function heatCard(ctx, match) {
  const map = h('div'),
    progress = h('p', { class: 'faint', role: 'status' }),
    start = h('button', { type: 'button' }, t('walk.start'));
  /** The id of the running walk; '' if there is none. */
  let walk = '';
  function ended() {
    walk = '';
    setText(start, t('walk.start'));
  }
  async function begin() {
    walk = (await post('walk', { db: ctx.db, kind: 'prefixes', sep: ':', depth: 1, match: match || '*' })).id;
    setText(start, t('keys.stop'));
    await look();
  }
  async function stop() {
    await endWalk(walk);
    ended();
    setText(progress, t('bulk.stopped', { n: 0 }));
  }
  async function look() {
    const looked = walk;
    /** @type {WalkAnswer} */
    let w;
    try {
      w = await get('walk', { id: looked }, ctx.stop);
    } catch (e) {
      if (looked === walk) ended();
      throw e;
    }
    if (looked !== walk) return;
    setText(progress, t('walk.progress', { share: percent(w.done), n: w.looked }));
    const rows = w.rows.slice(0, PREFIXES).map((r) => ({
      label: h('a', { href: ctx.link('keys', { db: ctx.db, ...beginning(r.p) }) }, r.p.t === '' ? t('prefix.none') : show(r.p, 60, true)),
      values: r.ttl,
    }));
    heat(
      map,
      rows,
      ['never', 'minute', 'hour', 'day', 'month', 'longer'].map((n) => t('expiry.heat.' + n)),
    );
    if (w.done < 1) setTimeout(look, 1000);
    else ended();
  }
  start.addEventListener('click', () => (walk ? stop() : begin()));
  ctx.onClose(() => {
    if (walk) endWalk(walk).catch(() => {}); // the reader has left; otherwise the walk ends by itself
  });
  return h(
    'section',
    { class: 'card' },
    h('div', { class: 'titlebar' }, h('h2', null, t('expiry.heat')), start, progress),
    h('p', { class: 'faint' }, t('expiry.heat.text')),
    map,
  );
}

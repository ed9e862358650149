// The items of a hash, a set, a sorted set or a list on the screen Key, with their TTLs and actions.
import { clock, runAll } from '../lib/api.js';
import { argv, editor, fromText, id, short, show, text } from '../lib/bytes.js';
import * as column from '../lib/column.js';
import { form, several } from '../lib/dialog.js';
import { fill, h, searchBox, section, setText } from '../lib/h.js';
import { t, asSpan, parseSpan } from '../lib/i18n.js';
import { table } from '../lib/table.js';
import { arePlaces, geoMap } from './key-geo.js';
import { editWords } from './key-string.js';

/** @import { B, Column, Ctx, Item, KeyView, Words } from '../lib/types.js' */
/** @import { Expect, RunOptions } from '../lib/api.js' */
/** An item, with the time at which its TTL was read. @typedef {Item & {at: number}} Row */

/**
 * The names of a container's items and commands (for the commands about TTLs, the word before the items), and how a command names an
 * item.
 * @typedef {{level: string, expire: [string, string], persist: [string, string], remove?: string, add: string, nameOf: (r: Item) =>
 *   B|number}} Kind
 */

/** @param {Item} r */
const fieldOf = (r) => r.f || { t: '' };
/** @param {Item} r */
const memberOf = (r) => r.m || { t: '' };

/**
 * A container with named items.
 * @param {string} letter the first letter of the commands on deadlines
 * @param {'field' | 'member'} level
 * @param {string} remove
 * @param {string} add
 * @returns {Kind}
 */
const named = (letter, level, remove, add) => {
  const items = level === 'field' ? 'FIELDS' : 'MEMBERS';
  const nameOf = level === 'field' ? fieldOf : memberOf;
  return { level, nameOf, expire: [`${letter}PEXPIRE`, items], persist: [`${letter}PERSIST`, items], remove, add };
};

/** The containers. @type {Record<string, Kind>} */
export const KINDS = {
  hash: named('H', 'field', 'HDEL', 'HSETNX'),
  set: named('S', 'member', 'SREM', 'SADD'),
  zset: named('Z', 'member', 'ZREM', 'ZADD'),
  list: { level: 'element', nameOf: (r) => r.i ?? 0, expire: ['LPEXPIRE', 'INDEXES'], persist: ['LPERSIST', 'INDEXES'], add: 'RPUSH' },
};

/** A value, with the full length if it was cut. @param {B|undefined} v */
const valueCell = (v) =>
  v &&
  (v.n === undefined
    ? show(v, 120)
    : h('span', null, show({ ...v, n: undefined }, 120), ' ', h('small', null, t('bytes.cut', { n: v.n }))));

/** @param {string} type @param {Kind} kind @returns {Column<Row>[]} */
function columns(type, kind) {
  /** @type {Column<Row>[]} */
  const all = [];
  if (type === 'list') all.push(column.of('i', '#', (r) => r.i, { num: true }));
  else all.push(column.name('name', t(kind.level === 'field' ? 'keys.new.field' : 'key.member'), (r) => r.f || r.m, { wide: true }, 100));
  if (type === 'zset') all.push(column.of('s', t('key.score'), (r) => Number(r.score), { num: true, cell: (r) => r.score }));
  if (type === 'hash' || type === 'list')
    all.push(column.of('v', t('key.value'), (r) => text(r.v), { wide: true, cell: (r) => valueCell(r.v) }));
  return [...all, column.lifetime()];
}

/**
 * The functions of the screen that the items use.
 * @typedef {{key: B, pages: string[], finding: string, order: 'lowest'|'highest', isOver: boolean, view: () => KeyView, act: (words: Words,
 *   o?: RunOptions) => Promise<void>, load: () => Promise<void>, find: (s: string) => void, turn: () => Promise<void>, back: () => void,
 *   forth: () => void}} Host
 */

export class ItemsView {
  /** @param {Ctx} ctx @param {Host} host */
  constructor(ctx, host) {
    this.ctx = ctx;
    this.host = host;
    this.key = host.key;
    this.type = host.view().type;
    this.kind = KINDS[this.type];
    this.table = table({
      label: t('key.items'),
      columns: columns(this.type, this.kind),
      key: (r) => (this.type === 'list' ? String(r.i) : id(r.f || r.m)),
      actions: (now) => this.buttons(now),
      shape: (r) => [hasTTL(r), !!editor(r.v)].join(),
      empty: () => t(host.finding ? 'keys.nomatch' : 'key.noitems'),
    });
    this.map = h('div', { hidden: true });
    this.showMap = h('button', { type: 'button', hidden: true, on: { click: () => this.turnMap() } }, t('key.map'));
    this.order = h('button', { type: 'button', hidden: true, on: { click: () => this.turn() } });
    this.back = h('button', { type: 'button', on: { click: () => host.back() } }, t('key.back'));
    this.next = h('button', { type: 'button', on: { click: () => host.forth() } }, t('key.next'));
    const search = searchBox(t('key.find'), (s) => host.find(s), { value: host.finding });
    this.el = section(
      null,
      h(
        'div',
        { class: 'titlebar' },
        this.type !== 'list' && search,
        this.order,
        this.showMap,
        ctx.button('key.add', t('key.add'), () => this.add()),
      ),
      this.map,
      this.table.el,
      h('div', { class: 'row' }, this.back, this.next),
    );
  }

  /** Shows the items of the latest answer. */
  paint() {
    const { body, now, next } = this.host.view(),
      at = now || clock();
    this.back.hidden = this.host.pages.length < 2;
    this.next.hidden = !next;
    const rows = body && 'rows' in body ? /** @type {Item[]} */ (body.rows) : [];
    this.table.set(rows.map((r) => ({ ...r, at })));
    // the results of a search have no order
    this.order.hidden = this.type !== 'zset' || !!this.host.finding;
    setText(this.order, t(this.host.order === 'lowest' ? 'key.highest' : 'key.lowest'));
    this.showMap.hidden = this.type !== 'zset' || !arePlaces(rows);
    if (this.showMap.hidden) this.map.hidden = true;
    if (!this.map.hidden) fill(this.map, geoMap(rows));
  }

  /** Shows the members in the opposite order. */
  turn() {
    this.table.sort = ['', 1];
    return this.host.turn();
  }

  /** Shows the members of the page on a map, or hides the map. */
  turnMap() {
    this.map.hidden = !this.map.hidden;
    if (!this.map.hidden) fill(this.map, geoMap(this.table.rows()));
  }

  /** @param {() => Row} now */
  buttons(now) {
    const { ctx, kind, type, key } = this,
      { remove } = kind;
    /** @param {string} action @param {string} label @param {() => unknown} fn */
    const small = (action, label, fn) => ctx.button(action, label, fn, { small: true });
    return [
      type !== 'set' && (type === 'zset' || editor(now().v)) && small('key.set', t('key.edit'), () => this.edit(now())),
      small('key.itemttl', 'TTL', () => this.setTTL(now())),
      hasTTL(now()) && small('key.itemttl', t('bulk.persist'), () => this.persist(now())),
      type === 'list' && ctx.me.values && small('key.remove', t('key.remove'), () => this.removeElement(now())),
      remove && small('key.remove', t('key.remove'), () => this.host.act([remove, key, kind.nameOf(now())], { danger: true })),
    ];
  }

  /**
   * The condition under which a command may change a row: it still has the value that the page showed.
   * @param {Row} r @returns {Expect[]}
   */
  unchanged(r) {
    const { key, type, kind } = this,
      read = { list: 'LINDEX', zset: 'ZSCORE' }[type] || 'HGET';
    return [[[read, key, kind.nameOf(r)], r.seen || '']];
  }

  /** The condition for a list, where the index may now belong to another element. @param {Row} r */
  expectIfList(r) {
    return this.type === 'list' ? { expect: this.unchanged(r) } : {};
  }

  /** Removes the deadline of an item. @param {Row} r */
  persist(r) {
    const [command, word] = this.kind.persist;
    return this.host.act([command, this.key, word, 1, this.kind.nameOf(r)], this.expectIfList(r));
  }

  /** @param {Row} r */
  async setTTL(r) {
    const { key, kind, type } = this,
      [command, word] = kind.expire;
    const a = await form({
      title: t('key.itemttl', { item: type === 'list' ? '#' + r.i : short(r.f || r.m, 60) }),
      fields: [{ name: 's', label: t('bulk.span'), value: asSpan((r.pttl ?? -1) - (clock() - r.at)), hint: t('bulk.span.hint') }],
      command: (v) => (parseSpan(v.s) > 0 ? argv(command, key, parseSpan(v.s), word, 1, kind.nameOf(r)) : t('bulk.span.bad')),
    });
    if (a) this.host.act(a.argv, { quiet: true, ...this.expectIfList(r) });
  }

  /** The commands that set the value or the score of an item. @param {Row} r @param {B} v @returns {B[]|B[][]} */
  setCommand(r, v) {
    const { key, type } = this;
    if (type === 'hash') return argv('HSETEX', key, 'KEEPTTL', 'FIELDS', 1, fieldOf(r), v);
    if (type === 'zset') return argv('ZADD', key, 'XX', v, memberOf(r));
    const set = argv('LSET', key, r.i ?? 0, v); // LSET removes the deadline
    return hasTTL(r) ? [set, argv('LPEXPIREAT', key, Math.round(r.at + (r.pttl ?? 0)), 'INDEXES', 1, r.i ?? 0)] : set;
  }

  /**
   * Removes an element. Lists have no command for that, so the element becomes a unique text, which LREM then removes.
   * @param {Row} r
   */
  async removeElement(r) {
    const { key } = this,
      text = 'removed-' + crypto.getRandomValues(new Uint32Array(2)).join('-'),
      cmds = [
        ['LSET', key, r.i ?? 0, text],
        ['LREM', key, 1, text],
      ];
    if (await runAll(this.ctx.db, cmds, { danger: true, text: t('key.remove.element'), expect: this.unchanged(r) })) this.host.load();
  }

  /** The present row of an item, or, if the page has none, a row without a value. @param {Row} r */
  latest(r) {
    const name = (/** @type {Row} */ x) => (this.type === 'list' ? String(x.i) : id(x.f || x.m));
    return this.table.rows().find((x) => name(x) === name(r)) || { ...r, v: { t: '' }, score: '', seen: '' };
  }

  /**
   * Asks for a new value or score, and sets it. If another client has changed the item meanwhile, the form appears again with the typed
   * text.
   * @param {Row} first
   */
  async edit(first) {
    const isScore = this.type === 'zset',
      shown = (/** @type {Row} */ r) => (isScore ? { t: r.score } : r.v),
      x = isScore ? { value: first.score, hint: undefined, read: fromText } : editor(first.v),
      label = t(isScore ? 'key.score' : 'key.value');
    if (!x) return;
    let r = first,
      value = x.value,
      text = editWords();
    for (;;) {
      const a = await form({
        title: t('key.set'),
        text,
        fields: [{ name: 'v', label, type: isScore ? 'text' : 'area', value, hint: x.hint }],
        command: (f) => {
          const v = x.read(f.v);
          return typeof v === 'string' ? v : this.setCommand(r, v);
        },
      });
      if (!a) return;
      const hasRun = await runAll(this.ctx.db, several(a.argv), { quiet: true, expect: this.unchanged(r) });
      await this.host.load();
      if (hasRun || this.host.isOver || this.ctx.stop.aborted) return;
      const now = this.latest(r);
      text = editWords(now.seen === r.seen ? undefined : shown(now));
      value = a.values.v;
      r = now;
    }
  }

  /** Asks for a new item and adds it. */
  async add() {
    const { key, type, kind } = this,
      fields = [];
    if (type === 'hash') fields.push({ name: 'f', label: t('level.one.field') });
    if (type === 'zset') fields.push({ name: 's', label: t('key.score'), value: '0' });
    fields.push({ name: 'v', label: type === 'set' || type === 'zset' ? t('level.one.member') : t('key.value') });
    const a = await form({
      title: t('key.add'),
      fields,
      command: (x) => {
        const before = type === 'hash' ? [fromText(x.f)] : type === 'zset' ? ['NX', x.s] : [];
        return argv(kind.add, key, ...before, fromText(x.v));
      },
    });
    if (a) this.host.act(a.argv, { quiet: true, unchanged: t('keys.new.there') });
  }
}

/** @param {Row} r */
const hasTTL = (r) => r.pttl !== undefined && r.pttl >= 0;

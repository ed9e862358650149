// Keys: a list or a tree by prefix, read page by page. The page shows how many of all keys it has read.
import { h, fill, setText, searchBox, section } from '../lib/h.js';
import { clock, get, run } from '../lib/api.js';
import * as column from '../lib/column.js';
import { commandButton } from '../lib/command-button.js';
import { table } from '../lib/table.js';
import { ttl } from '../lib/countdown.js';
import { askTTL, changeMany, leastSize } from '../lib/bulk-actions.js';
import { firstCommand } from '../cards/first-command.js';
import { askNewKey } from '../cards/new-key.js';
import { beginning, bytes, copier, fromText, fromUrl, id, show, text, upToColon, url } from '../lib/bytes.js';
import { BLOOM, t, num, percent, typeWords } from '../lib/i18n.js';

/** @import { B, Column, Ctx, KeyPage, KeyRow } from '../lib/types.js' */
/** A key, with the time at which its TTL was read. @typedef {KeyRow & {at: number}} Row */
/** A group of keys with the same prefix, or one key. */
/** @typedef {{p: string, k: B, folder: boolean, n: number, bytes: number, forever: number, next: number}} Branch */

export const title = 'keys.title';
const TYPES = ['string', 'hash', 'list', 'set', 'zset', 'stream', 'limiter', 'lock', 'semaphore', 'delayqueue', BLOOM];
/** The sizes that the filter offers, bytes. */
const SIZES = ['1024', '65536', '1048576'];
/** The rows on a page of the list and of the tree, the rows that the list keeps, and the branches that the tree shows. */
const PAGE_SIZE = { list: 200, tree: 1000 },
  KEEP = 2000,
  BRANCHES = 500;
/** How many keys the screen reads by itself, and the number of rows below which the list reads on because others have expired. */
const READ_AHEAD = { list: 200, tree: 20_000 },
  MIN_ROWS = 50;
/** How many keys the server checks for one page before the screen asks whether to continue. */
const MAX_CHECKED = 1e7;
/** The pause between two drawings of the tree while all keys are read, ms, and the number of rows up to which the list grows. */
const REDRAW = { ms: 2000, rows: 500 };

/** The filter in the address. @param {Map<string, string>} params */
function filterOf(params) {
  const prefix = params.get('prefix') ? fromUrl(params.get('prefix') || '') : null, // for a prefix that a pattern cannot express
    match = prefix ? '' : params.get('match') || '',
    plain = match.endsWith('*') ? match.slice(0, -1) : '';
  return {
    match,
    /** The pattern in readable form. */
    words: prefix ? text(prefix) + '*' : match,
    prefix: params.get('prefix') || '',
    type: params.get('type') || '',
    ttl: params.get('ttl') || '',
    size: params.get('size') || '',
    /** The prefix, if the pattern has no special letters other than a final *. */
    base: /[*?[\]\\]/.test(plain) ? '' : plain,
    /** How many bytes of each name come before the part that the tree shows. If a pattern has escaped letters, it counts as one name. */
    before: bytes(prefix || fromText(plain.replace(/\\(.)/g, '$1'))).length,
  };
}

/** @param {Ctx} ctx @returns {Column<Row>[]} */
const keyColumns = (ctx) => [
  column.key(ctx),
  column.of('type', t('keys.type'), (r) => r.type, { minor: true, cell: (r) => (r.type ? typeWords(r.type) : '–') }),
  column.lifetime(),
  column.bytes('bytes', t('keys.bytes'), (r) => r.bytes, { minor: true }),
  column.of('n', t('keys.items'), (r) => r.n, { num: true, minor: true, cell: (r) => (r.n === undefined ? '' : num(r.n)) }),
];

/** The actions on selected keys. */
const BULK_ACTIONS = ['keys.del', 'keys.ttl', 'keys.rename', 'keys.copy'];

/** The name of a branch. A prefix of several keys looks different from a key. @param {Branch} r */
const branchCell = (r) => h('span', { class: r.folder ? 'strong' : '' }, r.folder ? '▸ ' : '', show(r.k, 100));

/** @returns {Column<Branch>[]} */
const branchColumns = () => [
  column.of('p', t('prefix'), (r) => text(r.k), { wide: true, cell: branchCell }),
  column.number('n', t('keys.title'), (r) => r.n),
  column.bytes('bytes', t('keys.bytes'), (r) => r.bytes),
  column.number('forever', t('ttl.never'), (r) => r.forever, { minor: true }),
  column.of('next', t('keys.tree.next'), (r) => r.next, {
    num: true,
    cell: (r) => (isFinite(r.next) ? ttl(Math.max(0, r.next - clock()), clock()) : ''),
  }),
];

/** The branches of a tree of keys. */
class Tree {
  /** @param {number} before how many bytes stand before the part of a name that the tree shows */
  constructor(before) {
    this.before = before;
    /** @type {Map<string, Branch>} */
    this.branches = new Map();
  }

  /** @param {Row} row */
  add(row) {
    const prefix = upToColon(row.k, this.before),
      p = (prefix ? 'f' : 'k') + id(prefix || row.k),
      b = this.branches.get(p) || { p, k: prefix || row.k, folder: !!prefix, n: 0, bytes: 0, forever: 0, next: Infinity };
    this.branches.set(p, b);
    b.n++;
    b.bytes += row.bytes || 0;
    if (row.pttl !== undefined && row.pttl < 0) b.forever++;
    else b.next = Math.min(b.next, row.at + (row.pttl ?? NaN));
  }

  /** The largest branches. */
  rows() {
    return [...this.branches.values()]
      .sort((x, y) => y.n - x.n)
      .slice(0, BRANCHES)
      .map((b) => ({ ...b }));
  }
}

/**
 * The progress of a walk over the keys: how many it has checked and found, whether the list has dropped the first rows, and how many are
 * wanted.
 * @param {number} want
 */
const begin = (want) => ({ cursor: '0', done: false, looked: 0, found: 0, cut: false, total: 0, want, rest: MAX_CHECKED });

/** The screen. */
class Keys {
  /** @param {Ctx} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.filter = filterOf(ctx.params);
    this.isTree = ctx.params.get('view') === 'tree';
    this.page = this.isTree ? PAGE_SIZE.tree : PAGE_SIZE.list;
    this.first = this.isTree ? READ_AHEAD.tree : READ_AHEAD.list;
    this.state = begin(this.first);
    /** Whether a page is loading, and whether the user has asked for all keys. */
    this.busy = false;
    this.all = false;
    this.drawnAt = 0;
    /** Rows that the screen has not drawn yet. @type {Row[]} */
    this.rows = [];
    this.tree = new Tree(this.filter.before);
    this.note = h('span', { class: 'faint', role: 'status' });
    this.more = h('button', { type: 'button', on: { click: () => this.lookFurther() } }, t('keys.more'));
    this.every = h('button', { type: 'button', on: { click: () => this.lookAtAll() } });
    this.picked = h('div', { class: 'row' });
    /** The buttons for all matching keys; empty if no key matches. */
    this.matched = h('div', { class: 'row' });
    this.list = this.makeList();
    this.branches = table({
      label: t('keys.tree'),
      key: (r) => r.p,
      sort: ['n', -1],
      open: (r) => this.openBranch(r),
      columns: branchColumns(),
      fade: false,
      empty: () => t(this.state.done ? 'keys.none' : 'keys.looking'),
    });
  }

  /** Opens the screen with other parameters. @param {Record<string, string>} more */
  move(more) {
    this.ctx.go('keys', { db: this.ctx.db, ...Object.fromEntries(this.ctx.params), ...more });
  }

  /** @param {Branch} r */
  openBranch(r) {
    if (r.folder) this.move({ match: '', prefix: '', ...beginning(r.k) });
    else this.ctx.go('key', { db: this.ctx.db, k: url(r.k) });
  }

  makeList() {
    const { ctx } = this;
    return table({
      label: t('keys.title'),
      key: column.rowKey,
      open: (r) => ctx.go('key', { db: ctx.db, k: url(r.k) }),
      columns: keyColumns(ctx),
      // only users who may change keys get boxes to select them
      select: BULK_ACTIONS.some(ctx.can) ? (rows) => this.paintPicked(rows) : undefined,
      actions: (now) => [
        copier(() => text(now().k)),
        ctx.button('keys.ttl', 'TTL', () => this.setTTL(now()), { small: true }),
        commandButton(
          ctx,
          'keys.del',
          t('keys.delete'),
          () => ['UNLINK', now().k],
          () => this.again(),
          {
            danger: true,
            text: t('keys.delete.text'),
          },
        ),
      ],
      gone: () => this.expired(),
      empty: () => this.emptyText(),
    });
  }

  /** Rows of the list have expired. If few are left, the next keys fill the list. */
  expired() {
    this.paintNote();
    if (!this.state.done && this.list.rows().length < MIN_ROWS) this.lookFurther();
  }

  emptyText() {
    const { words, type, ttl: life, size } = this.filter,
      line = 'SET hello world PX 30000';
    if (!this.state.done) return t('keys.looking');
    if (words || type || life || size) return t('keys.nomatch');
    return [t('keys.none'), firstCommand(this.ctx, line)];
  }

  /** A button for many keys. @param {string} verb @param {string} action @param {object} which */
  many(verb, action, which) {
    return this.ctx.button(
      action,
      t('bulk.' + verb),
      async () => {
        if (await changeMany({ db: this.ctx.db, label: this.ctx.me.label?.text, verb, ...which })) this.again();
      },
      { danger: verb === 'del' },
    );
  }

  /** @param {Row[]} rows the chosen ones */
  paintPicked(rows) {
    const which = { keys: rows };
    fill(
      this.picked,
      rows.length > 0 && [
        h('b', null, t('table.chosen', { n: rows.length })),
        this.many('del', 'keys.del', which),
        this.many('ttl', 'keys.ttl', which),
        this.many('persist', 'keys.ttl', which),
        this.many('rename', 'keys.rename', which),
        this.many('copy', 'keys.copy', which),
      ],
    );
  }

  /** @param {Row} row */
  async setTTL(row) {
    const a = await askTTL(row, (row.pttl ?? -1) - (clock() - row.at));
    if (a && (await run(this.ctx.db, a.argv, { quiet: true }))) this.again();
  }

  async makeKey() {
    const k = await askNewKey(this.ctx.db, this.filter.base);
    if (k) this.ctx.go('key', { db: this.ctx.db, k: url(k) });
  }

  lookFurther() {
    this.state.want = this.state.found + this.page;
    this.state.rest = this.state.looked + MAX_CHECKED;
    this.next();
  }

  lookAtAll() {
    this.all = !this.all;
    if (this.all) this.next();
    else {
      this.draw();
      this.paintNote();
    }
  }

  draw() {
    this.drawnAt = Date.now();
    if (this.isTree) this.branches.set(this.tree.rows());
    else {
      // A scan of a shrinking table may return a key twice.
      const rows = [...new Map([...this.list.rows(), ...this.rows].map((r) => [column.rowKey(r), r])).values()];
      this.state.cut ||= rows.length > KEEP;
      this.list.set(rows.slice(-KEEP));
    }
    this.rows = [];
  }

  paintNote() {
    const { done, found, cut, looked, total } = this.state,
      share = percent(total ? Math.min(1, looked / total) : 1),
      n = this.isTree ? found : this.list.rows().length,
      shown = t(cut ? 'keys.last' : 'keys.shown', { n, found });
    setText(this.note, t(done ? 'keys.all' : 'keys.share', { shown, share, total: num(total) }));
    this.more.hidden = done || this.isTree;
    this.every.hidden = done;
    this.matched.hidden = done && !n;
    setText(this.every, t(this.all ? 'keys.stop' : 'keys.lookatall'));
  }

  /** Whether the screen reads the next page without being asked. */
  goesOn() {
    const { done, found, looked, want, rest } = this.state;
    return !done && (this.all || (found < want && looked < rest));
  }

  /** Whether to draw the keys read so far now. A walk over many keys brings a page each few ms, and drawing takes longer. */
  isDrawn() {
    if (!this.goesOn()) return true;
    return this.isTree ? Date.now() - this.drawnAt > REDRAW.ms : !this.all || this.list.rows().length < REDRAW.rows;
  }

  /** @param {KeyPage} a */
  add(a) {
    const { state } = this,
      at = a.now || clock(),
      rows = a.rows.map((r) => ({ ...r, at }));
    state.cursor = a.cursor;
    state.done = a.done;
    state.looked += a.looked;
    state.total = a.total;
    state.found += rows.length;
    if (this.isTree) for (const r of rows) this.tree.add(r);
    else {
      this.rows.push(...rows);
      state.cut ||= this.rows.length > KEEP;
      this.rows = this.rows.slice(-KEEP);
    }
  }

  /** Reads a page of keys, and further pages until it has as many keys as the reader wants. */
  async next() {
    const { state, ctx } = this;
    if (this.busy || state.done) return;
    this.busy = true;
    try {
      const { match, prefix, type, ttl: life, size } = this.filter,
        limit = this.all ? PAGE_SIZE.tree : this.page,
        a = await get('keys', { db: ctx.db, cursor: state.cursor, match, prefix, type, ttl: life || 'any', size, limit }, ctx.stop);
      if (state !== this.state) return; // another walk has started meanwhile
      this.add(a);
      if (this.isDrawn()) this.draw();
    } catch (e) {
      ctx.fail(e);
      return;
    } finally {
      if (state === this.state) this.busy = false;
    }
    this.paintNote();
    if (this.goesOn() && !ctx.stop.aborted) this.next();
  }

  /** Restarts the walk from the first key. */
  again() {
    this.state = begin(this.first);
    this.busy = false;
    this.tree.branches.clear();
    this.rows = [];
    this.list.clear();
    this.list.set([]);
    this.next();
  }

  /**
   * A select box of a filter.
   * @param {string} name @param {string[]} values @param {(v: string) => string} words the texts of the values
   */
  choice(name, values, words) {
    const el = h(
      'select',
      { 'aria-label': t('keys.' + name) },
      h('option', { value: '' }, t('keys.' + name + '.any')),
      values.map((v) => h('option', { value: v, selected: this.ctx.params.get(name) === v }, words(v))),
    );
    el.addEventListener('change', () => this.move({ [name]: el.value }));
    return el;
  }

  titlebar() {
    const { words, prefix, type, ttl: life, size } = this.filter,
      which = { match: words, prefix, type, ttl: life, size };
    const views = ['list', 'tree'].map((v) => {
      const pressed = String(this.isTree === (v === 'tree'));
      return h('button', { type: 'button', 'aria-pressed': pressed, on: { click: () => this.move({ view: v }) } }, t('keys.' + v));
    });
    return h(
      'div',
      { class: 'titlebar' },
      h('h1', null, t('keys.title')),
      searchBox(t('keys.match'), (s) => this.move({ match: s, prefix: '' }), { value: words }),
      this.choice('type', TYPES, typeWords),
      this.choice('ttl', ['none', 'soon'], (v) => t('keys.ttl.' + v)),
      this.choice('size', SIZES, leastSize),
      h('span', { class: 'segments' }, views),
      h('button', { type: 'button', on: { click: () => this.again() } }, t('keys.refresh')),
      this.ctx.button('key.set', t('keys.new'), () => this.makeKey(), { primary: true }),
      words &&
        fill(
          this.matched,
          this.many('prolong', 'keys.ttl', which),
          this.many('persist', 'keys.ttl', which),
          this.many('del', 'keys.del', which),
        ),
    );
  }

  /** Links to the prefixes above this one. */
  crumbs() {
    const { ctx } = this,
      parts = this.filter.base.split(':').slice(0, -1);
    if (!this.isTree || !parts.length) return null;
    const links = parts.map((s, i) => {
      const match = parts.slice(0, i + 1).join(':') + ':*';
      return h('a', { href: ctx.link('keys', { ...Object.fromEntries(ctx.params), db: ctx.db, match }) }, s + ':');
    });
    return h('p', null, h('a', { href: ctx.link('keys', { db: ctx.db, view: 'tree' }) }, t('keys.tree.top')), ' ', links);
  }

  /** @param {HTMLElement} root */
  open(root) {
    const rows = this.isTree ? this.branches : this.list;
    fill(
      root,
      this.titlebar(),
      this.crumbs(),
      section(null, this.picked, rows.el, h('div', { class: 'row' }, this.note, this.more, this.every)),
    );
    this.paintNote();
    this.next();
  }
}

/** @param {HTMLElement} root @param {Ctx} ctx */
export const open = (root, ctx) => new Keys(ctx).open(root);

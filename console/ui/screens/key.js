// Key: one key with its deadline, its value by type, and a TTL for each of its items.
import { h, fill, setText, section } from '../lib/h.js';
import { ApiError, clock, exec, get, isGone, isIdle, messageOf, run } from '../lib/api.js';
import { ttl } from '../lib/countdown.js';
import { askTTL } from '../lib/bulk-actions.js';
import { form, toast } from '../lib/dialog.js';
import { poll } from '../lib/poll.js';
import { property } from '../cards/card.js';
import { bloomCard } from '../cards/key-bloom.js';
import { factsCard, rangeBox, streamBody } from '../cards/key-stream.js';
import { ItemsView, KINDS } from '../cards/key-items.js';
import { stringBody } from '../cards/key-string.js';
import { LimiterFacts, limiterOf } from '../cards/limiter.js';
import { argv, bytes, copier, fromBytes, fromText, fromUrl, show, text, url } from '../lib/bytes.js';
import { BLOOM, t, num, size, span, time, date, asSpan, parseSpan, typeWords } from '../lib/i18n.js';

/** @import { B, Ctx, Facts, Item, KeyEvent, KeyView, Resp, Rows, ViewStreamAnswer, ViewStringAnswer, Words } from '../lib/types.js' */
/** @import { RunOptions } from '../lib/api.js' */

export const title = 'key.title';

/** The screens for keys of a certain type. */
const SCREENS = new Map([
  ['limiter', 'limits'],
  ['lock', 'locks'],
  ['semaphore', 'locks'],
  ['delayqueue', 'queues'],
  ['stream', 'streams'],
]);
/** The number of items on a page, and how long after a deadline the page reads the items again, ms. */
const PAGE_SIZE = 200,
  RELOAD_DELAY = 800;
/**
 * ms. If the news give a deadline that differs from the page's by more than MOVE_TOLERANCE, the deadline has moved. If it is nearer than
 * EXPIRED_WITHIN, the key has expired.
 */
const MOVE_TOLERANCE = 1500,
  EXPIRED_WITHIN = 1000;

/** The key of the route. @param {string} k */
function keyOf(k) {
  try {
    return fromUrl(k);
  } catch {
    return fromText(k);
  }
}

/** The property of a key. @param {string} name @param {import('../lib/types.js').Child} v */
const keyProperty = (name, v) => property(t('key.' + name), v);

/** Returns the payload of a reply to DUMP, or throws an error with the reason why there is none. @param {Resp} reply */
function dumped(reply) {
  if (!reply || typeof reply !== 'object' || Array.isArray(reply) || reply.n !== undefined) throw new Error(t('key.toolarge'));
  if (reply.e) throw new Error(reply.e);
  return /** @type {Uint8Array<ArrayBuffer>} */ (bytes(reply));
}

/** The screen. */
class Key {
  /** @param {Ctx} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.key = keyOf(ctx.params.get('k') || '');
    this.k = url(this.key);
    this.head = h('section', { class: 'card keyhead' });
    this.body = h('div');
    this.news = h('span', { class: 'look', role: 'status' });
    /** The latest answer. @type {KeyView|null} */
    this.data = null;
    /** The latest news of the key, which may arrive while a request is running. @type {KeyEvent|null} */
    this.latest = null;
    /** The items of a container. @type {ItemsView|null} */
    this.items = null;
    /** The remaining capacity of a limiter. @type {LimiterFacts|null} */
    this.limiter = null;
    /** The cursors of this page and the pages before it. */
    this.pages = ['0'];
    this.finding = '';
    /** The order of a sorted set: from the lowest score, or from the highest. @type {'lowest'|'highest'} */
    this.order = 'lowest';
    /** The position of the shown page. */
    this.place = '';
    this.range = rangeBox((ids) => this.find(ids));
    this.isOver = false;
    /** The TTL that was set while the screen was open, ms; otherwise 0. */
    this.whole = 0;
    this.timer = 0;
  }

  /** The shown key. Buttons exist only after it was read. */
  view() {
    return /** @type {KeyView} */ (this.data);
  }

  /** The remaining TTL of the key, ms. */
  left() {
    const { pttl = -1, now } = this.view();
    return pttl - (clock() - (now || clock()));
  }

  /** Runs a command, and reads the key again. @param {Words} words @param {RunOptions} [o] */
  async act(words, o) {
    if (await run(this.ctx.db, words, o)) this.load(true);
  }

  /** Describes the effect of an action on a limiter, whose TTL and name have a special meaning. @param {'ttl'|'persist'|'rename'} action */
  limiterWords(action) {
    return this.view().type === 'limiter' ? t('key.' + action + '.limiter') : undefined;
  }

  async setTTL() {
    const a = await askTTL({ k: this.key, slide: this.view().slide }, this.left(), this.limiterWords('ttl'));
    if (a) this.act(a.argv, { quiet: true });
  }

  persist() {
    return this.act(['PERSIST', this.key], { text: this.limiterWords('persist') });
  }

  /** Asks for another name, and renames or copies the key. @param {'rename'|'copy'} verb */
  async rename(verb) {
    const { key, ctx } = this,
      command = verb === 'copy' ? 'COPY' : 'RENAMENX';
    const a = await form({
      title: t('key.' + verb),
      text: verb === 'rename' ? this.limiterWords(verb) : undefined,
      fields: [{ name: 'to', label: t('key.newname'), value: key.b ? '' : text(key), required: true }],
      command: (v) => (v.to && v.to !== text(key) ? argv(command, key, fromText(v.to)) : t('key.newname.bad')),
    });
    if (!a) return;
    const r = await run(ctx.db, a.argv, { quiet: true, unchanged: t('key.taken') });
    if (r && !isIdle(r.reply)) ctx.go('key', { db: ctx.db, k: url(fromText(a.values.to)) });
  }

  /** Downloads the key as a file. */
  async dump() {
    try {
      const file = new Blob([dumped((await exec(this.ctx.db, ['DUMP', this.key])).reply)], { type: 'application/octet-stream' }),
        a = h('a', { href: URL.createObjectURL(file), download: 'ebb-key.dump' });
      a.click();
      setTimeout(() => URL.revokeObjectURL(a.href), 1000);
    } catch (e) {
      toast(messageOf(e), 'bad');
    }
  }

  /** Asks for a file and restores the key from it. */
  restore() {
    const input = h('input', { type: 'file' });
    input.addEventListener('change', async () => {
      const file = input.files?.[0];
      if (file) this.restoreFrom(fromBytes(new Uint8Array(await file.arrayBuffer())));
    });
    input.click();
  }

  /** @param {B} whole */
  async restoreFrom(whole) {
    const { key } = this,
      left = this.left();
    const a = await form({
      title: t('key.restore'),
      text: t('key.restore.text'),
      danger: true,
      fields: [{ name: 's', label: t('bulk.span'), value: left > 0 ? asSpan(left) : '', hint: t('keys.new.span.hint') }],
      command: (v) => {
        const ms = v.s.trim() ? parseSpan(v.s) : 0;
        return v.s.trim() && !(ms > 0) ? t('bulk.span.bad') : argv('RESTORE', key, ms, whole, 'REPLACE');
      },
    });
    if (a) this.act(a.argv, { quiet: true });
  }

  async remove() {
    const { ctx, key } = this;
    if (await run(ctx.db, ['UNLINK', key], { danger: true, text: t('keys.delete.text'), unchanged: t('key.missing') }))
      ctx.go('keys', { db: ctx.db });
  }

  titlebar() {
    const { key, news } = this;
    return h(
      'div',
      { class: 'titlebar' },
      h('h1', null, show(key, 120)),
      copier(() => text(key)),
      news,
    );
  }

  /** The buttons: beside the name, or, on a phone, after the properties. */
  tools() {
    const { ctx } = this,
      { pttl = -1 } = this.view();
    return h(
      'div',
      { class: 'row tools' },
      ctx.button('keys.ttl', 'TTL', () => this.setTTL()),
      pttl >= 0 && ctx.button('key.persist', t('bulk.persist'), () => this.persist()),
      ctx.button('keys.rename', t('key.rename'), () => this.rename('rename')),
      ctx.button('keys.copy', t('key.copy'), () => this.rename('copy')),
      ctx.me.values && ctx.can('key.dump') && h('button', { type: 'button', on: { click: () => this.dump() } }, t('key.dump')),
      ctx.button('key.restore', t('key.restore'), () => this.restore()),
      ctx.button('keys.del', t('keys.delete'), () => this.remove(), { danger: true }),
    );
  }

  paintHead() {
    const { ctx, k } = this,
      data = this.view(),
      at = data.now || clock(),
      { pttl } = data,
      cell = ttl(pttl, at, { whole: data.slide || this.whole }),
      elsewhere = SCREENS.get(data.type),
      until = pttl !== undefined && pttl >= 0 && h('small', null, ' ' + date(at + pttl));
    cell.addEventListener('expired', () => this.end(at + (pttl || 0)));
    fill(
      this.head,
      this.titlebar(),
      this.tools(),
      h(
        'dl',
        { class: 'facts' },
        keyProperty('type', typeWords(data.type)),
        keyProperty('ttl', h('span', null, cell, until)),
        keyProperty('span', data.slide && span(data.slide)),
        keyProperty('items', data.n === undefined ? undefined : num(data.n)),
        keyProperty('bytes', size(data.bytes)),
        keyProperty('encoding', data.encoding),
        keyProperty('idle', data.idle === undefined ? undefined : span(data.idle)),
        keyProperty('freq', data.freq),
      ),
      elsewhere &&
        h(
          'p',
          null,
          h(
            'a',
            { class: 'leads', href: ctx.link(elsewhere, { db: ctx.db, k }) },
            t('key.otherscreen', { screen: t(elsewhere + '.title') }),
          ),
        ),
    );
  }

  /**
   * Says that the key no longer exists, and why. The buttons for its items disappear too, as they would create the key again.
   * @param {number|undefined} at
   * @param {string} [why]
   */
  end(at, why = 'key.expired') {
    if (this.isOver) return;
    this.isOver = true;
    this.place = '';
    setText(this.news, t(why, { at: time(at || clock(), true) }));
    this.body.hidden = true;
    fill(
      this.head,
      h('div', { class: 'titlebar' }, h('h1', null, show(this.key, 120)), this.news),
      h('a', { href: this.ctx.link('keys', { db: this.ctx.db }) }, t('key.others')),
    );
  }

  /** The remaining lifetime of the key, or of the last of its items if the page has all of them, ms. */
  life() {
    const { pttl = -1, type, next, body } = this.view();
    if (pttl >= 0) return pttl;
    if (!KINDS[type] || next || this.pages.length > 1 || this.finding || !body) return Infinity;
    const { rows } = /** @type {Rows<Item>} */ (body);
    return rows.length ? Math.max(...rows.map((r) => (r.pttl !== undefined && r.pttl >= 0 ? r.pttl : Infinity))) : Infinity;
  }

  /** The key no longer exists: it or the last of its items has expired, or was removed. @param {number} [at] */
  lost(at) {
    const { data } = this,
      until = data ? data.now + this.life() : Infinity;
    if (until <= clock() + EXPIRED_WITHIN) this.end(until);
    else this.end(at, data ? 'key.gone' : 'key.missing');
  }

  /** @param {boolean} same the page has shown a key of this type before */
  paintBody(same) {
    const { ctx, key } = this,
      { type, body, next } = this.view();
    if (KINDS[type]) {
      if (!same || !this.items) this.showItems();
      this.items?.paint();
    } else if (!body && (type === 'stream' || type === 'string')) {
      fill(this.body); // the user may not read the value
    } else if (type === 'stream') {
      const turn = { back: this.pages.length > 1 && (() => this.back()), next: next !== null && (() => this.forth()) };
      const isTyping = document.activeElement === this.range;
      fill(this.body, streamBody(ctx, key, /** @type {ViewStreamAnswer} */ (body), turn, this.range));
      if (isTyping) this.range.focus({ preventScroll: true });
    } else if (type === 'string') {
      const view = this.view(),
        string = /** @type {ViewStringAnswer} */ (body);
      fill(
        this.body,
        stringBody(ctx, key, string, view.digest, () => this.load()),
      );
    } else {
      const info = body && 'info' in body ? body.info || {} : {};
      if (body && type === 'limiter') this.showLimiter(info);
      else fill(this.body, body && type === BLOOM ? bloomCard(info) : factsCard(info));
    }
  }

  /** @param {Facts} info */
  showLimiter(info) {
    const { ctx, key } = this,
      facts = this.limiter || new LimiterFacts(ctx, key);
    facts.set(limiterOf(key, info));
    fill(this.body, section(t('limits.one'), facts.el));
    if (this.limiter) return;
    this.limiter = facts;
    poll(ctx, 1000, async () => {
      if (!this.isOver && this.view().type === 'limiter') await facts.read().catch(() => {}); // the page shows a failure itself
    });
  }

  showItems() {
    this.items = new ItemsView(this.ctx, this);
    fill(this.body, this.items.el);
    this.items.el.addEventListener('expired', () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.load(), RELOAD_DELAY);
    });
  }

  /** Shows the items whose names contain a text, or the entries of a range. @param {string} s */
  find(s) {
    this.finding = s;
    this.pages = ['0'];
    this.load();
  }
  /** Shows a sorted set in the opposite order. */
  turn() {
    this.order = this.order === 'lowest' ? 'highest' : 'lowest';
    this.pages = ['0'];
    return this.load();
  }
  back() {
    this.pages.pop();
    this.load();
  }
  forth() {
    this.pages.push(this.view().next || '0');
    this.load();
  }

  /** Reads the key again if the latest news report a change of it. */
  compare() {
    const { data, latest: x } = this;
    if (!data || !x || x.at < data.now) return;
    const pttl = data.pttl ?? NaN,
      moved = x.pttl >= 0 && Math.abs(x.at + x.pttl - data.now - pttl) > MOVE_TOLERANCE;
    if (x.version !== data.version || (data.n !== undefined && x.n !== data.n) || x.pttl < 0 !== pttl < 0 || moved) this.load(true);
  }

  /**
   * Records that the TTL has changed. Its span is known if it was set just now.
   * @param {KeyView|null} before
   * @param {boolean} isNew
   */
  noteSpan(before, isNew) {
    const { pttl = -1, now } = this.view(),
      old = before?.pttl ?? -1,
      isSame = before && (old < 0 ? pttl < 0 : pttl >= 0 && Math.abs(before.now + old - now - pttl) <= MOVE_TOLERANCE);
    if (!isSame) this.whole = before && isNew ? Math.max(pttl, 0) : 0;
  }

  /** Reads the key. @param {boolean} [isNews] it has changed just now */
  async load(isNews = false) {
    if (this.isOver) return;
    const { ctx, k, pages, finding, order } = this,
      from = pages[pages.length - 1],
      place = from + ' ' + order + ' ' + finding;
    try {
      const before = this.data;
      this.data = await get('key', { db: ctx.db, k, from, count: PAGE_SIZE, find: finding, order }, ctx.stop);
      this.noteSpan(before, isNews);
      const { version, type } = this.data,
        isSame = before && before.version === version && before.type === type && place === this.place;
      setText(this.news, '');
      this.body.hidden = false;
      this.paintHead();
      this.place = place;
      if (!isSame || this.items) this.paintBody(!!before && before.type === type);
      this.compare();
    } catch (e) {
      if (isGone(e) || (e instanceof ApiError && e.status === 404)) this.lost();
      else ctx.fail(e);
    }
  }

  /** The key exists again, so the page shows it as if for the first time. */
  comeBack() {
    this.isOver = false;
    this.pages = ['0'];
    this.load();
  }

  /** @param {HTMLElement} root */
  open(root) {
    fill(root, this.head, this.body);
    this.load();
    this.ctx.onEvent('key', this.ctx.db + ':' + this.k, (x, event) => {
      if (event === 'gone') this.lost(x.at);
      else if (this.isOver) this.comeBack();
      else if (event === 'resync') this.load();
      else {
        this.latest = x;
        this.compare();
      }
    });
  }
}

/** @param {HTMLElement} root @param {Ctx} ctx */
export const open = (root, ctx) => new Key(ctx).open(root);

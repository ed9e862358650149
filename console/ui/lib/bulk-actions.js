// Applies one change to many keys: first a preview, then batches of 500 keys with progress and a stop button.
import { h, fill, setText } from './h.js';
import { errorOf, get, integerOf, messageOf, post } from './api.js';
import { dialog, form, toast } from './dialog.js';
import { argv, bytes, fromBytes, fromText, id, line, show, text } from './bytes.js';
import { t, asSpan, parseSpan, percent, size } from './i18n.js';

/** @import { B, KeyRow, Words } from './types.js' */

/** How many pages without a matching key the preview passes over, at about 50 ms each. */
const MAX_EMPTY_PAGES = 100;
/** Limits: keys in the preview, commands in the preview, keys of a batch, and keys on a page while the page counts. */
const PREVIEW_KEYS = 20,
  PREVIEW_COMMANDS = 3,
  BATCH_KEYS = 500,
  COUNT_PAGE = 2000;
/** A body has at most 1 MiB, so keys with long names go in smaller batches. */
const MAX_BODY = 700_000;

/** A key, and the span to which each read renews its TTL. @typedef {Pick<KeyRow, 'k'|'slide'>} Target */
/** The argv for a key. @typedef {(r: Target) => B[]} Command */

/** The verbs: each asks the user for values and returns the command. @type {Record<string, (o: Many) => Promise<Command|null>>} */
const VERBS = {
  del: async () => (r) => argv('UNLINK', r.k),
  persist: async () => (r) => argv('PERSIST', r.k),
  ttl: () => askSpan('ttl', []),
  prolong: () => askSpan('prolong', ['GT']),
  rename: (o) => askNames('rename', 'RENAMENX', o.keys || []),
  copy: (o) => askNames('copy', 'COPY', o.keys || []),
};

/** Sets a TTL. A sliding TTL keeps sliding, with the new span. @param {Target} r @param {number} ms @param {Words} more */
const setTTL = (r, ms, more = []) => argv('PEXPIRE', r.k, ms, ...more, ...(r.slide ? ['SLIDE'] : []));

/**
 * Asks for the TTL of a key, and proposes its present one: the remaining time, or the span.
 * @param {Target} r
 * @param {number} left ms
 * @param {string} [words] the meaning of the TTL for this key
 */
export const askTTL = (r, left, words) =>
  form({
    title: t('keys.ttl.set'),
    text: words,
    fields: [
      { name: 's', label: t('bulk.span'), value: asSpan(r.slide || left), hint: t('bulk.span.hint') },
      { name: 'slide', label: t('key.slide'), type: 'check', value: !!r.slide },
    ],
    command: (v) => (parseSpan(v.s) > 0 ? setTTL({ k: r.k, slide: v.slide ? 1 : 0 }, parseSpan(v.s)) : t('bulk.span.bad')),
  });

/**
 * keys, or all keys that match and pass the filters of type, ttl and size. prefix: the beginning of names that are not text, in the form
 * for URLs; match then describes it. label: the server's label, which a deletion asks the user to type.
 * @typedef {{db: number, label?: string, verb: string, keys?: Target[], match?: string, prefix?: string, type?: string, ttl?: string,
 *   size?: string}} Many
 */

/** Asks, shows the first keys, and runs the verb. Returns the number of keys that it changed. @param {Many} o */
export async function changeMany(o) {
  const command = await VERBS[o.verb](o);
  if (!command) return 0;
  const page = await firstKeys(o);
  if (!page) return 0;
  if (!page.keys.length && page.done) {
    toast(t('bulk.none'));
    return 0;
  }
  if (!(await confirmMany(o, page.keys, command))) return 0;
  return runMany(o, command);
}

/** Asks for a span. @param {string} verb @param {Words} more of the command @returns {Promise<Command|null>} */
async function askSpan(verb, more) {
  const a = await form({
    title: t('bulk.' + verb),
    text: t('bulk.slide'),
    fields: [{ name: 'span', label: t('bulk.span'), value: '1h', hint: t('bulk.span.hint') }],
    ok: t('bulk.next'),
    command: (v) => (parseSpan(v.span) > 0 ? setTTL({ k: { t: 'key' } }, parseSpan(v.span), more) : t('bulk.span.bad')),
  });
  return a && ((r) => setTTL(r, parseSpan(a.values.span), more));
}

/** A name with its prefix replaced; null if it has another prefix. @param {B} k @param {B} from @param {B} to */
function renamed(k, from, to) {
  const name = bytes(k),
    head = bytes(from);
  return head.some((c, i) => c !== name[i]) ? null : fromBytes(new Uint8Array([...bytes(to), ...name.subarray(head.length)]));
}

/** The longest common prefix of all names that ends with a colon. @param {Target[]} keys */
function beginningOf(keys) {
  let s = text(keys[0].k);
  for (const { k } of keys) while (!text(k).startsWith(s)) s = s.slice(0, -1);
  return s.slice(0, s.lastIndexOf(':') + 1);
}

/**
 * Asks for new names: for the name of a single key, or for a new prefix of several. The change overwrites no key.
 * @param {string} verb
 * @param {string} command
 * @param {Target[]} keys
 * @returns {Promise<Command|null>}
 */
async function askNames(verb, command, keys) {
  const one = keys.length === 1 ? keys[0].k : null,
    begin = one ? '' : beginningOf(keys),
    to = { name: 'to', label: t(one ? 'key.newname' : 'bulk.names.to'), value: one ? text(one) : begin };
  /** @param {Record<string, string>} v @returns {Command} */
  const commandOf = (v) => (r) => argv(command, r.k, renamed(r.k, one || fromText(v.from), fromText(v.to)) || r.k);
  const a = await form({
    title: t('bulk.' + verb),
    fields: one ? [to] : [{ name: 'from', label: t('bulk.names.from'), value: begin }, to],
    ok: t('bulk.next'),
    command: (v) => {
      const from = one || fromText(v.from);
      if (keys.some((r) => renamed(r.k, from, from) === null)) return t('bulk.names.bad');
      if (id(from) === id(fromText(v.to)) || (one && !v.to)) return t('key.newname.bad');
      return keys.slice(0, PREVIEW_KEYS).map(commandOf(v));
    },
  });
  return a && commandOf(a.values);
}

/** The text for a size filter. @param {string} bytes */
export const leastSize = (bytes) => t('keys.size.least', { size: size(Number(bytes)) });

/** A page of the matching keys. @param {Many} o @param {string} cursor @param {number} limit */
const keyPage = ({ db, match, prefix, type, ttl, size: least }, cursor, limit) =>
  get('keys', { db, match: prefix ? '' : match, prefix, type, ttl: ttl || 'any', size: least, cursor, limit });

/** The first keys, for a preview; null after an error. @param {Many} o @returns {Promise<{keys: Target[], done: boolean}|null>} */
async function firstKeys(o) {
  if (o.keys) return { keys: o.keys, done: true };
  let cursor = '0';
  // A page without rows does not end the search: the keys that pass the filters may come much later.
  for (let looks = 1; ; looks++) {
    try {
      const page = await keyPage(o, cursor, PREVIEW_KEYS);
      if (page.done || page.rows.length || looks >= MAX_EMPTY_PAGES) return { keys: page.rows, done: page.done };
      cursor = page.cursor;
    } catch (e) {
      toast(messageOf(e), 'bad');
      return null;
    }
  }
}

/** Counts the matching keys page by page, and shows its progress. */
export class Counter {
  /** @param {Many} o @param {(found: number) => void} [changed] called at first, and when it has found more */
  constructor(o, changed = () => {}) {
    this.o = o;
    this.changed = changed;
    this.found = o.keys ? o.keys.length : 0;
    this.isDone = !!o.keys;
    this.isEnded = this.isDone;
    this.words = h('span', { role: 'status' });
    this.stop = h('button', { type: 'button', class: 'small', hidden: this.isDone, on: { click: () => this.end() } }, t('bulk.count.stop'));
    this.el = h('p', null, this.words, ' ', this.stop);
    this.paint(0, 0);
  }

  /** @param {number} looked @param {number} total */
  paint(looked, total) {
    const n = this.found,
      share = percent(total ? Math.min(1, looked / total) : 0),
      words = this.isDone ? 'bulk.count' : this.isEnded ? 'bulk.count.least' : 'bulk.counting';
    setText(this.words, t(words, { n, share, total }));
    this.stop.hidden = this.isEnded;
    this.changed(n);
  }

  end() {
    this.isEnded = true;
  }

  async run() {
    let cursor = '0',
      looked = 0,
      total = 0;
    try {
      while (!this.isEnded) {
        const page = await keyPage(this.o, cursor, COUNT_PAGE);
        cursor = page.cursor;
        looked += page.looked;
        total = page.total;
        this.found += page.rows.length;
        this.isDone = page.done;
        this.isEnded ||= page.done;
        this.paint(looked, total);
      }
    } catch (e) {
      if (!this.isEnded) toast(messageOf(e), 'bad');
      this.end();
      this.paint(looked, total);
    }
  }
}

/**
 * The commands of the first keys, and the number of further keys that have one.
 * @param {Target[]} keys @param {number} all @param {Command} command
 */
const commandsOf = (keys, all, command) =>
  keys
    .slice(0, PREVIEW_COMMANDS)
    .map((r) => line(command(r)))
    .join('\n') + (all > PREVIEW_COMMANDS ? '\n' + t('bulk.commands.more', { n: all - PREVIEW_COMMANDS }) : '');

/** @param {Many} o @param {Target[]} keys the first ones @param {Command} command */
async function confirmMany(o, keys, command) {
  const typed = (o.verb === 'del' && o.label) || o.match || '',
    input = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', 'aria-label': t('confirm.type', { text: typed }) }),
    shown = keys.slice(0, PREVIEW_KEYS),
    rest = h('p', { class: 'faint' }),
    commands = h('pre', { class: 'command' });
  const counter = new Counter(o, (found) => {
    const all = Math.max(found, shown.length);
    rest.hidden = all <= shown.length;
    setText(rest, t('bulk.more', { n: all - shown.length }));
    setText(commands, commandsOf(keys, all, command));
  });
  counter.run();
  const sure = await dialog({
    title: t('bulk.' + o.verb),
    ok: t('confirm.run'),
    danger: o.verb === 'del',
    body: [
      o.match && h('p', null, t('bulk.match'), ' ', h('strong', { class: 'mono' }, o.match)),
      o.type && h('p', null, t('bulk.type'), ' ', h('strong', null, o.type)),
      o.ttl && h('p', null, t('bulk.ttl.of'), ' ', h('strong', null, t('keys.ttl.' + o.ttl))),
      o.size && h('p', null, t('bulk.ttl.of'), ' ', h('strong', null, leastSize(o.size))),
      counter.el,
      h(
        'ul',
        { class: 'value' },
        shown.map((r) => h('li', null, show(r.k, 80))),
      ),
      rest,
      h('p', { class: 'faint' }, t('bulk.commands')),
      commands,
      typed && h('label', null, t('confirm.type', { text: typed }), input),
    ],
    update: (ok) => {
      ok.disabled = input.value !== typed;
    },
  });
  counter.end();
  return sure;
}

/**
 * Runs the commands, and stops when the user closes the dialog. Returns the number of changed keys.
 * @param {Many} o @param {Command} command
 */
async function runMany(o, command) {
  const progress = h('p', { role: 'status' }, t('bulk.running', { n: 0 })),
    run = { stopped: false, changed: 0, looked: 0 };
  let over = false;
  const closed = dialog({ title: t('bulk.' + o.verb), body: progress }).then(() => {
    run.stopped = true;
    if (!over) toast(t('bulk.stopped', { n: run.changed }));
  });
  try {
    for (let cursor = '0', done = false; !done && !run.stopped;) {
      const page = o.keys ? null : await keyPage(o, cursor, BATCH_KEYS);
      await runKeys(o, page ? page.rows : o.keys || [], command, run, progress);
      cursor = page ? page.cursor : '0';
      done = !page || page.done;
    }
    over = true;
    fill(progress, t('bulk.done', { n: run.changed }));
  } catch (e) {
    over = true;
    fill(progress, h('span', { class: 'error' }, messageOf(e)), ' ', t('bulk.done', { n: run.changed }));
  }
  await closed;
  return run.changed;
}

/** How many keys from the i-th on fit in one body. @param {Target[]} keys @param {number} i */
function batchOf(keys, i) {
  let n = 0;
  for (let room = MAX_BODY; i + n < keys.length && n < BATCH_KEYS && (n === 0 || room > 0); n++)
    room -= text(keys[i + n].k).length * 6 + 80;
  return n;
}

/**
 * Runs the command of each key, in batches. The user has already typed or confirmed everything that the server asks for.
 * @param {Many} o
 * @param {Target[]} keys
 * @param {Command} command
 * @param {{stopped: boolean, changed: number, looked: number}} run
 * @param {HTMLElement} progress
 */
async function runKeys({ db, label }, keys, command, run, progress) {
  for (let i = 0; i < keys.length && !run.stopped;) {
    const n = batchOf(keys, i);
    const cmds = keys.slice(i, i + n).map(command),
      { replies } = await post('batch', { db, cmds, atomic: false, confirm: label || text(cmds[0][0]) });
    const wrong = replies.map(errorOf).find((e) => e);
    if (wrong) throw new Error(wrong);
    run.changed += replies.filter((r) => r && integerOf(r) !== '0').length;
    run.looked += n;
    i += n;
    setText(progress, t('bulk.running', { n: run.looked }));
  }
}

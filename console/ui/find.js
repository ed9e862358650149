// Find looks for a screen, a key, a prefix or a command by a few of its letters.
import { get } from './lib/api.js';
import { fromText, glob, quote, show, url } from './lib/bytes.js';
import { h, list } from './lib/h.js';
import { t, typeWords } from './lib/i18n.js';
import { db, link, RAIL, screen } from './router.js';

/** @import { B, Child, CommandRow } from './lib/types.js' */
/** @typedef {{id: string, href: string, what: Child, kind: string}} Row */

/** How many keys that begin with the text, and how many commands whose names contain it, Find shows at most. */
const MAX_KEYS = 8,
  MAX_COMMANDS = 12;

/** The commands of the server, which Find asks for once. @type {Promise<CommandRow[]>|null} */
let asked = null;

function allCommands() {
  asked ??= get('commands').then(
    (a) => a.rows,
    () => {
      asked = null; // the next search asks again
      return [];
    },
  );
  return asked;
}

/** The screens whose name or title matches. @param {(name: string) => boolean} fits @returns {Row[]} */
const screens = (fits) =>
  RAIL.filter((n) => fits(t(n + '.title').toLowerCase()) || fits(n)).map((n) => ({
    id: 's' + n,
    href: link(n),
    what: t(n + '.title'),
    kind: t('find.screen'),
  }));

/** A row that opens a key. @param {B} k @param {string} kind @returns {Row} */
const keyRow = (k, kind) => ({ id: 'f' + quote(k), href: link('key', { db: db(), k: url(k) }), what: show(k, 60, true), kind });

/** A row that opens the shell with a line. @param {string} line @param {string} [summary] @returns {Row} */
const lineRow = (line, summary) => ({
  id: 'c' + line.trim(),
  href: link('shell', { line }),
  what: h('span', { title: summary }, show(fromText(line.trim()), 60, true)),
  kind: t('find.command'),
});

/**
 * Returns the commands whose names contain a text in any case. Commands of one word come first, and among these the ones that begin with
 * the text.
 * @param {CommandRow[]} all
 * @param {string} s
 */
export function commandsWith(all, s) {
  const part = s.trim().replace(/\s+/g, ' ').toUpperCase(),
    place = (/** @type {CommandRow} */ { name }) => (name.includes(' ') ? 2000 : 0) + (name.startsWith(part) ? 0 : 1000) + name.length;
  return part ? all.filter((c) => c.name.includes(part)).sort((a, b) => place(a) - place(b)) : [];
}

/** Whether a line is a command with arguments. @param {CommandRow[]} all @param {string} s */
const isLine = (all, s) => {
  const line = s.trim().replace(/\s+/g, ' ').toUpperCase();
  return all.some((c) => line.startsWith(c.name + ' '));
};

/** A row that lists the matching keys if the text is a pattern. @param {string} s @returns {Row[]} */
const matches = (s) =>
  /[*?]|\[.+\]/.test(s)
    ? [{ id: 'm' + s, href: link('keys', { db: db(), match: s }), what: show(fromText(s), 60, true), kind: t('find.match') }]
    : [];

/**
 * Returns the actions for the text itself: show the keys that begin with it, or run it as a command.
 * @param {string} s
 * @param {CommandRow[]} all the commands of the server
 * @returns {Row[]}
 */
function uses(s, all) {
  const what = show(fromText(s), 60, true),
    prefix = { id: 'p' + s, href: link('keys', { db: db(), match: glob(s) + '*' }), what, kind: t('find.prefix') },
    names = commandsWith(all, s),
    exact = names[0]?.name === s.trim().toUpperCase(),
    rows = names.slice(0, MAX_COMMANDS).map((c) => lineRow(c.name + ' ', c.summary)),
    line = isLine(all, s) ? [lineRow(s.trim())] : [];
  // A line that begins with a capital letter is probably a command, and so is the complete name of one.
  if (exact) return [...rows.slice(0, 1), prefix, ...rows.slice(1)];
  return /^\s*[A-Z]{2}/.test(s) ? [...line, prefix, ...rows] : [prefix, ...line, ...rows];
}

/** The key with exactly this name, if it exists, and keys that begin with it. @param {string} s */
async function keys(s) {
  const k = fromText(s),
    a = await get('keys', { db: db(), cursor: '0', match: glob(s) + '*', limit: MAX_KEYS, name: url(k) }).catch(() => null),
    others = (a?.rows || []).filter((r) => quote(r.k) !== quote(k));
  return {
    named: a?.named ? [keyRow(k, typeWords(a.named.type || ''))] : [],
    others: others.map((r) => keyRow(r.k, typeWords(r.type || ''))),
  };
}

/** The dialog of Find. */
class Find {
  constructor() {
    this.input = h('input', {
      type: 'text',
      placeholder: t('find.title'),
      'aria-label': t('find.title'),
      spellcheck: 'false',
      autocomplete: 'off',
      on: { input: () => this.begin() },
    });
    this.results = h('ul', { class: 'results' });
    /** @type {Row[]} */
    this.rows = [];
    /** The row that Enter would open. */
    this.at = 0;
    /** The number of searches so far, by which Find recognises answers of outdated searches. */
    this.searches = 0;
    /** The search for the field's current text. Enter waits until it ends. */
    this.found = Promise.resolve();
    this.box = h('dialog', { 'aria-label': t('find.title') }, h('label', null, this.input), this.results);
    this.box.addEventListener('close', () => this.box.remove());
    this.box.addEventListener('click', (e) => {
      if (e.target === this.box) this.box.close();
    });
    this.box.addEventListener('keydown', (e) => this.keydown(e));
    document.body.append(this.box);
    this.box.showModal();
    this.begin();
  }

  begin() {
    this.found = this.search(this.input.value.trim() && this.input.value);
  }

  /** @param {string} s what the user has typed */
  async search(s) {
    const low = s.trim().toLowerCase(),
      search = ++this.searches,
      begin = screens((x) => x.startsWith(low)),
      within = s ? screens((x) => x.includes(low)).filter((x) => !begin.some((y) => y.id === x.id)) : [],
      last = s ? uses(s, []) : [];
    this.at = 0;
    this.rows = [...begin, ...matches(s), ...within, ...last];
    this.paint();
    if (!s) return;
    const [{ named, others }, commands] = await Promise.all([keys(s), allCommands()]);
    if (search !== this.searches) return;
    this.rows = [...named, ...begin, ...matches(s), ...others, ...within, ...uses(s, commands)];
    this.paint();
  }

  paint() {
    const close = () => this.box.close();
    list(
      this.results,
      this.rows,
      (r) => r.id,
      (r) => h('li', null, h('a', { href: r.href, on: { click: close } }, h('span', null, r.what), h('span', { class: 'faint' }, r.kind))),
    );
    [...this.results.querySelectorAll('a')].forEach((a, i) => {
      a.classList.toggle('on', i === this.at);
      if (i === this.at) a.scrollIntoView({ block: 'nearest' });
    });
  }

  /** @param {KeyboardEvent} e */
  keydown(e) {
    if (e.key === 'ArrowDown') this.at = Math.min(this.rows.length - 1, this.at + 1);
    else if (e.key === 'ArrowUp') this.at = Math.max(0, this.at - 1);
    else if (e.key === 'Enter' && e.target === this.input) this.choose();
    else return;
    e.preventDefault();
    this.paint();
  }

  /** Opens the marked row once the search has ended. */
  async choose() {
    const search = this.searches;
    await this.found;
    if (search !== this.searches || !this.rows[this.at] || !this.box.open) return;
    location.hash = this.rows[this.at].href;
    this.box.close();
    screen.focus({ preventScroll: true }); // if the focus stayed on the button of Find, a held Enter would press it
  }
}

/** Opens Find, unless a dialog is open. */
export function find() {
  if (!document.querySelector('dialog[open]')) new Find();
}

// The card of the configuration on the screen Server: it shows the directives that differ from their defaults, and finds all others.
import { h, fill, searchBox } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import * as column from '../lib/column.js';
import { commandButton } from '../lib/command-button.js';
import { card } from './card.js';
import { form } from '../lib/dialog.js';
import { table } from '../lib/table.js';
import { argv, show, text } from '../lib/bytes.js';
import { t, meanings } from '../lib/i18n.js';

/** @import { B, Column, ConfigRow, Ctx } from '../lib/types.js' */
/** A directive in the reader's language; english is its description in English, and the source of its value. */
/** @typedef {ConfigRow & {english: string, from: string}} Row */

const TABS = ['changed', 'all', 'ignored'];
/** The directives of each tab. @type {Record<string, (r: Row) => unknown>} */
const IS_IN = {
  changed: (r) => r.changed && !r.ignored,
  all: (r) => !r.ignored,
  ignored: (r) => r.ignored && (r.changed || r.from),
};

/** @param {Row} r @param {boolean} isSet of a secret @param {B|null} x */
const valueCell = (r, isSet, x) => (r.secret ? h('span', { class: 'faint' }, t(isSet ? 'config.secret' : 'config.nosecret')) : show(x, 60));

/** @param {Row} r */
const docCell = (r) =>
  h(
    'span',
    { class: 'faint' },
    r.ignored ? t('config.ignored', { why: r.ignored }) : r.doc,
    r.from && [' ', h('span', { class: 'from' }, t('config.given', { at: r.from }))],
  );

/** @returns {Column<Row>[]} */
const columns = () => [
  column.of('name', t('config.name'), (r) => r.name, { cell: (r) => h('span', { class: ['mono', r.changed && 'strong'] }, r.name) }),
  column.of('value', t('key.value'), (r) => text(r.value), { cell: (r) => valueCell(r, !!r.set, r.value) }),
  column.of('default', t('config.default'), (r) => text(r.default), { minor: true, cell: (r) => valueCell(r, false, r.default) }),
  column.of('doc', t('config.doc'), (r) => r.doc, { wide: true, minor: true, sort: false, cell: docCell }),
];

/** Asks for the value of a directive, and sets it. Returns whether it succeeded. @param {number} db @param {Row} r */
async function change(db, r) {
  const a = await form({
    title: t('config.change.of', { name: r.name }),
    text: r.doc,
    ok: t('confirm.run'),
    fields: [
      {
        name: 'value',
        label: t('key.value'),
        value: text(r.value),
        options: r.choices?.map((c) => /** @type {[string, string]} */ ([c, c])),
        hint: t('config.takes', { usage: r.usage, value: text(r.default) || '""' }),
      },
    ],
    command: (v) => argv('CONFIG', 'SET', r.name, v.value),
  });
  return !!a && !!(await run(db, a.argv, { quiet: true }));
}

/** The rows in the reader's language. @param {ConfigRow[]} rows @returns {Promise<Row[]>} */
async function translated(rows) {
  const translate = await meanings();
  return rows.map((r) => ({
    ...r,
    english: r.doc,
    doc: translate(r.doc),
    usage: translate(r.usage),
    ignored: r.ignored && translate(r.ignored),
    from: translate(text(r.given)),
  }));
}

/** The card. */
class Configuration {
  /** @param {Ctx} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    /** @type {Row[]} */
    this.rows = [];
    this.finding = '';
    this.tab = 'changed';
    this.tabs = h('span', { class: 'segments' });
    this.file = h('span', { class: 'row' });
    this.search = searchBox(
      t('config.find'),
      (s) => {
        this.finding = s.toLowerCase().trim();
        this.paint();
      },
      { live: true },
    );
    this.table = table({
      label: t('config.title'),
      key: (r) => r.name,
      fade: false,
      columns: columns(),
      actions: (now) => this.button(now()),
      empty: () => t(this.finding ? 'config.nofind' : this.tab === 'ignored' ? 'config.noignored' : 'config.nochange'),
    });
    this.card = card(ctx, {
      title: t('config.title'),
      ms: 10_000,
      tools: [this.tabs, this.search, h('span', { class: 'grow' }), this.file],
      body: this.table.el,
      read: () => this.read(),
    });
  }

  /** @param {Row} r */
  button(r) {
    if (r.ignored || r.secret) return null;
    if (r.immutable) return h('span', { class: 'faint' }, t('config.immutable'));
    const click = async () => {
      if (await change(this.ctx.db, this.rows.find((x) => x.name === r.name) || r)) this.card.again();
    };
    return this.ctx.button('server.config', t('config.change'), click, { small: true });
  }

  /** The rows of a tab. @param {string} tab */
  in(tab) {
    return this.rows.filter(IS_IN[tab]);
  }

  /** @param {string} tab */
  choose(tab) {
    this.tab = tab;
    this.finding = this.search.value = '';
    this.paint();
  }

  paint() {
    const buttons = TABS.filter((tab) => tab !== 'ignored' || this.in(tab).length > 0).map((tab) => {
      const pressed = String(tab === this.tab && !this.finding),
        n = this.in(tab).length;
      return h('button', { type: 'button', 'aria-pressed': pressed, on: { click: () => this.choose(tab) } }, t('config.tab.' + tab, { n }));
    });
    fill(this.tabs, buttons);
    const found = this.rows.filter((r) => [r.name, r.doc, r.english].join(' ').toLowerCase().includes(this.finding));
    this.table.set(this.finding ? found : this.in(this.tab));
  }

  async read() {
    const a = await get('config', {}, this.ctx.stop);
    this.rows = await translated(a.rows);
    this.tabs.hidden = this.search.hidden = this.table.el.hidden = !this.rows.length;
    fill(
      this.file,
      a.file && [
        h('span', { class: 'faint mono bytes' }, a.file),
        commandButton(
          this.ctx,
          'server.rewrite',
          t('config.rewrite'),
          () => ['CONFIG', 'REWRITE'],
          () => {},
          {
            text: t('config.rewrite.text'),
          },
        ),
      ],
    );
    this.paint();
    return a.denied;
  }
}

/** @param {Ctx} ctx */
export const configuration = (ctx) => new Configuration(ctx).card.el;

// One stream: its groups and their consumers, and each group's pending entries.
import { h, fill, setText, section } from '../lib/h.js';
import { clock, get, isGone, run } from '../lib/api.js';
import * as column from '../lib/column.js';
import { form } from '../lib/dialog.js';
import { poll, missing } from '../lib/poll.js';
import { table } from '../lib/table.js';
import { argv, id, plain, show, text, url } from '../lib/bytes.js';
import { t, num, parseSpan, span } from '../lib/i18n.js';

/** @import { B, Column, ConsumerRow, Ctx, GroupRow, PendingRow, StreamAnswer, StreamRow, Words } from '../lib/types.js' */
/** @import { RunOptions } from '../lib/api.js' */

/** A lag from which on a group needs attention; Now uses the same limit. */
export const MAX_LAG = 100;

/** @param {number} ms */
const ago = (ms) => t('time.ago', { span: span(ms) });

/** @returns {Column<ConsumerRow>[]} */
const consumerColumns = () => [
  column.name('name', t('streams.consumer'), (r) => r.name, { wide: true }, 100),
  column.number('pending', t('streams.pending'), (r) => r.pending),
  column.of('idle', t('streams.consumer.asked'), (r) => r.idle, { num: true, cell: (r) => ago(r.idle) }),
  column.of('inactive', t('streams.consumer.got'), (r) => r.inactive, {
    num: true,
    minor: true,
    cell: (r) => (r.inactive < 0 ? '–' : ago(r.inactive)),
  }),
];

/** @returns {Column<PendingRow>[]} */
const pendingColumns = () => [
  column.code('id', 'ID', (r) => r.id),
  column.name('consumer', t('streams.consumer'), (r) => r.consumer, { wide: true }, 80),
  column.of('idle', t('streams.delivered'), (r) => r.idle, { num: true, cell: (r) => ago(r.idle) }),
  column.number('deliveries', t('queues.deliveries'), (r) => r.deliveries, { minor: true }),
];

/** Asks which entries a stream should keep. @param {StreamRow} stream */
const askTrim = ({ k, length }) =>
  form({
    title: t('streams.trim'),
    text: t('streams.trim.text', { n: length }),
    danger: true,
    fields: [
      {
        name: 'by',
        label: t('streams.trim.by'),
        value: 'max',
        options: [
          ['max', t('streams.trim.max')],
          ['age', t('streams.trim.age')],
        ],
      },
      { name: 'n', label: t('streams.trim.n'), required: true, value: '', hint: t('streams.trim.hint') },
    ],
    command: (v) => {
      const n = v.n.trim(),
        ms = parseSpan(n);
      if (v.by === 'max') return /^\d+$/.test(n) ? argv('XTRIM', k, 'MAXLEN', n) : t('form.number');
      return Number.isNaN(ms) ? t('form.span') : argv('XTRIM', k, 'MINID', Math.max(0, Math.floor(clock() - ms)));
    },
  });

/** Asks for the consumer that should get entries. @param {StreamRow} stream @param {GroupRow} group @param {string[]} ids */
const askClaim = ({ k }, group, ids) =>
  form({
    title: t('streams.claim'),
    text: t('streams.claim.text'),
    fields: [
      {
        name: 'to',
        label: t('streams.claim.to'),
        required: true,
        value: plain(group.consumersRows[0]?.name || { t: '' }) ?? '',
        hint: t('streams.claim.hint'),
      },
      { name: 'idle', label: t('streams.claim.idle'), value: '0' },
    ],
    command: (v) => {
      const ms = v.idle === '0' ? 0 : parseSpan(v.idle);
      if (!v.to || Number.isNaN(ms)) return t(v.to ? 'form.span' : 'streams.claim.needs');
      return argv('XCLAIM', k, group.name, v.to, ms, ...ids, 'JUSTID');
    },
  });

/** The tables and the buttons of a stream. */
class StreamView {
  /** @param {Ctx} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.k = ctx.params.get('k') || '';
    /** The stream and the shown group. @type {StreamRow|null} */
    this.stream = null;
    /** @type {GroupRow|null} */
    this.group = null;
    this.head = h('div', { class: 'titlebar' });
    this.note = h('p', { class: 'faint' });
    this.tabs = h('nav', { class: 'tabs', 'aria-label': t('streams.groups') });
    this.facts = h('p', { class: 'faint' });
    this.more = h('p', { class: 'faint' });
    this.trim = ctx.button('streams.trim', t('streams.trim'), () => this.askedFor(this.stream && askTrim(this.stream)), { small: true });
    this.consumers = this.makeConsumers();
    this.acknowledge = ctx.button('streams.ack', t('streams.ack'), () => this.ack(), { small: true });
    this.claim = ctx.button(
      'streams.claim',
      t('streams.claim'),
      () => this.askedFor(this.stream && this.group && askClaim(this.stream, this.group, this.chosenIds())),
      { small: true },
    );
    this.entries = this.makeEntries();
    this.consumerCard = section(t('streams.consumers'), this.facts, this.consumers.el);
    this.pendingCard = section(
      null,
      h('div', { class: 'titlebar' }, h('h2', null, t('streams.pending.title')), this.acknowledge, this.claim),
      this.entries.el,
      this.more,
    );
  }

  /** Runs the command of a form if the user has submitted it. @param {Promise<{argv: B[]}|null>|null} asked */
  async askedFor(asked) {
    const a = await asked;
    if (a) this.act(a.argv, { quiet: true });
  }

  /** Runs a command, and reads the stream again. @param {Words} words @param {RunOptions} o */
  async act(words, o) {
    if (!(await run(this.ctx.db, words, o))) return;
    this.entries.clear();
    this.again();
  }

  chosenIds() {
    return this.entries.selected().map((r) => r.id);
  }

  ack() {
    const { stream, group } = this;
    if (stream && group) this.act(['XACK', stream.k, group.name, ...this.chosenIds()], { text: t('streams.ack.text') });
  }

  /** @param {ConsumerRow} consumer */
  deleteConsumer(consumer) {
    const { stream, group } = this;
    if (stream && group)
      this.act(['XGROUP', 'DELCONSUMER', stream.k, group.name, consumer.name], {
        danger: true,
        text: t('streams.delconsumer.text', { n: consumer.pending }),
      });
  }

  makeConsumers() {
    return table({
      label: t('streams.consumers'),
      key: (r) => id(r.name),
      fade: false,
      columns: consumerColumns(),
      actions: (now) => this.ctx.button('streams.delconsumer', t('streams.delconsumer'), () => this.deleteConsumer(now()), { small: true }),
      empty: () => t('streams.noconsumers'),
    });
  }

  makeEntries() {
    const buttons = [this.acknowledge, this.claim].filter((b) => b !== null),
      isUseful = buttons.some((b) => !b.disabled);
    if (!isUseful) for (const b of buttons) b.hidden = true;
    return table({
      label: t('streams.pending'),
      key: (r) => r.id,
      fade: false,
      columns: pendingColumns(),
      stack: true,
      select: isUseful
        ? (rows) => {
            for (const b of buttons) b.hidden = !rows.length;
          }
        : undefined,
      empty: () => t('streams.nopending'),
    });
  }

  /** Reads the stream. If the route names no group, the page shows the first one. */
  async read() {
    const { db, params, stop } = this.ctx,
      g = params.get('g'),
      a = await get('stream', { db, k: this.k, g }, stop);
    if (g !== undefined || !a.row.groups.length) return { a, g };
    const first = url(a.row.groups[0].name);
    return { a: await get('stream', { db, k: this.k, g: first }, stop), g: first };
  }

  /** @param {StreamAnswer} a @param {string|undefined} g the group that is shown */
  paint(a, g) {
    const { ctx, k } = this,
      { row } = a,
      group = row.groups.find((x) => url(x.name) === g) || null;
    this.stream = row;
    this.group = group;
    fill(
      this.head,
      h('h1', null, show(row.k, 120)),
      h('span', { class: 'badge' }, t('streams.entries', { n: row.length })),
      h('a', { href: ctx.link('key', { db: ctx.db, k }) }, t('streams.read')),
      h('span', { class: 'grow' }),
      this.trim,
    );
    for (const x of [this.consumerCard, this.pendingCard]) x.hidden = !group;
    this.tabs.hidden = row.groups.length < 2;
    fill(
      this.tabs,
      row.groups.map((x) => this.tab(x, x === group)),
    );
    setText(this.note, missing(a.denied) || (row.groups.length ? '' : t('streams.nogroups')));
    if (!group) return;
    const lag = group.lag === null ? '–' : num(group.lag);
    this.facts.className = (group.lag || 0) >= MAX_LAG ? 'look' : 'faint';
    setText(this.facts, t('streams.facts', { group: text(group.name) || t('bytes.empty'), lag, last: group.last }));
    this.consumers.set(group.consumersRows);
    this.entries.set(a.pending);
    setText(this.more, a.more ? t('streams.more', { n: a.pending.length }) : '');
  }

  /** @param {GroupRow} group @param {boolean} current */
  tab(group, current) {
    const href = this.ctx.link('streams', { db: this.ctx.db, k: this.k, g: url(group.name) });
    return h('a', { href, 'aria-current': current ? 'page' : undefined }, show(group.name, 40, true));
  }

  /** @param {HTMLElement} root */
  open(root) {
    const back = h('p', null, h('a', { href: this.ctx.link('streams', { db: this.ctx.db }) }, t('streams.others')));
    fill(root, back, this.head, this.note, this.tabs, this.consumerCard, this.pendingCard);
    this.again = poll(this.ctx, 2000, async () => {
      try {
        const { a, g } = await this.read();
        this.paint(a, g);
      } catch (e) {
        if (!isGone(e)) throw e;
        fill(this.head, h('h1', null, t('streams.gone')));
        for (const x of [this.tabs, this.consumerCard, this.pendingCard]) x.hidden = true;
      }
    });
  }

  again = async () => {};
}

/** @param {HTMLElement} root @param {Ctx} ctx */
export const showStream = (root, ctx) => new StreamView(ctx).open(root);

// One delay queue: its jobs by state, and actions on them.
import { h, fill, setText, searchBox, section } from '../lib/h.js';
import { clock, get, integerOf, run, runAll } from '../lib/api.js';
import * as column from '../lib/column.js';
import { dialog } from '../lib/dialog.js';
import { table } from '../lib/table.js';
import { poll, missing } from '../lib/poll.js';
import { ago, ttl } from '../lib/countdown.js';
import { property } from './card.js';
import { askConfig, askJob, askPause, requeue, runNowQueue, schedulesCard } from './queue-actions.js';
import { viewer } from './key-string.js';
import { bars } from '../lib/chart.js';
import { argv, fromText, id, show, text, url } from '../lib/bytes.js';
import { t, date, num, span, tick } from '../lib/i18n.js';

/** @import { B, Column, Ctx, JobRow, QueueAnswer, QueueRow, Words } from '../lib/types.js' */
/** @import { RunOptions } from '../lib/api.js' */

const STATES = ['ready', 'delayed', 'leased', 'dead'];
/** The delay after which a due job is late, and the interval at which the page looks for queues that share dead letters, ms. */
const LATE_AFTER = 5000,
  SHARED_INTERVAL = 10_000;
/** The most jobs that one command can requeue. */
const MAX_REQUEUE = 10_000;

/** Lists names in a line, at most three of them. @param {B[]} keys */
export const names = (keys) => [
  keys.slice(0, 3).map((k, i) => [i ? ', ' : '', show(k, 40)]),
  keys.length > 3 && ' ' + t('queues.names.more', { n: keys.length - 3 }),
];

/** When a job is due, or was. @param {number} due */
function dueCell(due) {
  const at = clock();
  return due > at ? ttl(due - at, at, { done: t('time.now') }) : ago(due);
}

/** The label of a job's time. A dead letter has been due since its last delivery failed. @param {string} state */
const dueWord = (state) => t(state === 'dead' ? 'queues.failed' : 'queues.due');

/** @param {string} state @returns {Column<JobRow>[]} */
const columns = (state) => [
  column.name('id', t('queues.job'), (r) => r.id, {}, 80),
  column.name('payload', t('queues.payload'), (r) => r.payload, { wide: true }, 120),
  column.number('deliveries', t('queues.deliveries'), (r) => r.deliveries),
  column.of('due', dueWord(state), (r) => r.due, { num: true, cell: (r) => dueCell(r.due) }),
  ...(state === 'leased' ? leaseColumns() : []),
];

/** @returns {Column<JobRow>[]} */
const leaseColumns = () => [
  column.countdown('until', t('locks.lease'), (r) => r.until),
  column.of('token', t('locks.token'), (r) => r.token, { num: true, minor: true }),
];

/** Shows a whole job. @param {JobRow} job @param {string} state */
const showJob = ({ id: name, payload, deliveries, due }, state) =>
  dialog({
    title: t('queues.job') + ' ' + text(name),
    wide: true,
    body: [
      h('dl', { class: 'facts' }, property(t('queues.deliveries'), num(deliveries)), property(dueWord(state), date(due))),
      h('b', null, t('queues.payload')),
      payload.t === undefined ? h('p', { class: 'look' }, t('key.hidden')) : viewer(payload, payload.n !== undefined),
    ],
  });

/** The numbers of jobs by state. @param {QueueRow} q */
export const counts = (q) => ({ ready: q.ready, delayed: q.delayed, leased: q.leased, dead: q.letters ?? 0 });

/** A bar with the share of each state among a queue's jobs. @param {Partial<ReturnType<typeof counts>>} jobs */
export function stateBar(jobs) {
  const all = Object.entries(jobs).filter(([, n]) => n > 0);
  return h(
    'span',
    { class: 'states', 'aria-hidden': 'true', title: all.map(([s, n]) => t('queues.' + s) + ' ' + num(n)).join(', ') },
    all.map(([s, n]) => h('i', { class: s, style: { 'flex-grow': n } })),
  );
}

/** The number of intervals in the timeline of delayed jobs. */
const INTERVALS = 30;

/** Shows when the delayed jobs of a page fall due. @param {HTMLElement} el @param {JobRow[]} jobs */
function timeline(el, jobs) {
  const from = clock(),
    later = jobs.filter((r) => r.due > from),
    step = (Math.max(...later.map((r) => r.due)) - from) / INTERVALS;
  el.hidden = later.length < 2;
  if (el.hidden) return;
  const values = new Array(INTERVALS).fill(0),
    unit = step * INTERVALS < 3e5 ? 'minute' : step * INTERVALS < 864e5 ? 'hour' : 'month';
  for (const r of later) values[Math.min(INTERVALS - 1, Math.floor((r.due - from) / step))]++;
  bars(el, [{ label: t('queues.delayed'), cls: 's-key', values }], {
    label: t('queues.timeline', { n: later.length }),
    x: (i) => date(from + i * step) + ' – ' + date(from + (i + 1) * step),
    tick: (i) => tick(from + i * step, unit),
    height: 96,
  });
}

/** A queue with its jobs of one state. */
class QueueView {
  /** @param {Ctx} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.k = ctx.params.get('k') || '';
    this.state = ctx.params.get('s') || 'ready';
    this.dead = this.state === 'dead';
    /** @type {QueueRow|null} */
    this.queue = null;
    /** The key of the queue to which the shown jobs belong; dead letters belong to another one. @type {B|null} */
    this.shown = null;
    /** The id that the user looks for. */
    this.finding = '';
    /** The ids of the last jobs of this page and of the pages before it. @type {string[]} */
    this.pages = [];
    this.last = '';
    /** The other queues with the same dead-letter queue, whether there may be more, and when the page asked for them. */
    this.sharing = { queues: /** @type {B[]} */ ([]), unsure: false, askedAt: -Infinity };
    this.head = h('div', { class: 'titlebar many' });
    this.tabs = h('nav', { class: 'tabs', 'aria-label': t('queues.states') });
    this.facts = h('dl', { class: 'facts' });
    this.note = h('p', { class: 'faint' });
    this.about = h('p', { class: 'faint' }, t('queues.about.' + this.state));
    this.timeline = h('div', { hidden: true });
    this.more = h('p', { class: 'faint' });
    this.shares = h('p', { class: 'look', hidden: true });
    this.next = h('button', { type: 'button', hidden: true, on: { click: () => this.turn() } }, t('queues.further'));
    this.first = h('button', { type: 'button', hidden: true, on: { click: () => this.turnToFirst() } }, t('queues.first'));
    this.search = searchBox(t('queues.find'), (s) => {
      this.finding = s.trim();
      this.again();
    });
    this.buttons = this.makeButtons();
    this.chosen = this.makeChosen();
    this.jobs = this.makeJobs();
    this.schedules = schedulesCard(
      ctx,
      () => this.key(),
      () => this.again(),
    );
  }

  again = async () => {};

  /** The key of the queue, which exists as long as there are buttons. */
  key() {
    return /** @type {QueueRow} */ (this.queue).k;
  }

  /** The key of the queue to which the shown jobs belong. */
  shownKey() {
    return /** @type {B} */ (this.shown);
  }

  /** Runs a command, and reads the queue again. @param {Words} words @param {RunOptions} o */
  async act(words, o) {
    if (await run(this.ctx.db, words, o)) this.again();
  }

  makeButtons() {
    /** @param {string} action @param {string} label @param {() => unknown} fn */
    const button = (action, label, fn) => this.ctx.button('queues.' + action, t('queues.' + label), fn);
    return {
      resume: button('pause', 'resume', () => this.act(['DQ.CONFIG', this.key(), 'PAUSED', 'no'], { text: t('queues.resume.text') })),
      pause: button('pause', 'pause', async () => {
        const a = await askPause(this.key());
        if (a) this.act(a.argv, { quiet: true });
      }),
      add: button('add', 'add', async () => {
        const a = await askJob(this.key());
        if (a) this.act(a.argv, { quiet: true, unchanged: t('queues.add.there') });
      }),
      config: button('config', 'config', async () => {
        const a = this.queue && (await askConfig(this.queue));
        if (a) this.act(a.argv, { quiet: true });
      }),
      all: this.dead ? this.ctx.button('queues.move', t('queues.requeue.all'), () => this.requeueAll()) : null,
    };
  }

  /** The buttons for the selected jobs, or for one job. @param {() => B[]} ids @param {number} n 1, or more */
  jobButtons(ids, n) {
    /** @param {string} action @param {string} label @param {() => unknown} fn */
    const small = (action, label, fn) => this.ctx.button('queues.' + action, t('queues.' + label, { n }), fn, { small: true });
    return {
      run: this.state === 'delayed' ? small('run', 'run', () => this.runNow(ids())) : null,
      requeue: this.dead ? small('move', 'requeue', () => this.requeue(ids())) : null,
      cancel: small('cancel', 'cancel', () => this.cancel(ids())),
    };
  }

  /** The line above the jobs, which describes the selected ones. */
  makeChosen() {
    const count = h('b'),
      buttons = this.jobButtons(() => this.jobs.selected().map((r) => r.id), 2),
      el = h('div', { class: 'row', hidden: true }, count, buttons.run, buttons.requeue, buttons.cancel);
    return { el, count, run: buttons.run, isUseful: Object.values(buttons).some((b) => b && !b.disabled) };
  }

  makeJobs() {
    const { el, count, isUseful } = this.chosen;
    return table({
      label: t('queues.jobs'),
      key: (r) => id(r.id),
      fade: false,
      columns: columns(this.state),
      open: (r) => showJob(r, this.state),
      empty: () => t(this.finding ? 'queues.notfound' : 'queues.none.' + this.state),
      select: isUseful
        ? (rows) => {
            el.hidden = !rows.length;
            setText(count, t('table.chosen', { n: rows.length }));
          }
        : undefined,
      actions: (now) => {
        const { requeue, run: runButton, cancel } = this.jobButtons(() => [now().id], 1);
        return [requeue, this.queue && runNowQueue(this.queue.k) && runButton, ' ', cancel];
      },
    });
  }

  /**
   * Moves dead letters to the queue, and reads it again.
   * @param {B[]} ids
   * @param {B[]} which the arguments that select the jobs
   * @param {string} more
   */
  async moveBack(ids, which, more = '') {
    const command = argv('DQ.MOVE', this.shownKey(), this.key(), ...which);
    if (await requeue(this.ctx.db, command, this.shownKey(), ids, t('queues.requeue.text') + more)) this.again();
  }

  /** @param {B[]} ids */
  requeue(ids) {
    const { queues, unsure } = this.sharing;
    return this.moveBack(ids, argv('IDS', ids.length, ...ids), queues.length || unsure ? ' ' + t('queues.requeue.shared') : '');
  }

  async requeueAll() {
    // Another queue may have started to share these dead letters a moment ago.
    await this.readSharing();
    if (this.sharing.queues.length || this.sharing.unsure) return;
    const ids = this.jobs.rows().map((r) => r.id);
    this.moveBack(ids, argv('COUNT', MAX_REQUEUE));
  }

  /** @param {B[]} ids */
  cancel(ids) {
    return this.act(['DQ.CANCEL', this.shownKey(), ...ids], {
      danger: true,
      text: t('queues.cancel.text', { n: ids.length }),
      unchanged: t('queues.job.moved'),
    });
  }

  /** Makes jobs due now, by moving them to a temporary queue and back, so that they keep payloads and priorities. @param {B[]} ids */
  async runNow(ids) {
    const key = this.key(),
      beside = fromText(runNowQueue(key));
    /** @type {Words[]} */
    const moves = [
      ['DQ.MOVE', key, beside, 'IDS', ids.length, ...ids, 'DELAY', 0],
      ['DQ.MOVE', beside, key, 'IDS', ids.length, ...ids],
    ];
    const moved = await runAll(this.ctx.db, moves, {
      text: t('queues.run.text'),
      done: ([, back]) =>
        integerOf(back) === '0' ? [t('queues.job.moved'), 'bad'] : [t('queues.run.done', { n: Number(integerOf(back)) }), 'good'],
    });
    if (moved) this.again();
  }

  /** Shows the next page of jobs. */
  turn() {
    this.pages.push(this.last);
    this.again();
  }

  turnToFirst() {
    this.pages.length = 0;
    this.again();
  }

  async readSharing() {
    const { ctx, k } = this,
      a = await get('queue', { db: ctx.db, k, limit: 1, sharing: 1 }, ctx.stop),
      queues = a.sharing || [];
    this.sharing = { queues, unsure: !!a.unsure, askedAt: performance.now() };
    this.shares.hidden = !queues.length && !a.unsure;
    fill(this.shares, queues.length ? [t('queues.shared.with'), ' ', names(queues), '. '] : '', t('queues.shared.text'));
  }

  paintHead() {
    const { queue, head, buttons } = this;
    fill(
      head,
      h('h1', null, queue ? show(queue.k, 120) : t('queues.gone')),
      queue?.paused &&
        h(
          'span',
          { class: 'badge look' },
          queue.until === null ? t('queues.paused') : t('queues.paused.until', { span: span(Math.max(0, queue.until - clock())) }),
        ),
      queue && h('a', { href: this.ctx.link('key', { db: this.ctx.db, k: this.k }) }, t('queues.raw')),
      h('span', { class: 'grow' }),
      queue && [buttons.add, buttons.config, queue.paused ? buttons.resume : buttons.pause],
    );
  }

  paintFacts() {
    const { ctx, queue: q } = this;
    if (!q) return fill(this.facts);
    const next = q.next === null ? '–' : q.next > clock() ? t('time.in', { span: span(q.next - clock()) }) : t('time.now');
    return fill(
      this.facts,
      property(t('queues.states'), stateBar(counts(q))),
      property(t('queues.consumers'), num(q.waiting)),
      property(t('queues.next'), next),
      property(t('queues.late'), q.ready ? span(q.late) : '–', q.ready && q.late > LATE_AFTER ? 'look' : ''),
      q.most > 0 && property(t('queues.most'), num(q.most)),
      q.maxLen > 0 && property(t('queues.maxlen'), num(q.maxLen)),
      property(t('queues.deadletters.to'), q.to ? column.keyLink(ctx, 'queues', q.to) : t('queues.deadletters.none')),
      q.stream && property(t('queues.delivers'), column.keyLink(ctx, 'streams', q.stream)),
      property(t('queues.delivers.failed'), q.wrong, 'look'),
      q.dropped > 0 && property(t('queues.dropped'), num(q.dropped), 'look'),
    );
  }

  paintTabs() {
    const { ctx, k, queue } = this;
    /** @type {Record<string, number>} */
    const n = queue ? counts(queue) : {};
    fill(
      this.tabs,
      STATES.map((s) =>
        h(
          'a',
          { href: ctx.link('queues', { db: ctx.db, k, s }), 'aria-current': s === this.state ? 'page' : undefined },
          h('i', { class: 'level ' + s }),
          t('queues.' + s) + (queue ? ' ' + num(n[s]) : ''),
        ),
      ),
    );
  }

  /** Reads the jobs of the page. If it has become empty, the page before it follows. @returns {Promise<Partial<QueueAnswer>>} */
  async readJobs() {
    const { ctx, shown, finding, pages } = this,
      from = pages[pages.length - 1];
    if (!shown) return { jobs: [], more: false };
    const place = finding ? { id: url(fromText(finding)) } : { from },
      a = await get('queue', { db: ctx.db, k: url(shown), state: this.dead ? 'all' : this.state, ...place }, ctx.stop);
    if (from !== undefined && !finding && !a.jobs.length) {
      if (this.isPastEnd) this.isPastEnd = false;
      else {
        this.isPastEnd = true;
        pages.pop();
      }
    } else this.isPastEnd = false;
    return a;
  }

  /** Whether the page after the last job was empty. */
  isPastEnd = false;

  async read() {
    const { ctx, dead } = this,
      a = await get('queue', { db: ctx.db, k: this.k, limit: 1 }, ctx.stop),
      queue = (this.queue = a.row);
    if (this.chosen.run) this.chosen.run.hidden = !queue || !runNowQueue(queue.k);
    this.paintHead();
    this.paintFacts();
    this.paintTabs();
    this.schedules.set(a.schedules);
    this.shown = queue && (dead ? queue.to : queue.k);
    const { jobs = [], more = false, denied = [] } = await this.readJobs();
    this.jobs.set(jobs);
    timeline(this.timeline, this.state === 'delayed' ? jobs : []);
    setText(this.about, t(dead && queue && !queue.to ? 'queues.about.nodead' : 'queues.about.' + this.state, { key: '{key}' }));
    this.last = jobs.length ? url(jobs[jobs.length - 1].id) : '';
    this.next.hidden = !more;
    this.first.hidden = !this.pages.length;
    if (dead && queue?.to && performance.now() - this.sharing.askedAt > SHARED_INTERVAL) await this.readSharing();
    if (this.buttons.all) this.buttons.all.hidden = !jobs.length || this.sharing.queues.length > 0 || this.sharing.unsure;
    setText(this.note, missing([...new Set([...(a.denied || []), ...denied])]));
    setText(this.more, more ? t('list.more', { n: jobs.length }) : '');
  }

  /** @param {HTMLElement} root */
  open(root) {
    const { db } = this.ctx;
    fill(
      root,
      h('p', null, h('a', { href: this.ctx.link('queues', { db }) }, t('queues.others'))),
      this.head,
      section(null, this.facts),
      this.tabs,
      this.note,
      section(
        null,
        h('div', { class: 'titlebar' }, this.about, h('span', { class: 'grow' }), this.search, this.buttons.all),
        this.shares,
        this.chosen.el,
        this.timeline,
        this.jobs.el,
        this.more,
        h('p', null, this.first, ' ', this.next),
      ),
      this.schedules.el,
    );
    this.again = poll(this.ctx, 1000, () => this.read());
  }
}

/** @param {HTMLElement} root @param {Ctx} ctx */
export const showQueue = (root, ctx) => new QueueView(ctx).open(root);

// One limiter: its remaining capacity, and its decision about a request.
import { h, fill, setText, section } from '../lib/h.js';
import { clock, exec, get, integerOf, isGone, messageOf, run } from '../lib/api.js';
import { ttl } from '../lib/countdown.js';
import { confirmCommand, dialog } from '../lib/dialog.js';
import { argv, exactly, id, line, show, text, url } from '../lib/bytes.js';
import { t, interval, num, span } from '../lib/i18n.js';
import { listed, poll } from '../lib/poll.js';
import { property } from './card.js';
import { showReservations } from './limiters.js';

/** @import { B, Child, Ctx, Facts, LimitRow, Reply, TopRow } from '../lib/types.js' */

/**
 * Returns how many minutes the counts of a limiter cover. The server halves the counts each minute, so those of a limiter that always
 * denies cover a minute and a half on average.
 * @param {TopRow} r
 */
export const minutes = (r) => Math.min(1.5, Math.max(1, (clock() - r.since) / 60_000));

/** The remaining capacity of a limiter, as a bar and as figures. @param {LimitRow} r */
export function remaining(r) {
  const meter = h('meter', { min: 0, max: Math.max(1, r.limit), value: Math.max(0, r.remaining), 'aria-hidden': 'true' });
  return h('span', null, meter, ' ', num(r.remaining) + ' / ' + num(r.limit));
}

/**
 * The command that takes n requests, or only asks for the limiter's decision.
 * @param {LimitRow} r @param {string} n @param {boolean} peek
 */
function take(r, n, peek) {
  const burst = r.algorithm === 'gcra' ? ['BURST', r.burst] : [];
  return argv('RL.TAKE', r.k, r.limit, r.period, ...burst, 'COST', n || 0, 'ALGO', r.algorithm, ...(peek ? ['PEEK'] : []));
}

/**
 * The decision about n requests in words, either of a check or after they were taken.
 * @param {HTMLElement} el
 * @param {Reply} x
 * @param {number} n
 * @param {boolean} peek
 */
function showAnswer(el, x, n, peek) {
  el.classList.toggle('error', !!x.error);
  if (x.error || !Array.isArray(x.reply)) {
    setText(el, x.text);
    return;
  }
  const [ok, most, left, retry] = x.reply.map((v) => Number(integerOf(v))),
    nothing = peek ? '' : ' ' + t('limits.whatif.nothing');
  el.classList.toggle('look', !ok);
  if (ok && peek) setText(el, t('limits.whatif.yes', { left: left - n, most }));
  else if (ok) setText(el, t('limits.whatif.taken', { n, left, most }));
  else if (retry < 0) setText(el, t('limits.whatif.never', { most }) + nothing);
  else setText(el, t('limits.whatif.no', { span: span(retry / 1000), left }) + nothing);
}

/** @param {number} db @param {B[]} command @returns {Promise<Reply>} */
const answerOf = (db, command) => exec(db, command).catch((e) => ({ error: true, text: messageOf(e), reply: null, ms: 0 }));

/**
 * Asks with RL.TAKE ... PEEK how the limiter would decide about n requests now. A separate button takes them, after a question, and then
 * calls taken.
 * @param {number} db
 * @param {LimitRow} r
 * @param {() => unknown} taken
 */
export async function whatIf(db, r, taken) {
  // The button belongs to no form, so that Enter checks and does not close the dialog.
  const n = h('input', { type: 'number', min: 0, value: '1', form: '' }),
    preview = h('pre', { class: 'command' }),
    answer = h('p', { role: 'status' }, t('limits.whatif.ask')),
    consume = h('button', { type: 'button', on: { click: () => takeNow() } });
  function paint() {
    fill(preview, line(take(r, n.value, true)));
    setText(consume, t('limits.whatif.take', { n: Number(n.value) }));
    consume.disabled = !(Number(n.value) > 0);
  }
  const check = async () => showAnswer(answer, await answerOf(db, take(r, n.value, true)), Number(n.value), true);
  async function takeNow() {
    const count = n.value,
      argv = take(r, count, false);
    if (!(await confirmCommand({ argv, text: t('limits.whatif.take.text') }))) return;
    showAnswer(answer, await answerOf(db, argv), Number(count), false);
    taken();
  }
  n.addEventListener('input', paint);
  n.addEventListener('keydown', (e) => {
    if (e.key === 'Enter') check();
  });
  paint();
  await dialog({
    title: t('limits.whatif.of', { name: text(r.k) }),
    body: [
      h('label', null, h('span', null, t('limits.whatif.n')), n),
      h('p', { class: 'faint' }, t('limits.whatif.text', { limit: r.limit, span: interval(r.period) })),
      preview,
      h(
        'div',
        { class: 'row asks' },
        h('button', { type: 'button', class: 'primary', on: { click: check } }, t('limits.whatif.button')),
        answer,
      ),
      h('p', null, consume),
    ],
  });
}

/** Resets a limiter after a question. @param {Ctx} ctx @param {B} k @param {() => unknown} after */
export async function reset(ctx, k, after) {
  if (await run(ctx.db, ['RL.RESET', k], { text: t('limits.reset.text') })) after();
}

/** Converts the reply of RL.INFO to a limiter. @param {B} k @param {Facts} info @returns {LimitRow} */
export const limiterOf = (k, info) => ({
  k,
  algorithm: text(/** @type {B} */ (info.algo)),
  limit: Number(info.limit),
  period: Number(info.period),
  burst: Number(info.burst),
  remaining: Number(info.remaining),
  retry: Number(info['retry-after-us']) / 1000,
  reset: Number(info['reset-after-us']) / 1000,
  reservations: Array.isArray(info.reservations) ? info.reservations.length : 0,
  line: Number(info.waiting),
});

/** A limit in words. @param {LimitRow} r */
const limitWords = (r) =>
  t('limits.words', { n: r.limit, span: interval(r.period) }) + (r.algorithm === 'gcra' ? t('limits.words.burst', { burst: r.burst }) : '');

/** The properties come each second, ms. A countdown that ended earlier would promise capacity that another client may have taken. */
const REFRESH = 1000;

/** A short time: a countdown, or, in the last second, the time as it was read. @param {number} ms @returns {Child} */
function near(ms) {
  if (ms <= 0) return t('time.now');
  return ms > REFRESH ? ttl(ms, clock(), { done: '…' }) : span(ms);
}

/** The properties of a limiter. @param {LimitRow} r */
const properties = (r) => [
  property(t('limits.remaining'), remaining(r)),
  property(t('limits.limit'), limitWords(r)),
  property(t('limits.retry'), near(r.retry)),
  property(t('limits.full'), near(r.reset)),
  property(t('limits.algorithm'), r.algorithm),
  property(t('limits.reservations'), num(r.reservations)),
  property(t('limits.waiting'), num(r.line)),
];

/** How often a limiter denies requests now. @param {TopRow} r */
const denials = (r) => [
  property(t('limits.rate'), num(r.denied / minutes(r)), 'look'),
  property(t('limits.allowed'), num(r.allowed / minutes(r))),
];

/** The remaining capacity of a limiter, in a list of properties. */
export class LimiterFacts {
  /** @param {Ctx} ctx @param {B} k */
  constructor(ctx, k) {
    this.ctx = ctx;
    this.k = k;
    // When a countdown ends between two reads, the card reads again, because a client may have taken the capacity.
    const ended = () => void this.read().catch(() => {}); // the page shows a failure itself
    this.el = h('dl', { class: 'facts aligned', on: { expired: ended } });
    /** @type {LimitRow|null} */
    this.row = null;
    /** The limiter's denials, as long as there are any. @type {TopRow|undefined} */
    this.top = undefined;
  }

  /** @param {LimitRow|null} row */
  set(row) {
    this.row = row;
    fill(this.el, row ? [this.top && denials(this.top), properties(row)] : t('limits.gone'));
  }

  /** Reads the limiter again, because its remaining capacity also changes without requests. */
  async read() {
    const { ctx, k } = this,
      view = await get('key', { db: ctx.db, k: url(k), count: 1 }, ctx.stop).catch((e) => {
        if (isGone(e)) return null;
        throw e;
      }),
      info = view?.type === 'limiter' && view.body && 'info' in view.body && view.body.info;
    this.set(info ? limiterOf(k, info) : null);
  }
}

/**
 * Shows one limiter.
 * @param {HTMLElement} root
 * @param {Ctx} ctx
 * @param {B} k
 * @param {{el: Element, add: (limiter: LimitRow|null) => void}} history of its remaining capacity
 */
export function showLimiter(root, ctx, k, history) {
  const { db } = ctx,
    facts = new LimiterFacts(ctx, k),
    buttons = h(
      'div',
      { class: 'row', hidden: true },
      ctx.button('limits.take', t('limits.whatif'), () => facts.row && whatIf(db, facts.row, () => read())),
      h('button', { type: 'button', on: { click: () => showReservations(ctx, k) } }, t('limits.reservations')),
      ctx.button('limits.reset', t('limits.reset'), () => reset(ctx, k, read)),
    );
  fill(
    root,
    h('p', null, h('a', { href: ctx.link('limits', { db }) }, t('limits.others'))),
    h(
      'div',
      { class: 'titlebar many' },
      h('h1', null, show(k, 120)),
      h('a', { href: ctx.link('key', { db, k: url(k) }) }, t('queues.raw')),
      h('span', { class: 'grow' }),
      buttons,
    ),
    section(null, facts.el),
    history.el,
  );
  const read = poll(ctx, 1000, async () => {
    await facts.read();
    buttons.hidden = !facts.row;
    history.add(facts.row);
  });
  listed(
    ctx,
    'limits',
    'left',
    (a) => {
      facts.top = a.top.find((r) => id(r.k) === id(k));
      if (facts.row) facts.set(facts.row);
    },
    exactly(k),
  );
}

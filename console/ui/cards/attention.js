// The concerns on the screen Now: about the server as a whole, from the latest sample, and about its data.
import { h, fill, list, setText } from '../lib/h.js';
import { status } from '../lib/events.js';
import { missing } from '../lib/poll.js';
import { show, text, url } from '../lib/bytes.js';
import { t, span, has } from '../lib/i18n.js';

/** @import { Attention, Concern, ConcernsAnswer, Ctx } from '../lib/types.js' */
/** A concern, or the number of other concerns of the same kind. */
/** @typedef {Partial<Attention & Concern> & {code: string, level: string, others?: number}} Row */

/** The screen that lists all concerns of a kind. */
const SCREEN = new Map([
  ['dead', 'queues'],
  ['unattended', 'queues'],
  ['undelivered', 'queues'],
  ['throttled', 'limits'],
  ['lockwait', 'locks'],
  ['behind', 'streams'],
  ['rule', 'streams'],
]);

/** The kinds by weight: first what is blocked now, then past events. Kinds that are not in this list concern the server, and weigh more. */
const WEIGHTS = ['undelivered', 'rule', 'unattended', 'lockwait', 'throttled', 'behind', 'leases', 'acl', 'dead'];

/** Sorts urgent rows first, and then by weight. @param {Row} a @param {Row} b */
const heavier = (a, b) => Number(b.level === 'act') - Number(a.level === 'act') || WEIGHTS.indexOf(a.code) - WEIGHTS.indexOf(b.code);

/** The destination of a row's link. @param {Ctx} ctx @param {Row} r */
function place(ctx, r) {
  const { db } = r;
  if (!r.k) return ctx.link(r.screen || 'now');
  const k = url(r.k);
  if (r.code === 'behind') return ctx.link('streams', { db, k, g: r.group && url(r.group) });
  if (r.code === 'rule') return ctx.link('streams', { db });
  return ctx.link(SCREEN.get(r.code) || 'queues', { db, k, s: r.code === 'dead' ? 'dead' : undefined });
}

/** @param {Row} r */
function words(r) {
  if (r.others) return t('attention.others', { n: r.others });
  if (!has('attention.' + r.code)) return r.text || '';
  return t('attention.' + r.code, { n: r.n, span: span(r.ms), why: r.why, group: r.group ? text(r.group) : '' });
}

/** @param {Ctx} ctx @param {Row} r */
function makeRow(ctx, r) {
  const urgent = r.level === 'act',
    subject = r.k && [h('a', { href: place(ctx, r) }, show(r.k, 60)), r.db !== ctx.db && h('small', null, ' db' + r.db), ': '],
    more = !r.k && r.screen && [' ', h('a', { href: place(ctx, r) }, t('attention.see'))];
  return h(
    'li',
    null,
    h('b', { class: urgent ? 'bad' : 'look' }, t(urgent ? 'attention.act' : 'attention.look')),
    h('span', null, subject, h('span', null, words(r)), more),
  );
}

/** The concerns. After the worst ones of a kind, one line counts the others. @param {ConcernsAnswer} a @returns {Row[]} */
const withOthers = (a) =>
  a.rows.flatMap((r, i, all) => {
    const n = a.more?.[r.code];
    return n && all[i + 1]?.code !== r.code ? [r, { code: r.code, level: r.level, others: n, screen: SCREEN.get(r.code) }] : [r];
  });

/** @param {Ctx} ctx */
export function attentionList(ctx) {
  const body = h('div'),
    doubt = h('p', { class: 'faint', role: 'status', hidden: true });
  /** null: not known yet. @type {Attention[]|null} */
  let server = null;
  /** @type {ConcernsAnswer|null} */
  let data = null;
  /** The reason why the page could not check the data; '' if it could. */
  let failure = '';
  /** @param {Row[]} rows */
  function paintRows(rows) {
    let ul = body.querySelector('ul');
    if (!ul) fill(body, h('section', { class: 'card attention' }, h('h2', null, t('attention.title')), (ul = h('ul'))));
    ul.parentElement?.classList.toggle(
      'act',
      rows.some((r) => r.level === 'act'),
    );
    list(
      ul,
      rows,
      (r) => r.code + (r.db ?? '') + JSON.stringify([r.k, r.group, !!r.others]) + r.text,
      (r) => makeRow(ctx, r),
      (li, r) => {
        const el = li.lastElementChild?.querySelector(':scope > span:not(.bytes)');
        if (el) setText(el, words(r));
      },
    );
  }
  function paint() {
    if (!server || (!data && !failure)) {
      fill(body, h('p', { class: 'faint' }, t('attention.checking')));
      return;
    }
    const inPart = !failure && !!data?.part;
    fill(
      doubt,
      failure && [t('attention.unchecked', { why: failure }), data && data.rows.length > 0 && ' ' + t('attention.older')],
      inPart && t('attention.part'),
    );
    doubt.hidden = !failure && !inPart;
    const rows = [...server, ...(data ? withOthers(data) : [])].sort(heavier);
    if (rows.length) paintRows(rows);
    else if (isLost()) fill(body, h('p', { class: 'faint' }, t('attention.checking')));
    else fill(body, !failure && !inPart && calm(data?.denied));
  }
  return {
    el: [body, doubt],
    /** @param {Attention[]} rows */
    setServer(rows) {
      server = rows;
      paint();
    },
    /** The concerns about the data; null if the check has failed. @param {ConcernsAnswer|null} answer @param {string} why */
    setData(answer, why) {
      data = answer || data;
      failure = why;
      paint();
    },
  };
}

/** Whether the samples are outdated, as after a restart of the server. */
function isLost() {
  const { live, paused } = status();
  return !live && !paused;
}

/** @param {string[]|undefined} denied */
const calm = (denied) => [
  h('p', { class: 'calm' }, '✓ ' + t(denied?.length ? 'attention.none.part' : 'attention.none')),
  denied && denied.length > 0 && h('p', { class: 'faint' }, missing(denied)),
];

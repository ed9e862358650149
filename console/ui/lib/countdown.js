// Cells with a deadline: they count down by the server's clock, and say so in the moment they are over.
import { h, setText } from './h.js';
import { clock } from './api.js';
import { t, span, date } from './i18n.js';

/**
 * @typedef {{el: HTMLElement, words: HTMLElement, bar: HTMLElement|null, due: number, whole: number, made: number, up: boolean, done:
 *   string, say: (span: string) => string}} Cell
 */
/** A cell is about to end below this, ms, and below this share of its span where that is known. */
const SOON = { ms: 10_000, share: 0.25 };
/** @type {Set<Cell>} */
const cells = new Set();
let timer = 0;

/**
 * A cell for what is left of a lifetime. pttl: ms left at the server's time at; -1: no deadline; undefined: not known.
 * At its deadline the element dispatches `expired` (it bubbles), within a few ms. whole: the first span, for a bar. up: counts age
 * upwards from `at`. words: what the cell says of the span.
 * @param {number|null|undefined} pttl
 * @param {number} [at]
 * @param {{whole?: number, up?: boolean, done?: string, words?: (span: string) => string}} [o]
 * @returns {HTMLElement}
 */
export function ttl(pttl, at = clock(), o = {}) {
  if (pttl === undefined || pttl === null) return h('span', { class: 'ttl faint' }, '–');
  if (pttl < 0 && !o.up) return h('span', { class: 'ttl never', title: t('ttl.never.why') }, t('ttl.never'));
  const words = h('span', { class: 'left' }),
    bar = o.whole ? h('i', { class: 'bar' }) : null;
  const el = h('span', { class: 'ttl', title: date(at + pttl) }, bar && h('span', { class: 'track', 'aria-hidden': 'true' }, bar), words);
  const cell = {
    el,
    words,
    bar,
    due: at + pttl,
    whole: o.whole || 0,
    made: clock(),
    up: !!o.up,
    done: o.done || t('ttl.over'),
    say: o.words || String,
  };
  cells.add(cell);
  draw(cell, clock());
  plan();
  return el;
}

/** A cell that counts how long ago something was. @param {number} at */
export const since = (at) => ttl(0, at, { up: true });

/** A cell that says how long ago something was, as "5 s ago". @param {number} at */
export const ago = (at) => ttl(0, at, { up: true, words: (left) => t('time.ago', { span: left }) });

/** @param {Cell} c @param {number} now */
function draw(c, now) {
  const left = c.up ? now - c.due : c.due - now;
  if (!c.up && left <= 0) {
    setText(c.words, c.done);
    if (!c.el.isConnected && now - c.made < 1000) return; // it was over before it came into the document: the next tick says so
    cells.delete(c);
    c.el.classList.add('over');
    if (c.bar) c.bar.style.setProperty('width', '0');
    if (c.el.isConnected) c.el.dispatchEvent(new CustomEvent('expired', { bubbles: true }));
    return;
  }
  // What counts down shows the second that has begun to run out; so it never shows 0 while it lives.
  setText(c.words, c.say(span(Math.max(left, 1))));
  c.el.classList.toggle('soon', !c.up && left < Math.min(SOON.ms, (c.whole || Infinity) * SOON.share));
  if (c.bar) c.bar.style.setProperty('width', Math.min(100, (left / c.whole) * 100).toFixed(1) + '%');
}

function plan() {
  if (timer || !cells.size) return;
  const now = clock();
  let next = 1000 - (now % 1000) + 1;
  for (const c of cells) {
    const left = c.due - now;
    if (!c.up && left < 11000) next = Math.min(next, left > 100 ? 100 : left > 0 ? left : 20);
  }
  timer = setTimeout(tick, next);
}

function tick() {
  timer = 0;
  const now = clock();
  for (const c of [...cells]) {
    if (!c.el.isConnected && now - c.made > 5000) cells.delete(c);
    else draw(c, now);
  }
  plan();
}

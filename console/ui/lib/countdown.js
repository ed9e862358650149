// Cells with a deadline: they count down by the server's clock, and report the moment at which it passes.
import { h, setText } from './h.js';
import { clock } from './api.js';
import { t, span, date } from './i18n.js';

/**
 * @typedef {{el: HTMLElement, words: HTMLElement, bar: HTMLElement|null, due: number, whole: number, made: number, up: boolean, done:
 *   string, say: (span: string) => string}} Cell
 */
/** A cell is about to end if fewer ms than this remain, and, if the span is known, a smaller share of it than this. */
const SOON = { ms: 10_000, share: 0.25 };
/** @type {Set<Cell>} */
const cells = new Set();
let timer = 0;

/**
 * Makes a cell for a remaining lifetime. pttl: the ms that remained at the server's time at; -1: no deadline; undefined: not known.
 * Within a few ms of its deadline the element dispatches `expired`, which bubbles. whole: the initial span, for a bar. up: the cell
 * counts the time since at. words: returns the cell's text for a span.
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

/** A cell that counts the time since an event. @param {number} at */
export const since = (at) => ttl(0, at, { up: true });

/** A cell with the time since an event, as "5 s ago". @param {number} at */
export const ago = (at) => ttl(0, at, { up: true, words: (left) => t('time.ago', { span: left }) });

/** @param {Cell} c @param {number} now */
function draw(c, now) {
  const left = c.up ? now - c.due : c.due - now;
  if (!c.up && left <= 0) {
    setText(c.words, c.done);
    if (!c.el.isConnected && now - c.made < 1000) return; // it ended before it came into the document: the next tick reports it
    cells.delete(c);
    c.el.classList.add('over');
    if (c.bar) c.bar.style.setProperty('width', '0');
    if (c.el.isConnected) c.el.dispatchEvent(new CustomEvent('expired', { bubbles: true }));
    return;
  }
  // A countdown rounds up to the second that is running, so a cell never shows 0 before its deadline.
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

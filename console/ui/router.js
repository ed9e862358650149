// The screen that the hash names: #/keys?db=0&match=a*
import { ApiError, isAbort, isPassing, messageOf, refusal } from './lib/api.js';
import { query } from './lib/bytes.js';
import { closeDialogs, endMessages } from './lib/dialog.js';
import * as events from './lib/events.js';
import { h, fill } from './lib/h.js';
import { num, t } from './lib/i18n.js';
import { button, can, isKnown, me } from './user.js';

/** @import { Ctx, Params, Screen } from './lib/types.js' */

/** The screens of the rail. */
export const RAIL = ['now', 'expiry', 'keys', 'limits', 'locks', 'queues', 'streams', 'performance', 'server', 'shell'];
/** What a route may name. */
const SCREENS = new Set([...RAIL, 'key']);
/** Where the browser keeps the database of a tab. */
const DB = 'ebb.db';
/** The time until the next try of a screen that has failed while the server was busy, ms. */
const RETRY = 2000;
/** The longest name of a key in base64 that the body of a request holds. */
const LONGEST = 1_040_000;

/** The element of the screens. */
export const screen = h('main', { id: 'screen', tabIndex: -1 });

/** Ends with the screen that is open. */
let open = new AbortController();
/** The screen failed because the server is away or busy: it opens again when the events are back, or soon where they are not lost. */
let isAway = false;
/** A screen leads to the next one by itself: what it has just said stays. */
let ledByScreen = false;
/** What the frame around the screens does when the route changes. @type {(screen: string) => void} */
let routed = () => {};

/** The hash of a route. @param {string} name @param {Params} [params] */
export function link(name, params = {}) {
  const q = query(params);
  return '#/' + name + (q.size ? '?' + q : '');
}

/** Opens a route. @param {string} name @param {Params} [params] */
export function go(name, params) {
  ledByScreen = location.hash !== link(name, params);
  location.hash = link(name, params);
}

export function route() {
  const [name, q] = location.hash.replace(/^#\/?/, '').split('?');
  return { name: SCREENS.has(name) ? name : 'now', params: new Map(new URLSearchParams(q || '')) };
}

/** The database of the route, else the one before; 0 where the server has no such database. */
export function db() {
  const asked = route().params.get('db'),
    n = Number(asked ?? (sessionStorage.getItem(DB) || (isKnown() ? me().db : 0)));
  return Number.isInteger(n) && n >= 0 && n < ((isKnown() && me().databases) || 16) && asked !== '' ? n : 0;
}

/** Ends the screen that is open. */
export const endScreen = () => open.abort();

/** Opens the screen again that has failed while the server was away. */
export function reopen() {
  if (isAway) render();
}

/** Shows why a read failed, in place of the screen. @param {unknown} e */
function showError(e) {
  if (isAbort(e) || (e instanceof ApiError && e.login)) return;
  isAway = isPassing(e);
  if (isAway) retryLater(open, e instanceof ApiError ? e.retry * 1000 : 0);
  const forbidden = e instanceof ApiError && e.status === 403,
    again = () => {
      render();
    };
  fill(
    screen,
    h(
      'div',
      { class: 'card' },
      h('h2', null, t(forbidden ? 'error.forbidden' : isAway ? 'error.waiting' : 'error.title')),
      h('p', { class: forbidden || isAway ? '' : 'error' }, refusal(e)),
      h('button', { type: 'button', on: { click: again } }, t('again')),
    ),
  );
}

/** Opens a screen again that has failed, unless the user has left it. @param {AbortController} failed @param {number} ms the least time */
function retryLater(failed, ms) {
  setTimeout(
    () => {
      if (failed !== open || !isAway) return;
      if (events.status().live && !document.hidden) render();
      else retryLater(failed, ms);
    },
    Math.max(RETRY, ms),
  );
}

/** The length of the name of a key that the page cannot ask for; 0 for others. @param {Map<string, string>} params */
function tooLong(params) {
  const k = params.get('k') || '',
    cut = /^!(\d+)$/.exec(k);
  return cut ? Number(cut[1]) : k.length > LONGEST ? Math.floor((k.length * 3) / 4) : 0;
}

/** What a screen gets until it ends. @param {Map<string, string>} params @param {AbortController} end @returns {Ctx} */
const context = (params, end) => ({
  params,
  me: me(),
  db: db(),
  go: (name, to) => {
    if (!end.signal.aborted) go(name, to); // else the reader has gone elsewhere
  },
  link,
  can,
  button,
  stop: end.signal,
  onClose: (fn) => end.signal.addEventListener('abort', fn),
  onEvent: (topic, of, fn) => {
    const stop = events.subscribe(topic, of, fn);
    end.signal.addEventListener('abort', stop);
    return stop;
  },
  fail: (e) => {
    if (end.signal.aborted || isAbort(e) || (e instanceof ApiError && e.login)) return;
    end.abort(); // its timers and its events end with it
    showError(e);
  },
});

/** How far the page was scrolled, the link that had the focus or stands in the row that had it; '': none. */
/** @typedef {{y: number, href: string, isRow: boolean}} Place */

/** The time in which the rows of a screen come, ms. */
const PATIENCE = 5000;
/** What a reader does who looks for something else. */
const MOVES = ['wheel', 'keydown', 'pointerdown', 'touchstart'];

/** The places, by the names of the entries of the history. @type {Map<string, Place>} */
const places = new Map();
/** The entry that is shown, and the number of those that have a name. */
let entry = '',
  entries = 0;

/** Notes the place on the screen that the reader leaves. */
function leave() {
  const at = document.activeElement?.closest('#screen *'),
    row = at?.closest('tr'),
    link = at?.closest('a') || row?.querySelector('a');
  places.set(entry, { y: scrollY, href: link?.getAttribute('href') || '', isRow: at === row });
}

/** The place that the reader had on the entry that is shown now; undefined for a new entry, which gets a name. */
function arrive() {
  entry = history.state?.place || '';
  if (entry) return places.get(entry);
  entry = performance.timeOrigin + '.' + ++entries; // a page that is loaded again knows no places of the page before
  history.replaceState({ place: entry }, '');
  return undefined;
}

/**
 * Leads back to a place as soon as the screen has come as far, unless the reader moves before.
 * @param {Place} place
 * @param {AbortSignal} stop the end of the screen
 */
function restore(place, stop) {
  const over = new AbortController(),
    end = () => over.abort(),
    watch = new MutationObserver(look),
    timer = setTimeout(end, PATIENCE);
  let isFocused = !place.href;
  function look() {
    if (scrollY < place.y) scrollTo(0, place.y); // as far as there are rows
    const link = isFocused ? undefined : [...screen.querySelectorAll('a')].find((a) => a.getAttribute('href') === place.href);
    if (link) {
      isFocused = true;
      /** @type {HTMLElement} */ ((place.isRow && link.closest('tr')) || link).focus({ preventScroll: true });
    }
    if (isFocused && scrollY >= place.y - 1) end();
  }
  over.signal.addEventListener('abort', () => {
    watch.disconnect();
    clearTimeout(timer);
  });
  for (const move of MOVES) addEventListener(move, end, { signal: over.signal, passive: true });
  stop.addEventListener('abort', end, { signal: over.signal });
  watch.observe(screen, { subtree: true, childList: true });
  look();
}

/** Shows the screen of the route. @param {boolean} [moved] the reader comes from another one, perhaps back to a place */
export async function render(moved) {
  open.abort();
  open = new AbortController();
  isAway = false;
  const end = open,
    place = arrive(),
    { name, params } = route();
  if (params.has('db')) sessionStorage.setItem(DB, String(db()));
  routed(name);
  try {
    /** @type {Screen} */
    const s = await import('./screens/' + name + '.js');
    if (end.signal.aborted) return;
    const { label } = me(),
      body = h('div'),
      ctx = context(params, end),
      length = tooLong(params);
    document.title = t(s.title) + (label ? ' · ' + label.text : '') + ' · ebb';
    fill(screen, body);
    scrollTo(0, 0);
    if (length) showLong(body, length);
    else {
      const close = s.open(body, ctx);
      if (close) ctx.onClose(close);
    }
    if (document.activeElement === document.body) screen.focus({ preventScroll: true });
    if (moved && place) restore(place, end.signal);
  } catch (e) {
    showError(e instanceof ApiError ? e : notLoaded(name, e));
  }
}

/** Says that the page has only a beginning of a key's name. @param {HTMLElement} root @param {number} n its length */
function showLong(root, n) {
  const words = h('p', null, t('key.long', { n: num(n) }));
  fill(
    root,
    h('section', { class: 'card' }, h('h1', null, t('key.title')), words, h('a', { href: link('keys', { db: db() }) }, t('key.others'))),
  );
}

/**
 * The error of a screen that did not load. One that was never open comes from the server, which may be away: the page tries again when
 * the events are back.
 * @param {string} name
 * @param {unknown} e
 */
function notLoaded(name, e) {
  const absent = e instanceof TypeError && /import|module/i.test(e.message),
    words = absent ? t('error.away') : t('error.screen', { name }) + ' ' + messageOf(e);
  return new ApiError(absent ? 0 : 500, { error: words }, 0);
}

/** Follows the hash. @param {(screen: string) => void} fn called when the route changes */
export function start(fn) {
  routed = fn;
  history.scrollRestoration = 'manual';
  addEventListener('hashchange', () => {
    leave();
    endMessages(!ledByScreen);
    closeDialogs();
    ledByScreen = false;
    if (isKnown()) render(true);
  });
}

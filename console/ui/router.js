// The router opens the screen that the hash names: #/keys?db=0&match=a*
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
/** The screens that a route may name. */
const SCREENS = new Set([...RAIL, 'key']);
/** The key in the browser's storage for the database of a tab. */
const DATABASE_KEY = 'ebb.db';
/** The delay before a screen that failed because the server was busy is opened again, ms. */
const RETRY_DELAY = 2000;
/** The longest base64 name of a key that fits in the body of a request. */
const MAX_NAME = 1_040_000;

/** The element that contains the screen. */
export const screen = h('main', { id: 'screen', tabIndex: -1 });

/** Aborts when the open screen ends. */
let open = new AbortController();
/**
 * Whether the screen failed because the server is away or busy. It opens again when the events return, or, if they are not lost, after a
 * delay.
 */
let isAway = false;
/** Whether one screen opens the next by itself. Then the messages on the page stay. */
let ledByScreen = false;
/** The frame's function for a changed route. @type {(screen: string) => void} */
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

/** The database of the route, or else the last one; 0 if the server has no such database. */
export function db() {
  const asked = route().params.get('db'),
    n = Number(asked ?? (sessionStorage.getItem(DATABASE_KEY) || (isKnown() ? me().db : 0)));
  return Number.isInteger(n) && n >= 0 && n < ((isKnown() && me().databases) || 16) && asked !== '' ? n : 0;
}

/** Ends the open screen. */
export const endScreen = () => open.abort();

/** Reopens the screen if it failed while the server was away. */
export function reopen() {
  if (isAway) render();
}

/** Replaces the screen by the reason why a read failed. @param {unknown} e */
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

/** Reopens a failed screen, unless the user has left it. @param {AbortController} failed @param {number} ms the least time */
function retryLater(failed, ms) {
  setTimeout(
    () => {
      if (failed !== open || !isAway) return;
      if (events.status().live && !document.hidden) render();
      else retryLater(failed, ms);
    },
    Math.max(RETRY_DELAY, ms),
  );
}

/** The length of a key's name that is too long for a request, otherwise 0. @param {Map<string, string>} params */
function tooLong(params) {
  const k = params.get('k') || '',
    cut = /^!(\d+)$/.exec(k);
  return cut ? Number(cut[1]) : k.length > MAX_NAME ? Math.floor((k.length * 3) / 4) : 0;
}

/** The context that a screen uses until it ends. @param {Map<string, string>} params @param {AbortController} end @returns {Ctx} */
const context = (params, end) => ({
  params,
  me: me(),
  db: db(),
  go: (name, to) => {
    if (!end.signal.aborted) go(name, to); // otherwise the reader has gone elsewhere
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
    end.abort(); // ends the screen's timers and events
    showError(e);
  },
});

/** A scroll position, and the focused link or the link in the focused row; '' if there is none. */
/** @typedef {{y: number, href: string, isRow: boolean}} Place */

/** How long the router waits for the rows of a screen, ms. */
const ROWS_TIMEOUT = 5000;
/** The events that show that the reader is moving on the page. */
const MOVE_EVENTS = ['wheel', 'keydown', 'pointerdown', 'touchstart'];

/** The reader's places, by the names of the history's entries. @type {Map<string, Place>} */
const places = new Map();
/** The name of the shown entry, and the number of entries that have a name. */
let entry = '',
  entries = 0;

/** Records the reader's place on the screen that the reader leaves. */
function leave() {
  const at = document.activeElement?.closest('#screen *'),
    row = at?.closest('tr'),
    link = at?.closest('a') || row?.querySelector('a');
  places.set(entry, { y: scrollY, href: link?.getAttribute('href') || '', isRow: at === row });
}

/** Returns the reader's place on the shown entry. For a new entry it returns undefined, and gives the entry a name. */
function arrive() {
  entry = history.state?.place || '';
  if (entry) return places.get(entry);
  entry = performance.timeOrigin + '.' + ++entries; // a reloaded page must not find the places of the page before
  history.replaceState({ place: entry }, '');
  return undefined;
}

/**
 * Scrolls to a place as soon as the screen is long enough, unless the reader moves first.
 * @param {Place} place
 * @param {AbortSignal} stop the end of the screen
 */
function restore(place, stop) {
  const over = new AbortController(),
    end = () => over.abort(),
    watch = new MutationObserver(look),
    timer = setTimeout(end, ROWS_TIMEOUT);
  let isFocused = !place.href;
  function look() {
    if (scrollY < place.y) scrollTo(0, place.y); // as far as the rows reach
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
  for (const move of MOVE_EVENTS) addEventListener(move, end, { signal: over.signal, passive: true });
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
  if (params.has('db')) sessionStorage.setItem(DATABASE_KEY, String(db()));
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

/** Tells the reader that the page only has the beginning of a key's name. @param {HTMLElement} root @param {number} n its length */
function showLong(root, n) {
  const words = h('p', null, t('key.long', { n: num(n) }));
  fill(
    root,
    h('section', { class: 'card' }, h('h1', null, t('key.title')), words, h('a', { href: link('keys', { db: db() }) }, t('key.others'))),
  );
}

/**
 * Returns the error of a screen that did not load. If the code of the screen did not load, the server may be away: the page tries again
 * when the events return.
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

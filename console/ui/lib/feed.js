// The stream of news: one EventSource a tab with all topics in it. It is closed 10 s after the tab is hidden.
import { clock as serverClock, sync } from './api.js';
import { url } from './bytes.js';

/** @typedef {(data: any, event: string) => void} Listener */
/** @typedef {{live: boolean, paused: boolean, since: number, why: string}} State */

/** @type {Map<string, Set<Listener>>} */
const topics = new Map();
/** @type {Set<(s: State) => void>} */
const watchers = new Set();
/** @type {EventSource|null} */
let stream = null;
let last = '', opened = '', tries = 0, heard = 0;
/** @type {any} */ let timer = 0;
/** @type {any} */ let hideTimer = 0;
/** @type {State} */
const state = { live: false, paused: false, since: 0, why: '' };
/** @type {any[]} */
let ring = [];

/** The server's time now, unix ms. */
export const clock = () => serverClock();

/** The samples of the last 15 minutes, one a second, oldest first. */
export const samples = () => ring;

/** The state of the stream now. */
export const status = () => state;

/** Calls fn when the stream is lost, back or paused. Answers how to stop. @param {(s: State) => void} fn */
export function onState(fn) {
  watchers.add(fn);
  return () => watchers.delete(fn);
}

/** @param {boolean} live @param {string} [why] */
function set(live, why = '') {
  if (live === state.live && why === state.why) return;
  state.live = live;
  state.why = why;
  if (!live) state.since = heard || Date.now();
  for (const fn of watchers) fn(state);
}

/**
 * Calls fn(data, event) for each event of a topic (`sample`, `expired`, `key:0:aGk`, `limits:0` ...). After a gap fn gets the event `resync` and must read its state again.
 * @param {string} topic @param {Listener} fn @returns {() => void} unsubscribe
 */
export function subscribe(topic, fn) {
  let set = topics.get(topic);
  if (!set) topics.set(topic, set = new Set());
  set.add(fn);
  later();
  return () => {
    set.delete(fn);
    if (!set.size && topics.get(topic) === set) topics.delete(topic);
    later();
  };
}

/** Stops all news (true) or lets them go on. @param {boolean} on */
export function pause(on) {
  state.paused = on;
  if (on) close(); else open();
  for (const fn of watchers) fn(state);
}

/** Closes the stream for good, as at logout. */
export function stop() {
  topics.clear();
  ring = [];
  last = '';
  close();
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(() => { if ([...topics.keys()].sort().join() !== opened) open(); }, 30);
}

function close() {
  clearTimeout(timer);
  if (stream) stream.close();
  stream = null;
  opened = '';
}

/** @param {string} why */
function lost(why) {
  close();
  if (!topics.size || state.paused || document.hidden) return;
  set(false, why);
  timer = setTimeout(open, Math.min(10000, 500 * 2 ** tries++));
}

/** @param {string} event @param {any} data */
function deliver(event, data) {
  const kind = event === 'gone' ? 'key' : event;
  for (const [topic, set] of topics) {
    const [head, db, k] = topic.split(':');
    if (event !== 'resync' && event !== 'hello') {
      if (head !== kind) continue;
      if (head === 'key' && (String(data.db) !== db || url(data.k) !== k)) continue;
    } else if (event === 'hello' && head !== 'sample') continue;
    for (const fn of [...set]) fn(data, event);
  }
}

function open() {
  close();
  if (!topics.size || state.paused || document.hidden) return;
  const want = [...topics.keys()].sort();
  opened = want.join();
  const q = new URLSearchParams({ topics: opened, ...(last ? { last } : {}) });
  const es = stream = new EventSource('api/feed?' + q);
  heard = Date.now();
  for (const name of ['hello', 'sample', 'expired', 'key', 'gone', 'limits', 'locks', 'queues', 'walk', 'monitor', 'resync', 'bye']) {
    es.addEventListener(name, (e) => {
      if (es !== stream) return;
      heard = Date.now();
      tries = 0;
      set(true);
      const m = /** @type {MessageEvent} */ (e), data = m.data ? JSON.parse(m.data) : {};
      if (m.lastEventId) last = m.lastEventId;
      if (name === 'hello') {
        if (data.now) sync(data.now, 200);
        if (data.samples && data.samples.length) ring = data.samples;
      }
      if (name === 'sample') {
        ring.push(data);
        if (ring.length > 900) ring.splice(0, ring.length - 900);
      }
      if (name === 'bye') lost(data.why || ''); else deliver(name, data);
    });
  }
  es.addEventListener('error', () => { if (es === stream) lost(''); });
}

// A sample comes each second. A stream that is silent for 6 s is lost, whatever the browser thinks of the connection.
setInterval(() => { if (stream && topics.has('sample') && Date.now() - heard > 6000) lost(''); }, 1000);
document.addEventListener('visibilitychange', () => {
  clearTimeout(hideTimer);
  if (document.hidden) hideTimer = setTimeout(close, 10000);
  else if (!stream && !state.paused) { tries = 0; open(); }
});

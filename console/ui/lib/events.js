// The stream of news: one EventSource a tab with all topics in it. It is closed 10 s after the tab is hidden.
import { LONG, clock as serverClock, sync } from './api.js';
import { fromText, url } from './bytes.js';
import { PostSource } from './source.js';

/** @typedef {(data: any, event: string) => void} Listener */
/** @typedef {{live: boolean, paused: boolean, since: number, why: string}} State */

/** @type {Map<string, Set<Listener>>} */
const topics = new Map();
/** @type {Set<(s: State) => void>} */
const watchers = new Set();
/** @type {EventSource|PostSource|null} */
let stream = null;
let last = '',
  opened = '',
  tries = 0,
  heard = 0;
/** @type {any} */ let timer = 0;
/** @type {any} */ let hideTimer = 0;
/** @type {State} */
const state = { live: false, paused: false, since: 0, why: '' };
/** @type {any[]} */
let ring = [];
const QUARTER = 900_000;
/** The topics of the stream before: those of a new one have just been read. */
let known = '';
/** A browser opens six connections to a host: a tab that opens its stream makes hidden tabs close theirs at once. */
const tabs = new BroadcastChannel('ebb.feed');

/** The server's time now, unix ms. */
export const clock = () => serverClock();

/** The samples of the last 15 minutes, oldest first: one a second while a page was open, and one in ten seconds before. */
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
 * Calls fn(data, event) for each event of a topic (`sample`, `expired:0`, `key:0:aGk`, `limits:0`, `limits:0:YSo`, `walk`,
 * `monitor`). After a gap fn gets the event `resync` and must read its state again.
 * @param {string} topic @param {Listener} fn @returns {() => void} unsubscribe
 */
export function subscribe(topic, fn) {
  let set = topics.get(topic);
  if (!set) topics.set(topic, (set = new Set()));
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
  if (on) close();
  else open();
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
  timer = setTimeout(() => {
    if ([...topics.keys()].sort().join() !== opened) open();
  }, 30);
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
    if (event === 'resync' && !data.split(',').includes(topic)) continue;
    const [head, db, k] = topic.split(':');
    if (event !== 'resync' && event !== 'hello') {
      if (head !== kind) continue;
      if ((db !== undefined && String(data.db) !== db) || (head === 'key' && url(data.k) !== k)) continue;
      if (data.match !== undefined && url(fromText(data.match)) !== (k || '')) continue;
    } else if (event === 'hello' && head !== 'sample') continue;
    for (const fn of [...set]) fn(data, event);
  }
}

/** The points of a series that comes by column. @param {any} s @returns {any[]} */
function points(s) {
  const columns = Object.entries(s).filter(([, v]) => Array.isArray(v));
  return s.at.map((/** @type {number} */ _, /** @type {number} */ i) => Object.fromEntries(columns.map(([name, v]) => [name, v[i]])));
}

function open() {
  close();
  if (!topics.size || state.paused || document.hidden) return;
  const want = [...topics.keys()].sort();
  const before = known;
  known = opened = want.join();
  const asked = { topics: opened, ...(last ? { last } : {}) };
  const q = String(new URLSearchParams(asked));
  tabs.postMessage('');
  const es = (stream = q.length > LONG ? new PostSource('api/feed', asked) : new EventSource('api/feed?' + q));
  heard = Date.now();
  for (const name of ['hello', 'sample', 'expired', 'key', 'gone', 'limits', 'locks', 'queues', 'walk', 'monitor', 'resync', 'bye']) {
    es.addEventListener(name, (e) => {
      if (es !== stream) return;
      heard = Date.now();
      tries = 0;
      set(true);
      const m = /** @type {MessageEvent} */ (e),
        data = m.data ? JSON.parse(m.data) : {};
      if (m.lastEventId) last = m.lastEventId;
      if (name === 'hello') {
        if (data.now) sync(data.now, 200);
        if (data.samples) ring = points(data.samples);
        if (data.latest && ring.length) ring[ring.length - 1] = data.latest;
      }
      if (name === 'sample') {
        ring.push(data);
        const old = ring.findIndex((p) => p.at > data.at - QUARTER);
        if (old > 0) ring.splice(0, old);
      }
      if (name === 'bye') lost(data.why || '');
      else deliver(name, name === 'resync' ? before : data);
    });
  }
  es.addEventListener('error', () => {
    if (es === stream) lost('');
  });
}

// A sample comes each second. A stream that is silent for 6 s is lost, whatever the browser thinks of the connection.
setInterval(() => {
  if (stream && topics.has('sample') && Date.now() - heard > 6000) lost('');
}, 1000);
tabs.onmessage = () => {
  if (document.hidden) close();
};
document.addEventListener('visibilitychange', () => {
  clearTimeout(hideTimer);
  if (document.hidden) hideTimer = setTimeout(close, 10000);
  else if (!stream && !state.paused) {
    tries = 0;
    open();
  }
});

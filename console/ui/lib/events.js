// The stream of events: each tab has one for all topics. The page closes it 10 s after the tab is hidden.
import { MAX_QUERY, sync } from './api.js';
import { fromText, url } from './bytes.js';
import { PostSource } from './source.js';

/** @import { Events, Listener, Sample } from './types.js' */
/** since: the beginning of the time without events, ms; next: the time of the next try, 0 during a try. */
/** @typedef {{live: boolean, paused: boolean, since: number, why: string, next: number}} State */

/** The events that the server sends. */
const NAMES = ['hello', 'sample', 'expired', 'key', 'gone', 'limits', 'locks', 'queues', 'resync', 'bye'];
/** How long the page keeps samples, ms. */
const HISTORY = 900_000;
/** A sample comes each second. After this time without one the stream counts as lost, even if the browser still sees a connection, ms. */
const SILENCE_TIMEOUT = 6000;
/** The delay after which a hidden tab closes its stream, ms. */
const HIDDEN_TIMEOUT = 10_000;
/** Subscriptions within this time open a single stream, ms. */
const BATCH_DELAY = 30;
/** The delays before a new try: the first and the longest, ms. */
const RETRY_DELAY = { first: 500, longest: 10_000 };

/** The listeners by topic. Each accepts the data of its topic. @type {Map<string, Set<Listener<any>>>} */
const topics = new Map();
/** @type {Set<(s: State) => void>} */
const watchers = new Set();
/** @type {State} */
const state = { live: false, paused: false, since: 0, why: '', next: 0 };
/** @type {EventSource|PostSource|null} */
let stream = null;
let lastEventId = '',
  openTopics = '',
  /** The topics of the previous stream. The state of new topics was read a moment ago. */
  topicsBefore = '',
  failures = 0,
  heardAt = 0,
  timer = 0,
  hideTimer = 0;
/** @type {Sample[]} */
let history = [];
/**
 * A browser opens six connections to a host. When a tab opens its stream, it makes hidden tabs close theirs at once.
 * @type {BroadcastChannel|undefined}
 */
let tabs;

/** The samples of the last 15 minutes, oldest first: one per second while a page was open, and one per ten seconds before. */
export const samples = () => history;

/** The present state of the stream. */
export const status = () => state;

/** Calls fn when the stream is lost, back or paused. Returns a function that stops it. @param {(s: State) => void} fn */
export function onState(fn) {
  watchers.add(fn);
  return () => watchers.delete(fn);
}

/** @param {boolean} live @param {string} [why] */
function setLive(live, why = '') {
  if (live === state.live && why === state.why) return;
  state.live = live;
  state.why = why;
  if (!live) state.since = heardAt || Date.now();
  for (const fn of watchers) fn(state);
}

/**
 * Calls fn(data, event) for each event of a topic. After a gap fn receives the event `resync`, and must read its state again. Returns a
 * function that ends the calls.
 * @template {keyof Events} N
 * @param {N} name
 * @param {string} of the subject of the topic: a database, `0:aGk` (a key), `0:YSo` (a pattern); '' if it has none
 * @param {Listener<Events[N]>} fn
 */
export function subscribe(name, of, fn) {
  const topic = of ? name + ':' + of : name,
    listeners = topics.get(topic) || new Set();
  topics.set(topic, listeners);
  listeners.add(fn);
  openSoon();
  return () => {
    listeners.delete(fn);
    if (!listeners.size && topics.get(topic) === listeners) topics.delete(topic);
    openSoon();
  };
}

/** Pauses all events (true) or continues them. @param {boolean} paused */
export function pause(paused) {
  state.paused = paused;
  if (paused) close();
  else open();
  for (const fn of watchers) fn(state);
}

/** Closes the stream for good, as at logout. */
export function stop() {
  topics.clear();
  history = [];
  lastEventId = '';
  close();
}

function openSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if ([...topics.keys()].sort().join() !== openTopics) open();
  }, BATCH_DELAY);
}

function close() {
  clearTimeout(timer);
  if (stream) stream.close();
  stream = null;
  openTopics = '';
}

/** @param {string} why */
function lost(why) {
  close();
  if (!topics.size || state.paused || document.hidden) return;
  const wait = Math.min(RETRY_DELAY.longest, RETRY_DELAY.first * 2 ** failures++);
  state.next = Date.now() + wait;
  setLive(false, why);
  timer = setTimeout(open, wait);
}

/**
 * Returns whether a listener of a topic receives an event. The data of a resync list the topics of the previous stream.
 * @param {string} topic
 * @param {string} event
 * @param {any} data
 */
export function concerns(topic, event, data) {
  const [name, db, of] = topic.split(':');
  if (event === 'resync') return data.split(',').includes(topic);
  if (event === 'hello') return name === 'sample';
  if (name !== (event === 'gone' ? 'key' : event) || (db !== undefined && String(data.db) !== db)) return false;
  if (name === 'key' && url(data.k) !== of) return false;
  return data.match === undefined || url(fromText(data.match)) === (of || '');
}

/** @param {string} event @param {unknown} data */
function deliver(event, data) {
  for (const [topic, listeners] of topics) if (concerns(topic, event, data)) for (const fn of [...listeners]) fn(data, event);
}

/** The points of a series whose values arrive in columns. @param {Record<string, any[]>} series */
function points(series) {
  const columns = Object.entries(series).filter(([, v]) => Array.isArray(v));
  return series.at.map((_, i) => /** @type {Sample} */ (Object.fromEntries(columns.map(([name, v]) => [name, v[i]]))));
}

/** @param {{now?: number, samples?: Record<string, any[]>, latest?: Sample}} data */
function greeted(data) {
  if (data.now) sync(data.now, 200);
  if (data.samples) history = points(data.samples);
  if (data.latest && history.length) history[history.length - 1] = data.latest;
}

/** @param {Sample} sample */
function remember(sample) {
  history.push(sample);
  const old = history.findIndex((p) => p.at > sample.at - HISTORY);
  if (old > 0) history.splice(0, old);
}

function open() {
  close();
  state.next = 0;
  if (!topics.size || state.paused || document.hidden) return;
  const before = topicsBefore;
  topicsBefore = openTopics = [...topics.keys()].sort().join();
  const asked = { topics: openTopics, ...(lastEventId ? { last: lastEventId } : {}) },
    query = String(new URLSearchParams(asked));
  tabs?.postMessage('');
  const source = (stream = query.length > MAX_QUERY ? new PostSource('api/feed', asked) : new EventSource('api/feed?' + query));
  heardAt = Date.now();
  for (const name of NAMES)
    source.addEventListener(name, (e) => {
      if (source === stream) received(name, /** @type {MessageEvent} */ (e), before);
    });
  source.addEventListener('error', () => {
    if (source === stream) lost('');
  });
}

/** @param {string} name @param {MessageEvent} e @param {string} before the topics of the stream before */
function received(name, e, before) {
  heardAt = Date.now();
  failures = 0;
  setLive(true);
  const data = e.data ? JSON.parse(e.data) : {};
  if (e.lastEventId) lastEventId = e.lastEventId;
  if (name === 'hello') greeted(data);
  if (name === 'sample') remember(data);
  if (name === 'bye') lost(data.why || '');
  else deliver(name, name === 'resync' ? before : data);
}

/** From now on reacts to a silent stream, to other tabs, and to the page being hidden. */
export function start() {
  tabs = new BroadcastChannel('ebb.feed');
  tabs.onmessage = () => {
    if (document.hidden) close();
  };
  setInterval(() => {
    if (stream && topics.has('sample') && Date.now() - heardAt > SILENCE_TIMEOUT) lost('');
  }, 1000);
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hideTimer);
    if (document.hidden) hideTimer = setTimeout(close, HIDDEN_TIMEOUT);
    else if (!stream && !state.paused) {
      failures = 0;
      open();
    }
  });
}

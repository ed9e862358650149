// The frame: the user, the rail, the top bar, Find, and the screen that the hash names.
import { h, fill, icon, list } from './lib/h.js';
import { ApiError, get, post, onFail } from './lib/api.js';
import { endMessages } from './lib/dialog.js';
import { refusal } from './lib/poll.js';
import * as feed from './lib/events.js';
import { setLang, startLang, lang, num, t, span, percent } from './lib/i18n.js';
import { fromText, glob, id, query, quote, show, url } from './lib/bytes.js';

/**
 * What a screen gets. params: of the hash. me: GET api/me. go: opens a route. link: a hash. can: whether the user may do an action.
 * button: a button for an action,
 * or null where the console is read-only, or a grey one with the ACL rule that would allow it. onNews: subscribe until the screen closes.
 * @typedef {{params: Map<string, string>, me: any, db: number, go: (name: string, params?: Record<string, any>) => void, link:
 *   (name: string, params?: Record<string, any>) => string,
 *   can: (action: string) => boolean, button: (action: string, label: string, fn: () => any, o?: {danger?: boolean, small?:
 *   boolean, primary?: boolean}) => HTMLButtonElement|null,
 *   onNews: (topic: string, fn: (data: any, event: string) => void) => () => void, onClose: (fn: () => void) => void, stop: AbortSignal,
 *   fail: (e: any) => void}} Ctx
 * @typedef {{title: string, topics?: (params: Map<string, string>) => string[], open: (root: HTMLElement, ctx: Ctx) => (void|(() =>
 *   void))}} Screen
 */

const RAIL = ['now', 'expiry', 'keys', 'limits', 'locks', 'queues', 'streams', 'performance', 'server', 'shell'];
/** What a route may name. */
const SCREENS = new Set([...RAIL, 'key']);
const root = /** @type {HTMLElement} */ (document.getElementById('app'));
const screen = h('main', { id: 'screen', tabIndex: -1 }),
  bar = h('header', { id: 'bar' }),
  rail = h('nav', { id: 'rail' }),
  banner = h('div', { id: 'banner', role: 'status' });
/** @type {any} */
let me = null;
/** @type {AbortController} */
let open = new AbortController();
/** @type {any} */
let waiting = 0;
/** The screen failed because the server is away: it opens again when the news are back. */
let away = false;

/** A screen leads to the next one by itself: what it has just said stays. */
let led = false;

/** @param {string} name @param {Record<string, any>} [params] */
function link(name, params = {}) {
  const q = query(params);
  return '#/' + name + (q.size ? '?' + q : '');
}
/** @param {string} name @param {Record<string, any>} [params] */
const go = (name, params) => {
  led = location.hash !== link(name, params);
  location.hash = link(name, params);
};
function route() {
  const [name, q] = location.hash.replace(/^#\/?/, '').split('?');
  return { name: SCREENS.has(name) ? name : 'now', params: new Map(new URLSearchParams(q || '')) };
}
/** The database of the route, else the one before; 0 where the server has no such database. */
const db = () => {
  const asked = route().params.get('db'),
    n = Number(asked ?? (sessionStorage.getItem('ebb.db') || (me ? me.db : 0)));
  return Number.isInteger(n) && n >= 0 && n < (me?.databases || 16) && asked !== '' ? n : 0;
};

/** Actions on the server itself, which a replica that refuses writes does as well. */
const SERVES = /^(server|performance|locks\.kill|monitor|shell|walk)/;
/** @param {string} action */
const can = (action) => !!me && !!me.can && !!me.can[action] && !me.readOnly;
/** @type {Ctx['button']} */
function button(action, label, fn, o = {}) {
  if (me.readOnly) return null;
  const off = !can(action),
    follows = me.follows && !SERVES.test(action),
    why = off ? t('needs', { rule: (me.need && me.need[action]) || action }) : follows ? t('needs.master') : null;
  return h(
    'button',
    {
      type: 'button',
      class: [o.danger && !o.small && 'danger', o.primary && 'primary', o.small && 'small'],
      disabled: off || follows,
      title: why,
      on: { click: fn },
    },
    label,
  );
}

/** @param {any} e what a screen shows when a read failed */
function fail(e) {
  if (e.name === 'AbortError' || e.login) return;
  away = !!e.passing;
  fill(
    screen,
    h(
      'div',
      { class: 'card' },
      h('h2', null, e.status === 403 ? t('error.forbidden') : t('error.title')),
      h('p', { class: e.status === 403 ? '' : 'error' }, refusal(e)),
      h('button', { type: 'button', on: { click: () => show_() } }, t('again')),
    ),
  );
}

/** The longest name of a key in base64 that the body of a request holds. */
const LONGEST = 1_040_000;

/** Says that the page has only a beginning of a key's name. @param {HTMLElement} root @param {number} n its length */
function long(root, n) {
  fill(
    root,
    h(
      'section',
      { class: 'card' },
      h('h1', null, t('key.title')),
      h('p', null, t('key.long', { n: num(n) })),
      h('a', { href: link('keys', { db: db() }) }, t('key.others')),
    ),
  );
}

async function show_() {
  open.abort();
  open = new AbortController();
  away = false;
  const mine = open,
    { name, params } = route();
  document.documentElement.classList.remove('drawer');
  for (const a of rail.querySelectorAll('a.entry'))
    if (a.getAttribute('data-name') === (name === 'key' ? 'keys' : name)) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  if (params.has('db')) sessionStorage.setItem('ebb.db', String(db()));
  paintBar();
  try {
    /** @type {Screen} */
    const s = await import('./screens/' + name + '.js');
    if (mine.signal.aborted) return;
    document.title = t(s.title) + (me.label ? ' · ' + me.label.text : '') + ' · ebb';
    const body = h('div');
    fill(screen, body);
    scrollTo(0, 0);
    /** @type {Ctx} */
    const ctx = {
      params,
      me,
      db: db(),
      go,
      link,
      can,
      button,
      stop: mine.signal,
      onClose: (fn) => mine.signal.addEventListener('abort', fn),
      onNews: (topic, fn) => {
        const end = feed.subscribe(topic, fn);
        mine.signal.addEventListener('abort', end);
        return end;
      },
      fail: (e) => {
        if (mine.signal.aborted || e.name === 'AbortError' || e.login) return;
        mine.abort(); // its timers and its news end with it
        fail(e);
      },
    };
    const k = params.get('k') || '',
      cut = /^!(\d+)$/.exec(k),
      n = cut ? Number(cut[1]) : k.length > LONGEST ? Math.floor((k.length * 3) / 4) : 0;
    if (n) long(body, n);
    const close = !n && s.open(body, ctx);
    if (close) ctx.onClose(close);
    if (document.activeElement === document.body) screen.focus({ preventScroll: true });
  } catch (e) {
    // A screen that was never open comes from the server, which may be away: the page tries again when the news are back.
    const absent = e instanceof TypeError && /import|module/i.test(e.message),
      err = new Error(absent ? t('error.away') : t('error.screen', { name }) + ' ' + /** @type {Error} */ (e).message);
    fail(e instanceof ApiError ? e : Object.assign(err, { passing: absent }));
  }
}

function paintBar() {
  const label = me.label && h('span', { class: 'badge label' }, me.label.text);
  if (label) label.style.setProperty('background-color', /^#[0-9a-f]{3,8}$/i.test(me.label.color) ? me.label.color : '#555');
  const paused = feed.status().paused;
  fill(
    bar,
    h(
      'button',
      {
        class: 'ghost menu',
        type: 'button',
        'aria-label': t('menu'),
        on: { click: () => document.documentElement.classList.toggle('drawer') },
      },
      icon('menu'),
    ),
    label,
    h(
      'select',
      {
        'aria-label': t('db'),
        title: t('db'),
        on: {
          change: (/** @type {any} */ e) => {
            const r = route(),
              p = Object.fromEntries(r.params);
            delete p.k;
            delete p.cursor;
            go(r.name === 'key' ? 'keys' : r.name, { ...p, db: e.target.value });
          },
        },
      },
      Array.from({ length: Math.min(me.databases || 16, 1024) }, (_, i) => h('option', { value: i, selected: i === db() }, 'db' + i)),
    ),
    h(
      'button',
      { class: 'find', type: 'button', title: t('find.title'), on: { click: find } },
      icon('find'),
      h('span', null, t('find')),
      h('kbd', null, 'Ctrl-K'),
    ),
    h('span', { class: 'grow' }),
    me.readOnly && h('span', { class: 'badge', title: t('readonly.why') }, t('readonly')),
    me.role === 'replica' && h('span', { class: 'badge' }, t('replica')),
    h(
      'button',
      {
        class: 'ghost',
        type: 'button',
        'aria-pressed': String(paused),
        title: t(paused ? 'play' : 'pause'),
        'aria-label': t(paused ? 'play' : 'pause'),
        on: {
          click: () => {
            feed.pause(!paused);
            paintBar();
          },
        },
      },
      icon(paused ? 'play' : 'pause'),
    ),
    h(
      'button',
      {
        class: 'ghost',
        type: 'button',
        title: t('theme'),
        'aria-label': t('theme'),
        on: { click: () => theme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark') },
      },
      icon('theme'),
    ),
    h(
      'button',
      {
        class: 'ghost',
        type: 'button',
        title: t('language'),
        on: {
          click: async () => {
            await setLang(lang() === 'en' ? 'zh' : 'en');
            frame();
          },
        },
      },
      lang() === 'en' ? '中文' : 'English',
    ),
    h('span', { class: 'user', title: t('user') }, show(me.user, 40)),
    me.loginable &&
      h(
        'button',
        {
          type: 'button',
          class: 'ghost optional',
          on: {
            click: async () => {
              await post('logout').catch(() => {});
              forget();
              feed.stop();
              boot();
            },
          },
        },
        t('logout'),
      ),
  );
}

/** Removes what the shell remembers, of all users: the next one may be another person. */
function forget() {
  for (const k of Object.keys(localStorage)) if (k.startsWith('ebb.shell')) localStorage.removeItem(k);
}

function paintBanner() {
  const s = feed.status(),
    out = [];
  if (me && me.open) out.push(h('div', { class: 'bad', role: 'alert' }, me.open));
  if (me && me.loading) out.push(h('div', null, t('loading', { share: percent(me.loading.done || 0) })));
  const off = s.paused || (!s.live && s.since > 0);
  if (s.paused) out.push(h('div', null, t('paused')));
  else if (off)
    out.push(
      h(
        'div',
        { class: 'bad' },
        t('lost', { span: span(Math.max(1000, Math.round((Date.now() - s.since) / 1000) * 1000)) }) + (s.why ? ' (' + s.why + ')' : ''),
      ),
    );
  document.documentElement.classList.toggle('stale', off && !s.paused);
  banner.classList.toggle('on', out.length > 0);
  fill(banner, out);
}

function find() {
  if (document.querySelector('dialog[open]')) return;
  const input = h('input', {
    type: 'text',
    placeholder: t('find.title'),
    'aria-label': t('find.title'),
    spellcheck: 'false',
    autocomplete: 'off',
  });
  const results = h('ul', { class: 'results' });
  /** @type {Array<{id: string, href: string, what: any, kind: string}>} */
  let rows = [];
  let at = 0,
    asked = 0;
  const paint = () => {
    list(
      results,
      rows,
      (r) => r.id,
      (r) =>
        h(
          'li',
          null,
          h('a', { href: r.href, on: { click: () => box.close() } }, h('span', null, r.what), h('span', { class: 'faint' }, r.kind)),
        ),
    );
    [...results.querySelectorAll('a')].forEach((a, i) => {
      a.classList.toggle('on', i === at);
      if (i === at) a.scrollIntoView({ block: 'nearest' });
    });
  };
  /** @param {string} s what the user has typed */
  const search = async (s) => {
    const low = s.trim().toLowerCase(),
      mine = ++asked;
    at = 0;
    const names = (/** @type {(title: string) => boolean} */ is) =>
      RAIL.filter((n) => is(t(n + '.title').toLowerCase()) || is(n)).map((n) => ({
        id: 's' + n,
        href: link(n),
        what: t(n + '.title'),
        kind: t('find.screen'),
      }));
    if (!s) {
      rows = names(() => true);
      paint();
      return;
    }
    const k = fromText(s),
      begin = names((x) => x.startsWith(low)),
      within = names((x) => x.includes(low)).filter((x) => !begin.some((y) => y.id === x.id));
    const prefix = { id: 'p' + s, href: link('keys', { db: db(), match: glob(s) + '*' }), what: show(k, 60, true), kind: t('find.prefix') },
      match = { id: 'm' + s, href: link('keys', { db: db(), match: s }), what: show(k, 60, true), kind: t('find.match') },
      pattern = /[*?]|\[.+\]/.test(s) && match,
      command = { id: 'c' + s, href: link('shell', { line: s.trim() }), what: show(k, 60, true), kind: t('find.command') },
      // A command in capitals with an argument is one.
      last = (/^\s*[A-Z][A-Z.]+ +\S/.test(s) ? [command, pattern, prefix] : [pattern, prefix, command]).filter((x) => !!x);
    rows = [...begin, ...within, ...last];
    paint();
    // The key of this very name, if there is one, and keys that begin so.
    const a = await get('keys', { db: db(), cursor: '0', match: glob(s) + '*', limit: 8, name: url(k) }).catch(() => ({ rows: [] }));
    if (mine !== asked) return;
    const key = (/** @type {any} */ x, /** @type {string} */ kind) => ({
      id: 'f' + quote(x),
      href: link('key', { db: db(), k: url(x) }),
      what: show(x, 60, true),
      kind,
    });
    rows = [
      ...(a.named ? [key(k, a.named.type)] : []),
      ...begin,
      ...a.rows.filter((/** @type {any} */ r) => quote(r.k) !== quote(k)).map((/** @type {any} */ r) => key(r.k, r.type)),
      ...within,
      ...last,
    ];
    paint();
  };
  /** The search for what the field has. Enter waits for it, and then opens the first row. */
  let found = Promise.resolve();
  const begin = () => {
    found = search(input.value.trim() && input.value);
  };
  const choose = async () => {
    const was = asked;
    await found;
    if (was !== asked || !rows[at] || !box.open) return;
    location.hash = rows[at].href;
    box.close();
    screen.focus({ preventScroll: true }); // not the button of Find, which an Enter that is held would press
  };
  const box = h(
    'dialog',
    {
      'aria-label': t('find.title'),
      on: {
        close: () => box.remove(),
        click: (/** @type {Event} */ e) => {
          if (e.target === box) box.close();
        },
        keydown: (/** @type {KeyboardEvent} */ e) => {
          if (e.key === 'ArrowDown') at = Math.min(rows.length - 1, at + 1);
          else if (e.key === 'ArrowUp') at = Math.max(0, at - 1);
          else if (e.key === 'Enter' && e.target === input) choose();
          else return;
          e.preventDefault();
          paint();
        },
      },
    },
    h('label', null, input),
    results,
  );
  input.addEventListener('input', begin);
  document.body.append(box);
  box.showModal();
  begin();
}

/** @param {string} [want] */
function theme(want) {
  if (want) localStorage.setItem('ebb.theme', want);
  document.documentElement.dataset.theme =
    want || localStorage.getItem('ebb.theme') || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
}

function frame() {
  fill(
    rail,
    h('a', { class: 'brand', href: '#/now' }, 'ebb'),
    RAIL.map((n) => h('a', { class: 'entry', href: link(n), 'data-name': n }, icon(n), t(n + '.title'))),
  );
  rail.setAttribute('aria-label', t('menu'));
  fill(root, h('div', { id: 'frame' }, rail, bar, banner, screen));
  paintBanner();
  show_();
}

async function boot() {
  clearTimeout(waiting);
  open.abort();
  try {
    me = await get('me');
  } catch (e) {
    const err = /** @type {ApiError} */ (e);
    if (err.login) return;
    fill(
      root,
      h(
        'div',
        { class: 'card login' },
        h('h1', null, 'ebb'),
        h('p', { class: err.loading ? '' : 'error' }, err.loading ? t('loading', { share: percent(err.loading.done || 0) }) : err.message),
        err.status !== 403 && h('button', { type: 'button', on: { click: boot } }, t('again')),
      ),
    );
    if (err.status !== 403) waiting = setTimeout(boot, 2000);
    return;
  }
  feed.subscribe('sample', (s) => {
    if (me && s.role && s.role !== me.role) {
      me.role = s.role;
      paintBar();
    }
  });
  frame();
}

onFail(async (e) => {
  if (!e.login) return;
  open.abort();
  feed.stop();
  document.documentElement.classList.remove('stale');
  const s = await import('./screens/login.js');
  s.open(root, boot);
});
feed.onState((s) => {
  paintBanner();
  if (s.live && away) show_();
  if (!s.live && !s.paused) check();
});
/**
 * Asks who the user is, and what the user may do. Another tab may have logged in another user, and rules change while a page is open: the
 * screen then begins anew.
 */
async function check() {
  checked = Date.now();
  const m = await get('me').catch(() => null);
  if (!m || !me) return;
  const other = id(m.user) !== id(me.user),
    rights = JSON.stringify([me.can, me.readOnly]) !== JSON.stringify([m.can, m.readOnly]);
  if (other) {
    for (const d of document.querySelectorAll('dialog[open]')) d.remove();
    feed.stop();
    boot();
  } else if (!rights) {
    me = m;
    paintBanner();
  } else if (!document.querySelector('dialog[open]')) {
    me = m; // a dialog stays: the next look is soon
    frame();
  }
}
/** The rights of a user are asked for again so often, in ms. */
const AGAIN = 30000;
let checked = Date.now();
setInterval(() => {
  if (me && !document.hidden && Date.now() - checked > AGAIN) check();
}, 1000);
document.addEventListener('visibilitychange', () => {
  if (me && !document.hidden) check();
});
setInterval(() => {
  if (me && (!feed.status().live || banner.classList.contains('on'))) paintBanner();
}, 1000);
addEventListener('hashchange', () => {
  endMessages(!led);
  led = false;
  if (me) show_();
});
addEventListener('keydown', (e) => {
  if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
    e.preventDefault();
    if (me) find();
    return;
  }
  const typing = /** @type {Element} */ (e.target).closest?.('input,textarea,select,dialog');
  if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === '/') {
    e.preventDefault();
    const f = /** @type {HTMLElement|null} */ (screen.querySelector('input[type="search"]'));
    if (f) f.focus();
    else find();
  }
  if (e.key === 'j' && !(/** @type {Element} */ (e.target).closest?.('tr')))
    /** @type {HTMLElement|null} */ (screen.querySelector('tbody tr[tabindex]'))?.focus();
});
document.addEventListener('click', (e) => {
  if (document.documentElement.classList.contains('drawer') && !(/** @type {Element} */ (e.target).closest('#rail,.menu')))
    document.documentElement.classList.remove('drawer');
});
theme();
localStorage.removeItem('ebb.shell'); // of versions that kept one history for all users, with passwords
await startLang();
boot();

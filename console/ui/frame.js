// The frame around the screens: the rail, the top bar, the banner, and the keyboard shortcuts of all screens.
import { post } from './lib/api.js';
import { show } from './lib/bytes.js';
import * as events from './lib/events.js';
import { h, fill, icon } from './lib/h.js';
import { lang, percent, setLang, span, t } from './lib/i18n.js';
import { find } from './find.js';
import { db, go, link, RAIL, render, route, screen } from './router.js';
import { isKnown, kept, me } from './user.js';

const root = document.documentElement,
  bar = h('header', { id: 'bar' }),
  rail = h('nav', { id: 'rail' }),
  banner = h('div', { id: 'banner', role: 'status' });

/** Callbacks of the program: loggedOut runs after a logout, and askLogin shows the login. */
let loggedOut = () => {},
  askLogin = () => {};

/** Shows the frame with the screen of the route. @param {HTMLElement} app */
export function paintFrame(app) {
  fill(
    rail,
    h('a', { class: 'brand', href: '#/now' }, 'ebb'),
    RAIL.map((n) => h('a', { class: 'entry', href: link(n), 'data-name': n }, icon(n), t(n + '.title'))),
    h('div', { class: 'settings' }, themeButton('ghost'), languageButton('ghost')),
    h('div', { class: 'account' }, show(me().user, 40), accountButton('')),
  );
  rail.setAttribute('aria-label', t('menu'));
  fill(app, h('div', { id: 'frame' }, rail, bar, banner, screen));
  paintBanner();
  render();
}

/** Whether the drawer of a phone is open. Then the page behind it accepts neither clicks nor keys. */
const isDrawerOpen = () => root.classList.contains('drawer');

/** Opens the drawer. */
function openDrawer() {
  root.classList.add('drawer');
  for (const el of [bar, banner, screen]) el.inert = true;
  /** @type {HTMLElement|null} */ (rail.querySelector('[aria-current], a.entry'))?.focus();
}

/** Closes the drawer. The focus returns to the button that has opened it, unless another screen follows. @param {boolean} [leads] */
export function closeDrawer(leads) {
  if (!isDrawerOpen()) return;
  root.classList.remove('drawer');
  for (const el of [bar, banner, screen]) el.inert = false;
  const to = leads ? screen : /** @type {HTMLElement|null} */ (bar.querySelector('.menu'));
  to?.focus({ preventScroll: true });
}

/** Marks the screen of the route. @param {string} name */
export function paintRoute(name) {
  closeDrawer(true);
  for (const a of rail.querySelectorAll('a.entry'))
    if (a.getAttribute('data-name') === (name === 'key' ? 'keys' : name)) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  paintBar();
}

/** A button of the bar that only has an icon. @param {string} name @param {string} words @param {() => void} fn @param {object} [props] */
const iconButton = (name, words, fn, props) =>
  h('button', { class: 'ghost', type: 'button', title: words, 'aria-label': words, on: { click: fn }, ...props }, icon(name));

export function paintBar() {
  const { label, readOnly, role, user, writes } = me(),
    { paused } = events.status();
  fill(
    bar,
    iconButton('menu', t('menu'), openDrawer, { class: 'ghost menu', title: null }),
    label && badge(label),
    databases(),
    h(
      'button',
      { class: 'find', type: 'button', title: t('find.title'), on: { click: find } },
      icon('find'),
      h('span', null, t('find')),
      h('kbd', null, 'Ctrl-K'),
    ),
    h('span', { class: 'grow' }),
    (readOnly || !writes) && h('span', { class: 'badge', title: t(readOnly ? 'readonly.why' : 'readonly.user') }, t('readonly')),
    role === 'replica' && h('span', { class: 'badge' }, t('replica')),
    iconButton(paused ? 'play' : 'pause', t(paused ? 'play' : 'pause'), togglePause, { 'aria-pressed': String(paused) }),
    themeButton('ghost optional'),
    languageButton('ghost optional'),
    h('span', { class: 'user', title: t('user') }, show(user, 40)),
    accountButton('ghost optional'),
  );
}

/** Buttons that switch theme and language: in the bar, and on a phone in the drawer. @param {string} look */
const themeButton = (look) =>
  iconButton('theme', t('theme'), () => setTheme(root.dataset.theme === 'dark' ? 'light' : 'dark'), { class: look });
/** @param {string} look */
const languageButton = (look) =>
  h('button', { class: look, type: 'button', title: t('language'), on: { click: nextLanguage } }, lang() === 'en' ? '中文' : 'English');

/** A button that logs out, or, if there are other users, opens the login: in the bar, and on a phone in the drawer. @param {string} look */
function accountButton(look) {
  const { loginable, others } = me();
  if (loginable) return h('button', { type: 'button', class: look, on: { click: logout } }, t('logout'));
  return others && h('button', { type: 'button', class: look, on: { click: () => askLogin() } }, t('login.submit'));
}

/** The label of the server. @param {import('./lib/types.js').Label} label */
function badge(label) {
  const el = h('span', { class: 'badge label' }, label.text);
  el.style.setProperty('background-color', /^#[0-9a-f]{3,8}$/i.test(label.color) ? label.color : '#555');
  return el;
}

/** How many databases a bar offers at most. */
const MAX_DATABASES = 1024;

/** A choice of the database, which opens the same screen for another one. */
function databases() {
  const choice = h(
    'select',
    { 'aria-label': t('db'), title: t('db') },
    Array.from({ length: Math.min(me().databases || 16, MAX_DATABASES) }, (_, i) =>
      h('option', { value: i, selected: i === db() }, 'db' + i),
    ),
  );
  choice.addEventListener('change', () => {
    const { name, params } = route(),
      { k, cursor, ...others } = Object.fromEntries(params);
    go(name === 'key' ? 'keys' : name, { ...others, db: choice.value });
  });
  return choice;
}

function togglePause() {
  events.pause(!events.status().paused);
  paintBar();
}

async function nextLanguage() {
  await setLang(lang() === 'en' ? 'zh' : 'en');
  paintFrame(/** @type {HTMLElement} */ (document.getElementById('app')));
}

/** Sets the user's theme, or else the browser's. @param {string} [want] */
export function setTheme(want) {
  if (want) localStorage.setItem('ebb.theme', want);
  root.dataset.theme = want || localStorage.getItem('ebb.theme') || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
}

async function logout() {
  // Deletes the shell histories of all users, because the next user may be another person.
  for (const k of Object.keys(localStorage)) if (k.startsWith('ebb.shell')) localStorage.removeItem(k);
  kept.clear();
  await post('logout'); // if that fails, the login remains, and the page tells that
  events.stop();
  loggedOut();
}

/** Tells in the banner that the server is loading, or that the events are paused or lost. */
export function paintBanner() {
  const { paused, live, since, why, next } = events.status(),
    lost = !paused && !live && since > 0,
    messages = [];
  const user = isKnown() ? me() : null;
  if (user?.open) messages.push(h('div', { class: 'bad', role: 'alert' }, user.open));
  if (user?.loading) messages.push(h('div', null, t('loading', { share: percent(user.loading.done || 0) })));
  if (paused) messages.push(h('div', null, t('paused')));
  if (lost) {
    const seconds = Math.max(1, Math.round((Date.now() - since) / 1000)),
      wait = Math.ceil((next - Date.now()) / 1000),
      again = wait > 0 && t('lost.next', { span: t('unit.s', { n: wait }) }),
      words = [t('lost', { span: span(seconds * 1000) }), again, why && '(' + why + ')'];
    messages.push(h('div', { class: 'bad' }, words.filter(Boolean).join(' ')));
  }
  root.classList.toggle('stale', lost);
  banner.classList.toggle('on', messages.length > 0);
  fill(banner, messages);
}

/** Handles the shortcuts of all screens: Ctrl-K opens Find, / moves to the filter, j to the first row. @param {KeyboardEvent} e */
function keydown(e) {
  if (e.key === 'Escape' && isDrawerOpen() && !document.querySelector('dialog[open]')) closeDrawer();
  const at = /** @type {Element} */ (e.target);
  if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
    e.preventDefault();
    if (isKnown()) find();
    return;
  }
  if (at.closest?.('input,textarea,select,dialog') || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === '/') {
    e.preventDefault();
    const filter = /** @type {HTMLElement|null} */ (screen.querySelector('input[type="search"]'));
    if (filter) filter.focus();
    else find();
  }
  if (e.key === 'j' && !at.closest?.('tr')) /** @type {HTMLElement|null} */ (screen.querySelector('tbody tr[tabindex]'))?.focus();
}

/**
 * Updates the banner, closes a phone's drawer, and handles the keyboard shortcuts.
 * @param {() => void} fn called after a logout
 * @param {() => void} login shows the login
 */
export function start(fn, login) {
  loggedOut = fn;
  askLogin = login;
  setInterval(() => {
    if (isKnown() && (!events.status().live || banner.classList.contains('on'))) paintBanner();
  }, 1000);
  addEventListener('keydown', keydown);
  document.addEventListener('click', (e) => {
    const at = /** @type {Element} */ (e.target),
      leads = !!at.closest('#rail a');
    if (isDrawerOpen() && (leads || !at.closest('#rail,.menu'))) closeDrawer(leads);
  });
  // A wide window has no drawer.
  matchMedia('(min-width: 768px)').addEventListener('change', () => closeDrawer());
}

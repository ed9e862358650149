// The beginning: the user, the frame, and the screen that the hash names. A login is asked for where the server wants one.
import { ApiError, messageOf, onFail } from './lib/api.js';
import { id } from './lib/bytes.js';
import * as errors from './lib/errors.js';
import * as events from './lib/events.js';
import { h, fill } from './lib/h.js';
import { percent, startLang, t } from './lib/i18n.js';
import * as frame from './frame.js';
import * as router from './router.js';
import { askMe, isKnown, me, setMe } from './user.js';

const app = /** @type {HTMLElement} */ (document.getElementById('app'));
/** The next try after one that failed, ms; and how often the rights of the user are asked for again. */
const RETRY = 2000,
  CHECK = 30_000;
let retry = 0,
  checkedAt = Date.now();

async function boot() {
  clearTimeout(retry);
  router.endScreen();
  try {
    setMe(await askMe());
  } catch (e) {
    if (!(e instanceof ApiError && e.login)) showFailure(e);
    return;
  }
  events.subscribe('sample', '', (s) => {
    if (!isKnown() || !s.role || s.role === me().role) return;
    me().role = s.role;
    frame.paintBar();
    check(); // a replica takes no writes, and a master does
  });
  frame.paintFrame(app);
}

/** Says why the page does not begin, and tries again. @param {unknown} e */
function showFailure(e) {
  const loading = e instanceof ApiError ? e.loading : null,
    forbidden = e instanceof ApiError && e.status === 403;
  fill(
    app,
    h(
      'div',
      { class: 'card login' },
      h('h1', null, 'ebb'),
      h('p', { class: loading ? '' : 'error' }, loading ? t('loading', { share: percent(loading.done || 0) }) : messageOf(e)),
      !forbidden && h('button', { type: 'button', on: { click: () => void boot() } }, t('again')),
    ),
  );
  if (!forbidden) retry = setTimeout(boot, RETRY);
}

/**
 * Asks who the user is, and what the user may do. Another tab may have logged in another user, and rules change while a page is open: the
 * page then opens the screen again.
 */
async function check() {
  checkedAt = Date.now();
  const next = await askMe().catch(() => null);
  if (!next || !isKnown()) return;
  const now = me(),
    rights = (/** @type {typeof now} */ m) => JSON.stringify([m.can, m.readOnly, m.follows]);
  if (id(next.user) !== id(now.user)) {
    for (const d of document.querySelectorAll('dialog[open]')) d.remove();
    events.stop();
    boot();
  } else if (rights(next) === rights(now)) {
    setMe(next);
    frame.paintBanner();
  } else if (!document.querySelector('dialog[open]')) {
    setMe(next); // a dialog stays: the next look is soon
    frame.paintFrame(app);
  }
}

/** Shows the login in place of the frame. */
async function askLogin() {
  router.endScreen();
  events.stop();
  document.documentElement.classList.remove('stale');
  frame.closeDrawer();
  const login = await import('./screens/login.js');
  login.open(app, boot);
}

errors.start();
events.start();
onFail((e) => {
  if (e.login) askLogin();
});
events.onState((s) => {
  frame.paintBanner();
  if (s.live) router.reopen();
  else if (!s.paused) check();
});
setInterval(() => {
  if (isKnown() && !document.hidden && Date.now() - checkedAt > CHECK) check();
}, 1000);
document.addEventListener('visibilitychange', () => {
  if (isKnown() && !document.hidden) check();
});
router.start(frame.paintRoute);
frame.start(boot, askLogin);
frame.setTheme();
localStorage.removeItem('ebb.shell'); // of versions that kept one history for all users, with passwords
await startLang();
boot();

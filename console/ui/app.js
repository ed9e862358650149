// The program starts here: it loads the user, the frame, and the screen that the hash names. If the server requires a login, it asks for
// one.
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
/** The delay before the next try after a failed one, and the interval at which the page asks for the user's rights again, ms. */
const RETRY_DELAY = 2000,
  CHECK_INTERVAL = 30_000;
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
    check(); // a server that has become a replica accepts no writes, and a new master does
  });
  frame.paintFrame(app);
}

/** Shows why the page cannot start, and tries again. @param {unknown} e */
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
  if (!forbidden) retry = setTimeout(boot, RETRY_DELAY);
}

/**
 * Asks the server for the user and the user's rights. If another tab has logged in another user, or the rules have changed since the page
 * opened, the page opens the screen again.
 */
async function check() {
  checkedAt = Date.now();
  const next = await askMe().catch(() => null);
  if (!next || !isKnown()) return;
  const now = me(),
    rights = (/** @type {typeof now} */ m) => JSON.stringify([m.can, m.readOnly, m.follows, m.grouped]);
  if (id(next.user) !== id(now.user)) {
    for (const d of document.querySelectorAll('dialog[open]')) d.remove();
    events.stop();
    boot();
  } else if (rights(next) === rights(now)) {
    setMe(next);
    frame.paintBanner();
  } else if (!document.querySelector('dialog[open]')) {
    setMe(next); // an open dialog stays open: the next check follows soon
    frame.paintFrame(app);
  }
}

/** Replaces the frame by the login. */
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
  if (isKnown() && !document.hidden && Date.now() - checkedAt > CHECK_INTERVAL) check();
}, 1000);
document.addEventListener('visibilitychange', () => {
  if (isKnown() && !document.hidden) check();
});
router.start(frame.paintRoute);
frame.start(boot, askLogin);
frame.setTheme();
localStorage.removeItem('ebb.shell'); // older versions kept one history for all users there, with passwords
await startLang();
boot();

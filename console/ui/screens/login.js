// The login: one card. It shows the server's reason for a refusal, and how long to wait.
import { setTheme } from '../frame.js';
import { h, fill, icon, setText } from '../lib/h.js';
import { ApiError, messageOf, post } from '../lib/api.js';
import { lang, setLang, t } from '../lib/i18n.js';

export const title = 'login.title';

/** The other language and the other theme, as in the bar of the screens. @param {() => void} again shows the card again */
function settings(again) {
  const turn = () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'),
    translate = async () => {
      await setLang(lang() === 'en' ? 'zh' : 'en');
      again();
    };
  return h(
    'div',
    { class: 'row settings' },
    h('button', { type: 'button', class: 'ghost', title: t('language'), on: { click: translate } }, lang() === 'en' ? '中文' : 'English'),
    h('button', { type: 'button', class: 'ghost', title: t('theme'), 'aria-label': t('theme'), on: { click: turn } }, icon('theme')),
  );
}

/** Shows the card; done is called after a login. @param {HTMLElement} root @param {() => void} done */
export function open(root, done) {
  const user = h('input', { type: 'text', name: 'user', value: 'default', autocomplete: 'username', spellcheck: 'false', required: true }),
    password = h('input', { type: 'password', name: 'password', autocomplete: 'current-password' }),
    error = h('p', { class: 'error', role: 'alert' }),
    caps = h('p', { class: 'look', hidden: true }, t('login.caps')),
    submit = h('button', { type: 'submit', class: 'primary' }, t('login.submit'));
  password.addEventListener('keydown', (e) => {
    caps.hidden = !e.getModifierState('CapsLock');
  });
  /** Counts down the seconds until the next try. @param {number} left */
  function wait(left) {
    if (!submit.isConnected) return;
    submit.disabled = left > 0;
    setText(error, left > 0 ? t('login.wait', { n: left }) : '');
    if (left > 0) setTimeout(() => wait(left - 1), 1000);
  }
  /** @param {Event} e */
  async function login(e) {
    e.preventDefault();
    submit.disabled = true;
    setText(error, '');
    try {
      await post('login', { user: user.value, password: password.value });
      done();
    } catch (x) {
      submit.disabled = false;
      password.value = '';
      password.focus();
      if (x instanceof ApiError && x.status === 429) wait(x.retry || 2);
      else setText(error, x instanceof ApiError && x.code === 'WRONGPASS' ? t('login.wrong') : messageOf(x));
    }
  }
  fill(
    root,
    h(
      'form',
      { class: 'card login', on: { submit: login } },
      h('h1', null, 'ebb'),
      h('p', { class: 'mono any' }, location.host),
      h('p', { class: 'faint' }, t('login.text')),
      h('label', null, t('login.user'), user),
      h('label', null, t('login.password'), password),
      caps,
      error,
      submit,
      settings(() => open(root, done)),
    ),
  );
  password.focus();
}

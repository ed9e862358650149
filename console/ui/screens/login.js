// The login: one card. The server tells why it refuses, and how long to wait.
import { h, fill, say } from '../lib/h.js';
import { post } from '../lib/api.js';
import { t } from '../lib/i18n.js';

export const title = 'login.title';

/** Shows the card; done is called after a login. @param {HTMLElement} root @param {() => void} done */
export function open(root, done) {
  const user = h('input', { type: 'text', name: 'user', value: 'default', autocomplete: 'username', spellcheck: 'false', required: true });
  const password = h('input', { type: 'password', name: 'password', autocomplete: 'current-password' });
  const error = h('p', { class: 'error', role: 'alert' }),
    caps = h('p', { class: 'look', hidden: true }, t('login.caps'));
  const ok = h('button', { type: 'submit', class: 'primary' }, t('login.do'));
  password.addEventListener('keydown', (e) => {
    caps.hidden = !e.getModifierState('CapsLock');
  });
  /** @param {number} left */
  function wait(left) {
    if (!ok.isConnected) return;
    ok.disabled = left > 0;
    say(error, left > 0 ? t('login.wait', { n: left }) : '');
    if (left > 0) setTimeout(() => wait(left - 1), 1000);
  }
  fill(
    root,
    h(
      'form',
      {
        class: 'card login',
        on: {
          submit: async (/** @type {Event} */ e) => {
            e.preventDefault();
            ok.disabled = true;
            say(error, '');
            try {
              await post('login', { user: user.value, password: password.value });
              done();
            } catch (x) {
              const err = /** @type {import('../lib/api.js').ApiError} */ (x);
              ok.disabled = false;
              password.value = '';
              password.focus();
              if (err.status === 429) wait(err.retry || 2);
              else say(error, err.message);
            }
          },
        },
      },
      h('h1', null, 'ebb'),
      h('p', { class: 'faint' }, t('login.text')),
      h('label', null, t('login.user'), user),
      h('label', null, t('login.password'), password),
      caps,
      error,
      ok,
    ),
  );
  password.focus();
}

// The user and the user's rights.
import { get } from './lib/api.js';
import { id } from './lib/bytes.js';
import { h } from './lib/h.js';
import { t } from './lib/i18n.js';

/** @import { Ctx, Me } from './lib/types.js' */

/** @type {Me|null} */
let user = null;

/** Whether the server has told who the user is. */
export const isKnown = () => user !== null;

/** The user. Screens open only after it is known. */
export const me = () => /** @type {Me} */ (user);

/** The elements that screens keep until the page closes or the login ends, by name. @type {Map<string, HTMLElement>} */
export const kept = new Map();

/** @param {Me} next */
export function setMe(next) {
  if (user && id(user.user) !== id(next.user)) kept.clear();
  user = next;
}

/** Asks the server who the user is. */
export const askMe = () => get('me');

/** Actions on the server itself. A replica that refuses writes allows them too. */
const ON_SERVER = /^(server|performance|locks\.kill|shell|walk)/;

/** Whether the user may do an action. @type {Ctx['can']} */
export const can = (action) => !!user && user.can[action] && !user.readOnly;

/** A button for an action. @type {Ctx['button']} */
export function button(action, label, fn, o = {}) {
  const { readOnly, follows, need } = me();
  if (readOnly) return null;
  const refused = !can(action),
    needsMaster = follows && !ON_SERVER.test(action);
  return h(
    'button',
    {
      type: 'button',
      class: [o.danger && !o.small && 'danger', o.primary && 'primary', o.small && 'small'],
      disabled: refused || needsMaster,
      title: refused ? t('needs', { rule: need[action] || action }) : needsMaster ? t('needs.master') : null,
      on: { click: fn },
    },
    label,
  );
}

// What the cards of the screens Server and Performance share.
import { h, say } from '../lib/h.js';
import { live, refusal } from '../lib/poll.js';
import { t } from '../lib/i18n.js';

/**
 * A card that reads its figures by itself. read answers what the API denied. A failure stands in the card, and the others go on.
 * again reads at once, as after a command that the card has run.
 * @param {import('../app.js').Ctx} ctx
 * @param {{title: string, text?: string, ms: number, tools?: any, body: any, read: () => Promise<string[]|undefined|void>}} o
 */
export function card(ctx, o) {
  const said = h('p', { class: 'faint', hidden: true });
  const tell = (/** @type {string} */ s) => {
    say(said, s);
    said.hidden = !s;
  };
  const again = live(ctx, o.ms, async () => {
    try {
      const denied = (await o.read()) || [];
      tell(denied.length ? t('denied.card', { commands: denied.join(', ') }) : '');
    } catch (e) {
      const err = /** @type {any} */ (e);
      if (err.passing || err.name === 'AbortError' || err.login) throw e;
      tell(refusal(err));
    }
  });
  return {
    again,
    el: h(
      'section',
      { class: 'card tall' },
      h('div', { class: 'titlebar' }, h('h2', null, o.title), o.tools),
      o.text && h('p', { class: 'faint' }, o.text),
      said,
      o.body,
    ),
  };
}

/** A fact of a list of facts; none where the value is not known. @param {string} name @param {any} v @param {string} [cls] */
export const fact = (name, v, cls) =>
  v !== undefined && v !== null && v !== '' && h('div', null, h('dt', null, name), h('dd', { class: cls || '' }, v));

/** The columns of a table, in short. @param {string} id @param {string} label @param {(r: any) => any} value @param {any} [more] */
export const col = (id, label, value, more = {}) => ({ id, label, value, ...more });

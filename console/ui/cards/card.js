// The common part of the cards on the screens Server and Performance.
import { ApiError, isAbort, isPassing, refusal } from '../lib/api.js';
import { h, setText } from '../lib/h.js';
import { t } from '../lib/i18n.js';
import { poll } from '../lib/poll.js';

/** @import { Child, Ctx } from '../lib/types.js' */

/**
 * A card that reads its figures by itself. read returns the parts that the API denied. If nothing of a card is left, the page hides it,
 * and the line below the jumps names it. An error shows in the card, and the other cards continue. again reads at once, for example after
 * a command of the card.
 * @param {Ctx} ctx
 * @param {{title: string, text?: string, ms: number, tools?: Child, body: Child, read: () => Promise<string[]|undefined|void>}} o
 */
export function card(ctx, o) {
  const note = h('p', { class: 'faint', hidden: true });
  /** @param {string} s */
  const setNote = (s) => {
    setText(note, s);
    note.hidden = !s;
  };
  const again = poll(ctx, o.ms, async () => {
    try {
      const denied = (await o.read()) || [];
      setNote(denied.length ? t('denied.card', { commands: denied.join(', ') }) : '');
      refused(el, isEmpty(o.body) ? denied : []);
    } catch (e) {
      if (isHandledByPage(e)) throw e;
      setNote(refusal(e));
    }
  });
  const head = h('div', { class: 'titlebar' }, h('h2', null, o.title), o.tools);
  const el = h('section', { class: 'card tall' }, head, o.text && h('p', { class: 'faint' }, o.text), note, o.body);
  return { again, el };
}

/** Whether all contents of a card are hidden. @param {Child} body @returns {boolean} */
const isEmpty = (body) =>
  Array.isArray(body) ? body.every(isEmpty) : !(body instanceof HTMLElement) || !!body.hidden || body.textContent.trim() === '';

/** Hides a card if the user may not run its commands, and otherwise shows it. @param {HTMLElement} el
 * @param {string[]} denied */
export function refused(el, denied) {
  el.hidden = denied.length > 0;
  el.dispatchEvent(new CustomEvent('refused', { detail: denied }));
}

/** Buttons that lead to the cards of a long screen, by their titles, and a line that names the cards that the user may not see.
 * @param {Element[]} cards */
export function jumps(cards) {
  const note = h('p', { class: 'faint', hidden: true });
  /** @type {Map<Element, string>} */
  const refusals = new Map();
  /** @param {Element} el @param {HTMLElement} button @param {string[]} denied */
  function refuse(el, button, denied) {
    button.hidden = denied.length > 0;
    refusals.set(el, denied.length ? button.textContent + ' (' + denied.join(', ') + ')' : '');
    const names = cards.map((x) => refusals.get(x)).filter(Boolean);
    setText(note, names.length ? t('denied', { commands: names.join(', ') }) : '');
    note.hidden = !names.length;
  }
  const buttons = cards.map((el) => {
    const click = () => {
      el.scrollIntoView();
      /** @type {HTMLElement|null} */ (el.querySelector('a, button, input'))?.focus({ preventScroll: true }); // Tab goes on from there
    };
    const button = h('button', { type: 'button', class: 'small', on: { click } }, el.querySelector('h2')?.textContent);
    el.addEventListener('refused', (e) => refuse(el, button, /** @type {CustomEvent<string[]>} */ (e).detail));
    return button;
  });
  return h('div', null, h('nav', { class: 'jumps', 'aria-label': t('jumps') }, buttons), note);
}

/** Whether the whole page reports an error, so that no card needs to. @param {unknown} e */
export const isHandledByPage = (e) => isPassing(e) || isAbort(e) || (e instanceof ApiError && e.login);

/** An entry in a list of properties; nothing if the value is not known. @param {string} name @param {Child} v @param {string} [cls] */
export const property = (name, v, cls) =>
  v !== undefined && v !== null && v !== '' && h('div', null, h('dt', null, name), h('dd', { class: cls || '' }, v));

// Dialogs, forms with the command they make, and short messages.
import { h, fill, say } from './h.js';
import { quote, short, text } from './bytes.js';
import { t } from './i18n.js';

/** @typedef {import('./bytes.js').B} B */
/**
 * @typedef {{name: string, label: string, type?: string, value?: any, hint?: string, options?: Array<[string, string]>, required?:
 *   boolean, rows?: number, min?: number, when?: (v: Record<string, any>) => boolean}} Field when: whether the form shows it
 */

/**
 * Opens a modal dialog. body is made of nodes; ok is the word of the main button (none: only Close). Answers true for OK, false for back.
 * check is asked before OK closes it: a string is an error to show.
 * @param {{title: string, body: any, ok?: string, danger?: boolean, wide?: boolean, check?: () =>
 *   (string|undefined|Promise<string|undefined>), live?: (ok: HTMLButtonElement) => void}} o
 * @returns {Promise<boolean>}
 */
export function dialog(o) {
  return new Promise((resolve) => {
    const error = h('p', { class: 'error', role: 'alert', hidden: true });
    const ok = h('button', { class: o.danger ? 'danger' : 'primary', type: 'submit', hidden: !o.ok }, o.ok || '');
    const form = h(
      'form',
      {
        on: {
          submit: async (/** @type {Event} */ e) => {
            e.preventDefault();
            const why = o.check && (await o.check());
            if (why) {
              say(error, why);
              error.hidden = false;
              return;
            }
            box.close('ok');
          },
          input: () => o.live && o.live(ok),
        },
      },
      h('h2', null, o.title),
      h('div', { class: 'body' }, o.body),
      error,
      h('div', { class: 'buttons' }, h('button', { type: 'button', on: { click: () => box.close() } }, o.ok ? t('back') : t('close')), ok),
    );
    const box = h(
      'dialog',
      {
        class: o.wide ? 'wide' : '',
        'aria-label': o.title,
        on: {
          close: () => {
            box.remove();
            resolve(box.returnValue === 'ok');
          },
          click: (/** @type {Event} */ e) => {
            if (e.target === box) box.close();
          },
        },
      },
      form,
    );
    document.body.append(box);
    box.showModal();
    if (o.live) o.live(ok);
  });
}

/** The longest argument that a dialog shows whole. */
const SHOWN = 4000;
/** Commands as typed, one a line. @param {B[]|B[][]} argv */
const lines = (argv) =>
  several(argv)
    .map((a) => a.map((x) => (text(x).length > SHOWN ? quote({ t: short(x, SHOWN) }) : quote(x))).join(' '))
    .join('\n');
/** @param {B[]|B[][]} argv @returns {B[][]} */
export const several = (argv) => /** @type {B[][]} */ (Array.isArray(argv[0]) ? argv : [argv]);

/**
 * Asks before commands run, and shows them as typed. type: what the user must type.
 * @param {{argv: B[]|B[][], text?: string, danger?: boolean, type?: string}} o
 */
export function confirmCommand(o) {
  const input = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', 'aria-label': t('confirm.type', { text: o.type }) });
  return dialog({
    title: t('confirm.title'),
    ok: t('confirm.run'),
    danger: o.danger,
    body: [
      o.text && h('p', null, o.text),
      h('p', { class: 'faint' }, t('confirm.as')),
      h('pre', { class: 'command' }, lines(o.argv)),
      o.type && h('label', null, t('confirm.type', { text: '' }), h('strong', { class: 'mono' }, o.type), input),
    ],
    live: (ok) => {
      ok.disabled = !!o.type && input.value !== o.type;
    },
  });
}

/** Makes the control of a field. @param {Field} f @returns {HTMLInputElement|HTMLSelectElement|HTMLTextAreaElement} */
export function control(f) {
  const common = { name: f.name, required: f.required || false };
  if (f.options)
    return h(
      'select',
      common,
      f.options.map(([v, label]) => h('option', { value: v, selected: v === f.value }, label)),
    );
  if (f.type === 'area') return h('textarea', { ...common, rows: f.rows || 6, spellcheck: 'false', value: f.value ?? '' });
  if (f.type === 'check') return h('input', { ...common, type: 'checkbox', checked: !!f.value });
  return h('input', { ...common, type: f.type || 'text', value: f.value ?? '', autocomplete: 'off', spellcheck: 'false', min: f.min });
}

/**
 * A form in a dialog. command makes the argv of the values, or several, which the dialog shows as the user types; a string is what is
 * wrong. Answers the values and the argv, or null for back.
 * @param {{title: string, text?: string, fields: Field[], ok?: string, danger?: boolean, command?: (v: Record<string, any>) =>
 *   B[]|B[][]|string}} o
 * @returns {Promise<{values: Record<string, any>, argv: any}|null>}
 */
export async function form(o) {
  const inputs = o.fields.map((f) => [f, control(f)]);
  const preview = h('pre', { class: 'command', 'aria-live': 'polite' });
  const values = () =>
    Object.fromEntries(
      inputs.map(([f, c]) => [
        /** @type {Field} */ (f).name,
        /** @type {any} */ (f).type === 'check' ? /** @type {any} */ (c).checked : /** @type {any} */ (c).value,
      ]),
    );
  const labels = inputs.map(([f, c]) =>
    h(
      'label',
      { class: /** @type {any} */ (f).type === 'check' ? 'check' : '' },
      h('span', null, /** @type {Field} */ (f).label),
      /** @type {any} */ (c),
      /** @type {Field} */ (f).hint && h('small', null, /** @type {Field} */ (f).hint),
    ),
  );
  const ok = await dialog({
    title: o.title,
    ok: o.ok || t('confirm.run'),
    danger: o.danger,
    body: [o.text && h('p', null, o.text), labels, o.command && preview],
    live: (button) => {
      o.fields.forEach((f, i) => {
        if (f.when) labels[i].hidden = !f.when(values());
      });
      if (!o.command) return;
      const a = o.command(values());
      preview.classList.toggle('faint', typeof a === 'string');
      fill(preview, typeof a === 'string' ? a : lines(a));
      button.disabled = typeof a === 'string';
    },
  });
  if (!ok) return null;
  const v = values(),
    a = o.command ? o.command(v) : [];
  return typeof a === 'string' ? null : { values: v, argv: a };
}

/**
 * A short message at the foot of the page. kind: good or bad; a bad one stays until it is closed, or its screen ends. The same
 * message again takes the place of the one before.
 * @param {string} s
 * @param {'good'|'bad'} [kind]
 */
export function toast(s, kind = 'good') {
  let box = document.getElementById('toasts');
  if (!box) document.body.append((box = h('div', { id: 'toasts', role: 'status', 'aria-live': 'polite' })));
  const words = s.length > 300 ? s.slice(0, 300) + ' …' : s;
  for (const old of [...box.children]) if (old.firstElementChild?.textContent === words) old.remove();
  const el = h(
    'div',
    { class: 'toast ' + kind },
    h('span', { class: 'mono' }, words),
    h('button', { class: 'ghost', type: 'button', 'aria-label': t('close'), on: { click: () => el.remove() } }, '×'),
  );
  box.append(el);
  if (kind === 'good') setTimeout(() => el.remove(), 5000);
}

/** Removes the messages of a screen that ends. A good one of an action that leads elsewhere stays its time. @param {boolean} all */
export function endMessages(all) {
  for (const el of document.querySelectorAll(all ? '.toast' : '.toast.bad')) el.remove();
}

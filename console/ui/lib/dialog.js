// Dialogs, forms that show their command, and short messages.
import { h, fill, nameOf, setText } from './h.js';
import { quote, short, text } from './bytes.js';
import { t } from './i18n.js';

/** @import { B, Child, Field } from './types.js' */

/**
 * body has the nodes; ok is the text of the main button (without it the dialog only has Close). check runs before OK closes the dialog:
 * it returns an error to show. update runs at the beginning and at each input, with the OK button.
 * @typedef {{title: string, body: Child, ok?: string, danger?: boolean, wide?: boolean, check?: () =>
 *   (string|undefined|Promise<string|undefined>), update?: (ok: HTMLButtonElement) => void}} DialogOptions
 */

/**
 * Returns a function that, after a dialog, focuses the button that opened it, if the screen behind the dialog has replaced that button.
 * If the button is still there, the browser does that itself.
 */
function wayBack() {
  const opener = document.activeElement,
    row = opener?.closest('tr') || null;
  return () => {
    if (!opener || opener.isConnected || document.activeElement !== document.body) return;
    const among = (row || document).querySelectorAll((row ? '' : '#screen ') + opener.localName),
      again = [...among].find((e) => nameOf(e) === nameOf(opener) && e.closest('tr') === row);
    if (again) /** @type {HTMLElement} */ (again).focus({ preventScroll: true });
  };
}

/** Opens a modal dialog. Resolves to true for OK, false for Cancel. @param {DialogOptions} o @returns {Promise<boolean>} */
export function dialog(o) {
  return new Promise((resolve) => {
    const goBack = wayBack(),
      error = h('p', { class: 'error', role: 'alert', hidden: true }),
      ok = h('button', { class: o.danger ? 'danger' : 'primary', type: 'submit', hidden: !o.ok }, o.ok || '');
    /** @param {Event} e */
    const submit = async (e) => {
      e.preventDefault();
      const wrong = await o.check?.();
      if (!wrong) return box.close('ok');
      setText(error, wrong);
      error.hidden = false;
    };
    const body = [h('h2', null, o.title), h('div', { class: 'body' }, o.body), error];
    const cancel = h('button', { type: 'button' }, o.ok ? t('back') : t('close'));
    /** @type {HTMLDialogElement} */
    const box = h(
      'dialog',
      {
        class: o.wide ? 'wide' : '',
        'aria-label': o.title,
        on: {
          close: () => {
            box.remove();
            goBack();
            resolve(box.returnValue === 'ok');
          },
          click: (e) => {
            if (e.target === box || e.target === cancel) box.close();
          },
        },
      },
      h('form', { on: { submit, input: () => o.update?.(ok) } }, body, h('div', { class: 'buttons' }, cancel, ok)),
    );
    document.body.append(box);
    box.showModal();
    const focused = document.activeElement;
    if (focused instanceof HTMLInputElement && box.contains(focused)) focused.select(); // typing replaces the proposed text
    o.update?.(ok);
  });
}

/** Cancels all dialogs, because the screen behind them has changed. */
export function closeDialogs() {
  for (const box of document.querySelectorAll('dialog')) if (box.open) box.close();
}

/** The longest argument that a dialog shows completely. */
const MAX_ARGUMENT = 4000;

/** The commands of one or several argvs. @param {B[]|B[][]} argv @returns {B[][]} */
export const several = (argv) => /** @type {B[][]} */ (Array.isArray(argv[0]) ? argv : [argv]);

/** Commands as typed, one per line. @param {B[]|B[][]} argv */
const lines = (argv) =>
  several(argv)
    .map((a) => a.map((x) => (text(x).length > MAX_ARGUMENT ? quote({ t: short(x, MAX_ARGUMENT) }) : quote(x))).join(' '))
    .join('\n');

/**
 * Shows commands as typed, and asks before they run. type: the text that the user must type.
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
    update: (ok) => {
      ok.disabled = !!o.type && input.value !== o.type;
    },
  });
}

/** Makes the control of a field. @param {Field} f */
function control(f) {
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

/** @param {ReturnType<typeof control>} el */
const valueOf = (el) => (el instanceof HTMLInputElement && el.type === 'checkbox' ? (el.checked ? 'yes' : '') : el.value);

/**
 * A form in a dialog. command makes one or several argvs from the values, which the dialog shows as the user types; it returns a string
 * for a mistake. Resolves to the values and the argv, or to null if the user went back.
 * @template {B[]|B[][]} A
 * @param {{title: string, text?: string, fields: Field[], ok?: string, danger?: boolean, command: (v: Record<string, string>) =>
 *   A|string}} o
 * @returns {Promise<{values: Record<string, string>, argv: A}|null>}
 */
export async function form(o) {
  const controls = o.fields.map(control),
    preview = h('pre', { class: 'command', 'aria-live': 'polite' }),
    values = () => Object.fromEntries(o.fields.map((f, i) => [f.name, valueOf(controls[i])]));
  const labels = o.fields.map((f, i) =>
    h('label', { class: f.type === 'check' ? 'check' : '' }, h('span', null, f.label), controls[i], f.hint && h('small', null, f.hint)),
  );
  const ok = await dialog({
    title: o.title,
    ok: o.ok || t('confirm.run'),
    danger: o.danger,
    body: [o.text && h('p', null, o.text), labels, preview],
    update: (button) => {
      const v = values(),
        argv = o.command(v),
        wrong = typeof argv === 'string';
      o.fields.forEach((f, i) => {
        if (f.when) labels[i].hidden = !f.when(v);
      });
      preview.classList.toggle('faint', wrong);
      fill(preview, wrong ? argv : lines(argv));
      button.disabled = wrong;
    },
  });
  const v = values(),
    argv = ok ? o.command(v) : '';
  return typeof argv === 'string' ? null : { values: v, argv };
}

/** The length of the longest message, and how long a good message stays, ms. */
const MESSAGE = { letters: 300, ms: 5000 };

/**
 * Shows a short message at the bottom of the page. kind: good or bad; a bad message stays until the user closes it or its screen ends. A
 * message with the same text replaces the earlier one.
 * @param {string} s
 * @param {'good'|'bad'} [kind]
 */
export function toast(s, kind = 'good') {
  let box = document.getElementById('toasts');
  if (!box) document.body.append((box = h('div', { id: 'toasts', role: 'status', 'aria-live': 'polite' })));
  const words = s.length > MESSAGE.letters ? s.slice(0, MESSAGE.letters) + ' …' : s;
  for (const old of [...box.children]) if (old.firstElementChild?.textContent === words) old.remove();
  const close = h('button', { class: 'ghost', type: 'button', 'aria-label': t('close') }, '×'),
    el = h('div', { class: 'toast ' + kind }, h('span', { class: 'mono' }, words), close);
  close.addEventListener('click', () => el.remove());
  box.append(el);
  if (kind === 'good') setTimeout(() => el.remove(), MESSAGE.ms);
}

/**
 * Removes the messages of a screen that ends. If the action itself opened the next screen, its good message stays for its time.
 * @param {boolean} all
 */
export function endMessages(all) {
  for (const el of document.querySelectorAll(all ? '.toast' : '.toast.bad')) el.remove();
}

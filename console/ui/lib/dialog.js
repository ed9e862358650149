// Dialogs, forms with the command they make, and short messages.
import { h, fill, nameOf, setText } from './h.js';
import { quote, short, text } from './bytes.js';
import { t } from './i18n.js';

/** @import { B, Child, Field } from './types.js' */

/**
 * body is made of nodes; ok is the word of the main button (none: only Close). check is asked before OK closes the dialog: a string is an
 * error to show. update is called at first and at each input, with the button of OK.
 * @typedef {{title: string, body: Child, ok?: string, danger?: boolean, wide?: boolean, check?: () =>
 *   (string|undefined|Promise<string|undefined>), update?: (ok: HTMLButtonElement) => void}} DialogOptions
 */

/**
 * A function that leads the focus back from a dialog to the button that has opened it, where the screen behind has made that again.
 * The browser does so where the button is still there.
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

/** Opens a modal dialog. Returns true for OK, false for back. @param {DialogOptions} o @returns {Promise<boolean>} */
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
    if (focused instanceof HTMLInputElement && box.contains(focused)) focused.select(); // what is typed replaces what is proposed
    o.update?.(ok);
  });
}

/** Closes all dialogs, as their Cancel does: the screen behind them has changed. */
export function closeDialogs() {
  for (const box of document.querySelectorAll('dialog')) if (box.open) box.close();
}

/** The longest argument that a dialog shows whole. */
const SHOWN = 4000;

/** The commands of one or several argvs. @param {B[]|B[][]} argv @returns {B[][]} */
export const several = (argv) => /** @type {B[][]} */ (Array.isArray(argv[0]) ? argv : [argv]);

/** Commands as typed, one a line. @param {B[]|B[][]} argv */
const lines = (argv) =>
  several(argv)
    .map((a) => a.map((x) => (text(x).length > SHOWN ? quote({ t: short(x, SHOWN) }) : quote(x))).join(' '))
    .join('\n');

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
 * A form in a dialog. command makes the argv of the values, or several, which the dialog shows as the user types; a string is what is
 * wrong. Returns the values and the argv, or null for back.
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

/** The longest message, and how long a good one stays, ms. */
const MESSAGE = { letters: 300, ms: 5000 };

/**
 * A short message at the foot of the page. kind: good or bad; a bad one stays until it is closed, or its screen ends. The same
 * message again takes the place of the one before.
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

/** Removes the messages of a screen that ends. A good one of an action that leads elsewhere stays its time. @param {boolean} all */
export function endMessages(all) {
  for (const el of document.querySelectorAll(all ? '.toast' : '.toast.bad')) el.remove();
}

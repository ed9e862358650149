// Shell: commands as typed, replies as ebb cli prints them.
import { h, fill } from '../lib/h.js';
import { exec, get, ApiError } from '../lib/api.js';
import { confirmCommand } from '../lib/dialog.js';
import { split } from '../lib/bytes.js';
import { t, num } from '../lib/i18n.js';

export const title = 'shell.title';
const KEEP = 200;

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const out = h('div', { class: 'card', role: 'log', 'aria-label': t('shell.title') }),
    hint = h('p', { class: 'faint mono' });
  /** @type {string[]} */ let past = [];
  try {
    past = JSON.parse(localStorage.getItem('ebb.shell') || '[]');
  } catch {
    past = [];
  }
  let at = past.length;
  /** @type {any[]} */ let commands = [];
  const names = h('datalist', { id: 'commands' });
  const input = h('input', {
    type: 'text',
    class: 'mono grow',
    list: 'commands',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    'aria-label': t('shell.prompt'),
    placeholder: t('shell.prompt'),
    value: ctx.params.get('line') || '',
    on: {
      keydown: (/** @type {KeyboardEvent} */ e) => {
        if (e.key === 'ArrowUp' && at > 0) {
          input.value = past[--at];
          e.preventDefault();
        } else if (e.key === 'ArrowDown' && at < past.length) {
          input.value = past[++at] || '';
          e.preventDefault();
        }
      },
      input: () => help(),
    },
  });
  function help() {
    const s = input.value.trim().toUpperCase(),
      c = s && commands.filter((x) => s === x.name || s.startsWith(x.name + ' ')).sort((a, b) => b.name.length - a.name.length)[0];
    fill(hint, c ? [h('b', null, c.name), ' ', c.syntax, ' — ', c.summary] : t('shell.hint'));
  }
  /** @param {string} line @param {string} text @param {string} cls @param {string} note */
  function print(line, text, cls, note) {
    out.prepend(
      h(
        'div',
        null,
        h('div', { class: 'row' }, h('b', { class: 'mono' }, '> ' + line), h('small', { class: 'faint' }, note)),
        h('pre', { class: ['value', cls] }, text),
      ),
    );
    while (out.children.length > KEEP) out.lastElementChild?.remove();
  }
  async function go() {
    const line = input.value.trim();
    if (!line) return;
    const words = split(line);
    if (!words) {
      print(line, t('shell.quote'), 'bad', '');
      return;
    }
    past = [...past.filter((x) => x !== line), line].slice(-KEEP);
    at = past.length;
    localStorage.setItem('ebb.shell', JSON.stringify(past));
    input.value = '';
    help();
    if (/^help\s/i.test(line)) {
      try {
        print(line, (await get('help', { name: line.slice(5) })).text, '', '');
      } catch (e) {
        print(line, /** @type {Error} */ (e).message, 'bad', '');
      }
      return;
    }
    let typed;
    for (;;) {
      try {
        const r = await exec(ctx.db, words, { confirm: typed });
        print(line, r.text, r.error ? 'bad' : '', num(r.ms, 2) + ' ms');
      } catch (e) {
        const err = /** @type {ApiError} */ (e);
        if (
          err.status === 409 &&
          err.confirm &&
          typed === undefined &&
          (await confirmCommand({ argv: words, text: err.message, danger: true, type: err.confirm }))
        ) {
          typed = err.confirm;
          continue;
        }
        print(line, err.message, 'bad', '');
      }
      return;
    }
  }
  fill(
    root,
    h('h1', null, t('shell.title')),
    h(
      'form',
      {
        class: 'row line',
        on: {
          submit: (/** @type {Event} */ e) => {
            e.preventDefault();
            go();
          },
        },
      },
      h('b', { class: 'mono' }, 'db' + ctx.db + '>'),
      input,
      names,
      h('button', { type: 'submit', class: 'primary' }, t('shell.run')),
    ),
    hint,
    out,
  );
  help();
  input.focus();
  get('commands', {}, ctx.stop).then(
    (a) => {
      commands = a.rows;
      fill(
        names,
        commands.map((c) => h('option', { value: c.name })),
      );
      help();
    },
    () => {},
  );
}

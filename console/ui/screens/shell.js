// Shell: commands as typed, replies as ebb cli prints them.
import { h, fill } from '../lib/h.js';
import { exec, get, ApiError } from '../lib/api.js';
import { confirmCommand } from '../lib/dialog.js';
import { id, split, text } from '../lib/bytes.js';
import { t, num } from '../lib/i18n.js';

export const title = 'shell.title';
const KEEP = 200;
/** What the names of the histories in the browser's storage begin with, one of each user. Logout removes them: see app.js. */
const HISTORY = 'ebb.shell.';
const TRIES = ['help', 'help SET', 'INFO server', 'SCAN 0 COUNT 10', 'EXPIRY NEXT', 'SET hello world PX 30000'];

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const out = h('div', { class: 'card', role: 'log', 'aria-label': t('shell.title'), hidden: true }),
    first = h('section', { class: 'card' }),
    hint = h('p', { class: 'faint mono hint' });
  /** The lines of this user, without those that have a password. @type {string[]} */ let past = [];
  const place = HISTORY + id(ctx.me.user);
  try {
    past = JSON.parse(localStorage.getItem(place) || '[]');
  } catch {
    past = [];
  }
  /** @param {string} line */
  const keep = (line) => {
    past = [...past.filter((x) => x !== line), line].slice(-KEEP);
    at = past.length;
    localStorage.setItem(place, JSON.stringify(past));
  };
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
          help();
          e.preventDefault();
        } else if (e.key === 'ArrowDown' && at < past.length) {
          input.value = past[++at] || '';
          help();
          e.preventDefault();
        } else if (e.key === 'Tab' && !e.shiftKey && complete()) {
          e.preventDefault();
        }
      },
      input: () => help(),
    },
  });
  /** The commands that begin with what is typed, those of few words first. @param {string} s */
  const begun = (s) => (s ? commands.filter((x) => x.name.startsWith(s) && x.name !== s) : []);
  function help() {
    const s = input.value.trimStart().replace(/\s+/g, ' ').toUpperCase(),
      word = s.trimEnd(),
      c = word && commands.filter((x) => word === x.name || s.startsWith(x.name + ' ')).sort((a, b) => b.name.length - a.name.length)[0],
      more = begun(s).slice(0, 8);
    fill(
      hint,
      c ? [h('b', null, c.name), ' ', c.syntax, ' — ', c.summary] : more.length ? '' : t('shell.hint'),
      more.length > 0 && [
        c && h('br'),
        more.map((x) => [
          h(
            'button',
            {
              type: 'button',
              class: 'small',
              title: x.summary,
              on: {
                click: () => {
                  input.value = x.name + ' ';
                  input.focus();
                  help();
                },
              },
            },
            x.name,
          ),
          ' ',
        ]),
      ],
    );
  }
  /** Tab: completes the name of a command as far as it is sure, and reports whether it has. */
  function complete() {
    const s = input.value.trimStart().toUpperCase(),
      all = begun(s).map((x) => x.name);
    if (!all.length) return false;
    let n = all[0].length;
    for (const x of all) while (x.slice(0, n) !== all[0].slice(0, n)) n--;
    const next = all.length === 1 ? all[0] + ' ' : all[0].slice(0, n);
    if (next.length <= s.length) return false;
    input.value = next;
    help();
    return true;
  }
  /** What `help` alone and `help @group` print. @param {string} group */
  function overview(group) {
    const of = (/** @type {string} */ g) => commands.filter((c) => c.group === g);
    if (group) {
      const rows = of(group);
      const wide = Math.max(...rows.map((c) => c.name.length)) + 2;
      return rows.map((c) => c.name.padEnd(wide) + c.summary).join('\n');
    }
    const groups = [...new Set(commands.map((c) => c.group))].sort();
    return [t('shell.help'), '', ...groups.map((g) => ('help @' + g).padEnd(24) + t('shell.commands', { n: of(g).length }))].join('\n');
  }
  /** @param {string} line @param {string} words @param {string} cls @param {string} note */
  function print(line, words, cls, note) {
    out.hidden = false;
    first.hidden = true;
    out.prepend(
      h(
        'div',
        null,
        h('div', { class: 'row' }, h('b', { class: 'mono' }, '> ' + line), h('small', { class: 'faint' }, note)),
        h('pre', { class: ['value', cls] }, words),
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
    input.value = '';
    help();
    const own = words.map(text),
      verb = own[0].toLowerCase();
    if (['clear', 'history', 'help', '?'].includes(verb)) keep(line);
    if (verb === 'clear' && own.length === 1) {
      fill(out);
      out.hidden = true;
      first.hidden = false;
      return;
    }
    if (verb === 'history' && own.length === 1) {
      print(line, past.join('\n'), '', '');
      return;
    }
    if (verb === 'help' || verb === '?') {
      const what = own.slice(1).join(' '),
        group = what.startsWith('@') ? what.slice(1).toLowerCase() : '';
      if (!what || commands.some((c) => c.group === group)) {
        print(line, overview(group), '', '');
        return;
      }
      const name = what.toUpperCase();
      if (commands.length && !commands.some((c) => (c.name + ' ').startsWith(name + ' '))) {
        print(line, t('shell.unknown', { name }), 'bad', '');
        return;
      }
      try {
        print(line, (await get('help', { name: what })).text, '', '');
      } catch (e) {
        print(line, /** @type {Error} */ (e).message, 'bad', '');
      }
      return;
    }
    let typed;
    for (;;) {
      try {
        const r = await exec(ctx.db, words, { confirm: typed });
        if (!r.secret) keep(line); // the server knows which commands have passwords
        print(line, r.text, r.error ? 'bad' : '', num(r.ms, 2) + ' ms');
      } catch (e) {
        const err = /** @type {ApiError} */ (e);
        if (err.status && !err.secret) keep(line);
        if (err.status === 409 && err.confirm && typed === undefined) {
          if (await confirmCommand({ argv: words, text: err.message, danger: true, type: err.confirm })) {
            typed = err.confirm;
            continue;
          }
          print(line, t('shell.back'), 'faint', '');
          return;
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
    first,
    out,
  );
  fill(
    first,
    h('h2', null, t('shell.first')),
    h(
      'ul',
      { class: 'tries' },
      TRIES.filter((line) => !ctx.me.readOnly || !line.startsWith('SET')).map((line) =>
        h(
          'li',
          null,
          h(
            'button',
            {
              type: 'button',
              class: 'mono small',
              on: {
                click: () => {
                  input.value = line;
                  input.focus();
                  help();
                },
              },
            },
            line,
          ),
          ' ',
          h(
            'span',
            { class: 'faint' },
            t(
              'shell.try.' +
                line
                  .split(' ')
                  .slice(0, line.startsWith('help') ? 2 : 1)
                  .join('')
                  .toLowerCase(),
            ),
          ),
        ),
      ),
    ),
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

// Shell: typed commands, replies in the form of ebb cli, and maps as tables.
import { h, fill } from '../lib/h.js';
import { ApiError, exec, get, messageOf } from '../lib/api.js';
import { confirmCommand } from '../lib/dialog.js';
import { copier, id, split, text } from '../lib/bytes.js';
import { t, num } from '../lib/i18n.js';
import { mapTables } from '../lib/replies.js';
import { kept } from '../user.js';

/** @import { B, CommandRow, Ctx } from '../lib/types.js' */

export const title = 'shell.title';
/** How many lines the history keeps, how many replies the screen shows, and how many commands it offers. */
const MAX_HISTORY = 200,
  MAX_OFFERS = 8;
/** The prefix of the keys under which the browser stores the histories, one for each user. Logout removes them: see frame.js. */
const HISTORY_KEY = 'ebb.shell.';
const EXAMPLES = ['help', 'help SET', 'INFO server', 'SCAN 0 COUNT 10', 'EXPIRY NEXT', 'SET hello world PX 30000'];

/** The lines that a user has typed, except those with a password. */
export class History {
  /** @param {B} user */
  constructor(user) {
    this.place = HISTORY_KEY + id(user);
    /** @type {string[]} */
    this.lines = [];
    this.read();
    this.at = this.lines.length;
  }

  /** Reads the stored history, because another tab may have added lines or logged out. */
  read() {
    try {
      this.lines = JSON.parse(localStorage.getItem(this.place) || '[]');
    } catch {
      /* another program wrote it */
    }
  }

  /** @param {string} line */
  keep(line) {
    this.read();
    this.lines = [...this.lines.filter((x) => x !== line), line].slice(-MAX_HISTORY);
    this.at = this.lines.length;
    localStorage.setItem(this.place, JSON.stringify(this.lines));
  }

  /** The previous (-1) or next (1) line; undefined at the ends. @param {-1|1} step */
  move(step) {
    if (this.at + step < 0 || this.at + step > this.lines.length) return undefined;
    this.at += step;
    return this.lines[this.at] || '';
  }
}

/**
 * Returns whether a refused line contains no password. The server tells which commands have one, except where it refuses them unread: if
 * there are too many requests, after a logout, and while it loads.
 * @param {ApiError} e
 */
export const isKept = (e) => !e.secret && (e.status === 409 || (e.status === 403 && e.code !== '' && e.code !== 'DENIED'));

/** Whether the page is as narrow as a phone, which has neither Tab nor arrow keys. */
const isNarrow = () => matchMedia('(max-width: 767px)').matches;

/** The screen. */
class Shell {
  /** @param {Ctx} ctx */
  constructor(ctx) {
    this.ctx = ctx;
    this.history = new History(ctx.me.user);
    /** @type {CommandRow[]} */
    this.commands = [];
    // The output stays until the page closes or the login ends.
    this.out = kept.get('shell') || h('div', { class: 'card log', role: 'log', 'aria-label': t('shell.title'), hidden: true });
    kept.set('shell', this.out);
    this.first = h('section', { class: 'card', hidden: !this.out.hidden }, h('h2', null, t('shell.first')), this.tries());
    this.hint = h('p', { class: 'faint mono hint' });
    this.names = h('datalist', { id: 'commands' });
    this.input = h('input', {
      type: 'text',
      class: 'mono grow',
      list: 'commands',
      autocomplete: 'off',
      autocapitalize: 'off',
      spellcheck: 'false',
      'aria-label': t('shell.prompt'),
      placeholder: t('shell.prompt'),
      value: ctx.params.get('line') || '',
      on: { keydown: (e) => this.keydown(e), input: () => this.paintHint() },
    });
  }

  /** Puts a line into the field. @param {string} line */
  type(line) {
    this.input.value = line;
    this.input.focus();
    this.paintHint();
  }

  /** Suggestions for the reader. */
  tries() {
    const lines = EXAMPLES.filter((line) => this.ctx.me.writes || !line.startsWith('SET'));
    return h(
      'ul',
      { class: 'tries' },
      lines.map((line) => {
        const words = line.split(' ').slice(0, line.startsWith('help') ? 2 : 1),
          button = h('button', { type: 'button', class: 'mono small', on: { click: () => this.type(line) } }, line);
        return h('li', null, button, ' ', h('span', { class: 'faint' }, t('shell.try.' + words.join('').toLowerCase())));
      }),
    );
  }

  /** @param {KeyboardEvent} e */
  keydown(e) {
    const line = e.key === 'ArrowUp' ? this.history.move(-1) : e.key === 'ArrowDown' ? this.history.move(1) : undefined;
    if (line !== undefined) {
      this.input.value = line;
      this.paintHint();
    } else if (e.key !== 'Tab' || e.shiftKey || !this.complete()) return;
    e.preventDefault();
  }

  /** The commands that begin with the typed text, those of few words first. @param {string} s */
  begun(s) {
    return s ? this.commands.filter((x) => x.name.startsWith(s) && x.name !== s) : [];
  }

  /** Shows the grammar of the typed command, and the commands that begin with the typed text. */
  paintHint() {
    const s = this.input.value.trimStart().replace(/\s+/g, ' ').toUpperCase(),
      word = s.trimEnd(),
      typed = this.commands.filter((x) => word && (word === x.name || s.startsWith(x.name + ' '))),
      [command] = typed.sort((a, b) => b.name.length - a.name.length),
      offers = this.begun(s).slice(0, MAX_OFFERS),
      idle = t(isNarrow() ? 'shell.hint.phone' : 'shell.hint');
    fill(
      this.hint,
      command ? [h('b', null, command.name), ' ', command.syntax, ' — ', command.summary] : offers.length ? '' : idle,
      offers.length > 0 && command && h('br'),
      offers.map((x) => {
        const click = () => this.type(x.name + ' ');
        return [h('button', { type: 'button', class: 'small', title: x.summary, on: { click } }, x.name), ' '];
      }),
    );
  }

  /** Handles Tab: completes the name of a command as far as it is unambiguous, and returns whether it did. */
  complete() {
    const s = this.input.value.trimStart().toUpperCase(),
      all = this.begun(s).map((x) => x.name);
    if (!all.length) return false;
    let n = all[0].length;
    for (const x of all) while (x.slice(0, n) !== all[0].slice(0, n)) n--;
    const next = all.length === 1 ? all[0] + ' ' : all[0].slice(0, n);
    if (next.length <= s.length) return false;
    this.input.value = next;
    this.paintHint();
    return true;
  }

  /**
   * Shows a line and its reply, as text or as an element.
   * @param {string} line
   * @param {string} words
   * @param {string} [cls]
   * @param {string} [note]
   * @param {Element|null} [element]
   */
  print(line, words, cls = '', note = '', element = null) {
    const { out, first } = this,
      copyButton = element && copier(() => words);
    out.hidden = false;
    first.hidden = true;
    out.prepend(
      h(
        'div',
        null,
        h('div', { class: 'row' }, h('b', { class: 'mono' }, '> ' + line), h('small', { class: 'faint' }, note), copyButton),
        element || h('pre', { class: ['value', cls] }, words),
      ),
    );
    while (out.children.length > MAX_HISTORY) out.lastElementChild?.remove();
  }

  clear() {
    fill(this.out);
    this.out.hidden = true;
    this.first.hidden = false;
  }

  /** The output of `help` without arguments. */
  groups() {
    const groups = [...new Set(this.commands.map((c) => c.group))].sort();
    return [
      t('shell.help'),
      '',
      ...groups.map((g) => ('help @' + g).padEnd(24) + t('shell.commands', { n: this.commands.filter((c) => c.group === g).length })),
    ].join('\n');
  }

  /** What `help @group` prints. @param {CommandRow[]} commands */
  summaries(commands) {
    const wide = Math.max(...commands.map((c) => c.name.length)) + 2;
    return commands.map((c) => c.name.padEnd(wide) + c.summary).join('\n');
  }

  /** `help` with a command or a group, or alone. @param {string} line @param {string} what */
  async help(line, what) {
    const name = what.toUpperCase(),
      group = what.startsWith('@') ? what.slice(1).toLowerCase() : '',
      members = this.commands.filter((c) => c.group === group);
    if (!what) this.print(line, this.groups());
    else if (members.length) this.print(line, this.summaries(members));
    else if (this.commands.length && !this.commands.some((c) => (c.name + ' ').startsWith(name + ' ')))
      this.print(line, t('shell.unknown', { name }), 'bad');
    else
      try {
        this.print(line, (await get('help', { name: what })).text);
      } catch (e) {
        this.print(line, messageOf(e), 'bad');
      }
  }

  /** Runs the line in the field. */
  async run() {
    const line = this.input.value.trim(),
      words = split(line);
    if (!line) return;
    if (!words) {
      this.print(line, t('shell.quote'), 'bad');
      return;
    }
    this.input.value = '';
    this.paintHint();
    const [first, ...rest] = words.map(text),
      verb = first.toLowerCase();
    if (['clear', 'history', 'help', '?'].includes(verb)) this.history.keep(line);
    if (verb === 'clear' && !rest.length) this.clear();
    else if (verb === 'history' && !rest.length) this.print(line, this.history.lines.join('\n'));
    else if (verb === 'help' || verb === '?') this.help(line, rest.join(' '));
    else this.exec(line, words);
  }

  /** Runs a command. @param {string} line @param {B[]} words @param {string} [typed] what the user has typed to confirm it */
  async exec(line, words, typed) {
    const { history } = this;
    try {
      const r = await exec(this.ctx.db, words, { confirm: typed });
      if (!r.secret) history.keep(line); // the server knows which commands contain passwords
      this.print(line, r.text, r.error ? 'bad' : '', t('unit.ms', { n: num(r.ms, 2) }), r.cut ? null : mapTables(r.reply));
    } catch (e) {
      const error = e instanceof ApiError ? e : new ApiError(0, { error: messageOf(e) }, 0);
      if (isKept(error)) history.keep(line);
      if (error.status !== 409 || !error.confirm || typed !== undefined) this.print(line, error.message, 'bad');
      else if (await confirmCommand({ argv: words, text: error.message, danger: true, type: error.confirm }))
        await this.exec(line, words, error.confirm);
      else this.print(line, t('shell.back'), 'faint');
    }
  }

  async readCommands() {
    try {
      this.commands = (await get('commands', {}, this.ctx.stop)).rows;
    } catch {
      return; // the shell also works without hints
    }
    fill(
      this.names,
      this.commands.map((c) => h('option', { value: c.name })),
    );
    this.paintHint();
  }

  /** @param {HTMLElement} root */
  open(root) {
    /** @param {Event} e */
    const submit = (e) => {
      e.preventDefault();
      this.run();
    };
    const run = h('button', { type: 'submit', class: 'primary' }, t('shell.run')),
      prompt = h('b', { class: 'mono' }, 'db' + this.ctx.db + '>'),
      form = h('form', { class: 'row line', on: { submit } }, prompt, this.input, this.names, run);
    fill(root, h('h1', null, t('shell.title')), form, this.hint, this.first, this.out);
    this.paintHint();
    this.input.focus();
    this.readCommands();
  }
}

/** @param {HTMLElement} root @param {Ctx} ctx */
export const open = (root, ctx) => new Shell(ctx).open(root);

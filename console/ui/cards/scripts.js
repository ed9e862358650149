// The card of scripts and functions on the screen Performance.
import { h, fill } from '../lib/h.js';
import { exec, get } from '../lib/api.js';
import * as column from '../lib/column.js';
import { commandButton } from '../lib/command-button.js';
import { dialog } from '../lib/dialog.js';
import { table } from '../lib/table.js';
import { card } from './card.js';
import { id, text } from '../lib/bytes.js';
import { t, size, span } from '../lib/i18n.js';

/** @import { B, Column, Ctx, FunctionRow, Running, ScriptRow, ScriptsAnswer } from '../lib/types.js' */
/** A function and its library. @typedef {FunctionRow & {library: B}} Row */

/** Shows the text of a script. @param {number} db @param {ScriptRow} r */
async function showScript(db, r) {
  const a = await exec(db, ['SCRIPT', 'SHOW', r.sha]);
  await dialog({
    title: t('scripts.of', { sha: r.sha.slice(0, 8) }),
    wide: true,
    body: a.error ? h('p', { class: 'error' }, a.text) : h('pre', { class: 'command' }, text(/** @type {B} */ (a.reply))),
  });
}

/** @returns {Column<ScriptRow>[]} */
const scriptColumns = () => [
  column.of('sha', 'SHA1', (r) => r.sha, { minor: true, cell: (r) => h('span', { class: 'mono', title: r.sha }, r.sha.slice(0, 8)) }),
  column.name('head', t('scripts.text'), (r) => r.head, { wide: true }, 120),
  column.bytes('bytes', t('files.size'), (r) => r.bytes),
  column.of('loaded', t('scripts.kept'), (r) => Number(r.loaded), {
    minor: true,
    cell: (r) => t(r.loaded ? 'scripts.loaded' : 'scripts.evictable'),
  }),
];

/** @returns {Column<Row>[]} */
const functionColumns = () => [
  column.name('library', t('scripts.library'), (r) => r.library),
  column.name('name', t('scripts.function'), (r) => r.name),
  column.of('flags', t('scripts.flags'), (r) => r.flags.join(', '), { minor: true }),
  column.of('about', t('config.doc'), (r) => text(r.description), {
    wide: true,
    cell: (r) => (r.description ? h('span', { class: 'faint' }, text(r.description)) : ''),
  }),
];

/** @param {Ctx} ctx */
const scriptTable = (ctx) =>
  table({
    label: t('scripts.cached'),
    key: (r) => r.sha,
    fade: false,
    columns: scriptColumns(),
    actions: (now) =>
      ctx.me.can['performance.show'] &&
      ctx.me.values &&
      h('button', { type: 'button', class: 'small', on: { click: () => showScript(ctx.db, now()) } }, t('scripts.show')),
    empty: () => t('scripts.none'),
  });

/** @param {Ctx} ctx @param {() => void} after a function was deleted */
const functionTable = (ctx, after) =>
  table({
    label: t('scripts.functions'),
    key: (r) => id(r.library) + '/' + id(r.name),
    fade: false,
    columns: functionColumns(),
    actions: (now) =>
      commandButton(ctx, 'performance.fundel', t('scripts.delete'), () => ['FUNCTION', 'DELETE', now().library], after, {
        danger: true,
        text: t('scripts.delete.text'),
      }),
    empty: () => t('scripts.nofunctions'),
  });

/** The running script, with a button that ends it. @param {Ctx} ctx @param {Running} r @param {() => void} after */
const runningScript = (ctx, r, after) =>
  h(
    'p',
    { class: ['row', r.overdue && 'bad'] },
    t(r.overdue ? 'scripts.overdue' : 'scripts.runs', { span: span(r.ms) }),
    commandButton(ctx, 'performance.scriptkill', t('scripts.kill'), () => ['SCRIPT', 'KILL'], after, {
      danger: true,
      text: t('scripts.kill.text'),
    }),
  );

/** @param {ScriptsAnswer} a */
const factWords = (a) =>
  t('scripts.facts', { n: a.cached, size: size(a.bytes), functions: a.functions }) +
  (a.evicted ? ' ' + t('scripts.evicted', { n: a.evicted }) : '');

/** @param {Ctx} ctx */
export function scripts(ctx) {
  const running = h('div'),
    facts = h('p', { class: 'faint' }),
    cached = scriptTable(ctx),
    functions = functionTable(ctx, () => again()),
    cachedPart = h('div', { class: 'tall' }, h('h3', null, t('scripts.cached')), cached.el),
    functionPart = h('div', { class: 'tall' }, h('h3', null, t('scripts.functions')), functions.el),
    flush = commandButton(
      ctx,
      'performance.scriptflush',
      t('scripts.flush'),
      () => ['SCRIPT', 'FLUSH'],
      () => again(),
      {
        danger: true,
        text: t('scripts.flush.text'),
      },
    );
  const { el, again } = card(ctx, {
    title: t('scripts.title'),
    ms: 5000,
    tools: flush,
    body: [running, facts, cachedPart, functionPart],
    read: async () => {
      const a = await get('scripts', {}, ctx.stop),
        denied = new Set(a.denied || []);
      fill(running, a.running && runningScript(ctx, a.running, () => again()));
      fill(facts, denied.has('INFO') ? '' : factWords(a));
      cachedPart.hidden = denied.has('SCRIPT SHOW');
      functionPart.hidden = denied.has('FUNCTION LIST');
      if (flush) flush.hidden = !a.scripts.length;
      cached.set(a.scripts);
      functions.set(a.libraries.flatMap((l) => l.functions.map((f) => ({ ...f, library: l.name }))));
      return a.denied;
    },
  });
  return el;
}

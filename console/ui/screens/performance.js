// Performance: commands by calls and time, slow calls, hot keys, memory by prefix, latency events, scripts, and errors by code.
import { h, fill, say } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { table } from '../lib/table.js';
import { treemap } from '../lib/treemap.js';
import { card, col } from '../cards/card.js';
import { memory } from '../cards/memory.js';
import { latency, scripts, threshold } from '../cards/scripts.js';
import { hotKeys } from '../cards/hot.js';
import { show, text } from '../lib/bytes.js';
import { t, num, micros, span, time } from '../lib/i18n.js';

export const title = 'performance.title';

/** The cards of commands and of errors, which one answer has. @param {import('../app.js').Ctx} ctx */
function commands(ctx) {
  /** @type {Map<string, [number, number]>} */
  let before = new Map();
  const map = h('div', { hidden: true }),
    note = h('p', { class: 'faint' });
  const us = (/** @type {string} */ name, /** @type {string} */ label, more = {}) =>
    col(name, label, (r) => r[name], { num: true, cell: (/** @type {any} */ r) => micros(r[name]), ...more });
  const count = (/** @type {string} */ name, more = {}) =>
    col(name, t('performance.' + name), (r) => r[name], { num: true, cell: (/** @type {any} */ r) => num(r[name]), ...more });
  const rows = table({
    label: t('performance.commands'),
    key: (r) => r.name,
    fade: false,
    sort: ['usec', -1],
    columns: [
      col('name', t('performance.command'), (r) => r.name, {
        wide: true,
        cell: (/** @type {any} */ r) => h('span', { class: 'mono' }, r.name),
      }),
      count('rate', { cell: (/** @type {any} */ r) => (r.rate === null ? '–' : num(r.rate, r.rate < 10 ? 1 : 0)) }),
      count('calls', { minor: true }),
      us('usec', t('performance.time'), { minor: true, cell: (/** @type {any} */ r) => span(r.usec / 1000) }),
      us('each', t('performance.each'), { minor: true }),
      us('p50', 'p50', { minor: true }),
      us('p99', 'p99'),
      us('p999', 'p99.9', { minor: true }),
      count('failed', { minor: true }),
      count('rejected', { minor: true }),
    ],
    empty: () => t('performance.nocommands'),
  });
  const errors = table({
    label: t('performance.errors'),
    key: (r) => text(r.code),
    fade: false,
    sort: ['n', -1],
    columns: [
      col('code', t('performance.code'), (r) => text(r.code), { wide: true, cell: (/** @type {any} */ r) => show(r.code, 60) }),
      col('n', t('performance.count'), (r) => r.n, { num: true, cell: (/** @type {any} */ r) => num(r.n) }),
    ],
    empty: () => t('performance.noerrors'),
  });
  const errorCard = h('section', { class: 'card' }, h('h2', null, t('performance.errors')), errors.el);
  const c = card(ctx, {
    title: t('performance.commands'),
    ms: 2000,
    body: [note, map, rows.el],
    read: async () => {
      const a = await get('performance', {}, ctx.stop),
        now = new Map();
      errorCard.hidden = rows.el.hidden = !!a.denied;
      rows.set(
        a.commands.map((/** @type {any} */ x) => {
          const was = before.get(x.name);
          now.set(x.name, [x.calls, a.now]);
          return {
            ...x,
            each: x.calls ? x.usec / x.calls : null,
            rate: was && a.now > was[1] ? Math.max(0, (x.calls - was[0]) / ((a.now - was[1]) / 1000)) : was ? 0 : null,
          };
        }),
      );
      before = now;
      const whole = a.commands.reduce((/** @type {number} */ sum, /** @type {any} */ x) => sum + x.usec, 0);
      say(note, !whole ? '' : t('performance.map', { span: span(whole / 1000) }) + (a.timing ? '' : ' ' + t('performance.untimed')));
      treemap(
        map,
        a.commands.map((/** @type {any} */ x) => ({ label: x.name, value: x.usec, title: x.name + ' ' + span(x.usec / 1000) })),
        { rest: t('performance.others') },
      );
      errors.set(a.errors);
      return a.denied;
    },
  });
  return [c.el, errorCard];
}

/** @param {import('../app.js').Ctx} ctx */
function slowlog(ctx) {
  const note = h('p', { class: 'faint' });
  let now = '10000';
  const rows = table({
    label: t('performance.slow'),
    stack: true,
    key: (r) => String(r.id),
    fade: false,
    columns: [
      col('at', t('performance.at'), (r) => r.at, { cell: (/** @type {any} */ r) => time(r.at) }),
      col('us', t('performance.took'), (r) => r.us, { num: true, cell: (/** @type {any} */ r) => micros(r.us) }),
      col('argv', t('performance.command'), (r) => r.argv.map(text).join(' '), {
        wide: true,
        sort: false,
        cell: (/** @type {any} */ r) => r.argv.map((/** @type {any} */ a, /** @type {number} */ i) => [i ? ' ' : '', show(a, 60)]),
      }),
      col('addr', t('performance.client'), (r) => r.addr, {
        minor: true,
        cell: (/** @type {any} */ r) =>
          text(r.name) === 'ebb-console' ? [r.addr, ' ', h('span', { class: 'badge' }, t('performance.console'))] : r.addr,
      }),
    ],
    empty: () => t('performance.noslow'),
  });
  const tools = [
    ctx.button(
      'performance.config',
      t('latency.set'),
      async () => {
        if (await threshold(ctx, 'slowlog-log-slower-than', t('latency.set'), now, t('performance.slow.hint'))) c.again();
      },
      { small: true },
    ),
    ctx.button(
      'performance.slowreset',
      t('performance.slowreset'),
      async () => {
        if (await run(ctx.db, ['SLOWLOG', 'RESET'])) c.again();
      },
      { small: true },
    ),
  ];
  const c = card(ctx, {
    title: t('performance.slow'),
    ms: 2000,
    tools,
    body: [note, rows.el],
    read: async () => {
      const s = await get('slowlog', {}, ctx.stop);
      rows.set(s.rows);
      rows.el.hidden = !!s.denied;
      if (s.threshold !== undefined) now = s.threshold;
      say(
        note,
        s.threshold === undefined
          ? ''
          : Number(s.threshold) < 0
            ? t('performance.off')
            : t('performance.threshold', { span: micros(Number(s.threshold)) }),
      );
      return s.denied;
    },
  });
  return c.el;
}

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const [times, errors] = commands(ctx);
  fill(
    root,
    h('div', { class: 'titlebar' }, h('h1', null, t('performance.title'))),
    times,
    slowlog(ctx),
    hotKeys(ctx),
    memory(ctx),
    latency(ctx),
    scripts(ctx),
    errors,
  );
}

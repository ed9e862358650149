// The cards of latency events, and of scripts and functions, on the screen Performance.
import { h, fill, list } from '../lib/h.js';
import { exec, get, run } from '../lib/api.js';
import { bars } from '../lib/chart.js';
import { dialog, form } from '../lib/dialog.js';
import { table } from '../lib/table.js';
import { card, col } from './card.js';
import { argv, id, show, text } from '../lib/bytes.js';
import { t, size, span, time, date, has } from '../lib/i18n.js';

/**
 * A form for a directive that is a number.
 * @param {import('../app.js').Ctx} ctx @param {string} name @param {string} label @param {any} value @param {string} hint
 */
export async function threshold(ctx, name, label, value, hint) {
  const a = await form({
    title: label,
    fields: [{ name: 'n', label: name, type: 'number', value: String(value), required: true, hint }],
    command: (v) => (v.n === '' ? t('performance.number') : argv('CONFIG', 'SET', name, v.n)),
  });
  return !!a && !!(await run(ctx.db, a.argv, { quiet: true }));
}

/** @param {import('../app.js').Ctx} ctx */
export function latency(ctx) {
  const body = h('div', { class: 'cols' }),
    tools = h('span', { class: 'row' }),
    none = h('p', { class: 'faint' });
  /** @param {any} e an event */
  function chart(e) {
    const el = h('div'),
      name = has('latency.' + e.event) ? t('latency.' + e.event) : e.event;
    // A few samples would be as wide as walls: the room for others stands before them.
    const before = Math.max(0, 40 - e.samples.length),
      at = (/** @type {number} */ i) => (i < before ? 0 : e.samples[i - before][0]);
    bars(
      el,
      [
        {
          label: t('latency.longest'),
          cls: 's-key',
          values: [...Array(before).fill(0), ...e.samples.map((/** @type {number[]} */ s) => s[1])],
          format: span,
        },
      ],
      { label: name, height: 112, unit: (v) => span(v), x: (i) => (at(i) ? date(at(i)) : ''), tick: (i) => (at(i) ? time(at(i)) : '') },
    );
    return h(
      'div',
      null,
      h('h3', null, name),
      h('p', { class: 'faint' }, t('latency.worst', { max: span(e.max), last: span(e.ms), at: date(e.at) })),
      el,
    );
  }
  let now = 0;
  const set = ctx.button(
    'performance.config',
    t('latency.set'),
    async () => {
      if (await threshold(ctx, 'latency-monitor-threshold', t('latency.set'), now || 100, t('latency.hint'))) c.again();
    },
    { small: true },
  );
  const reset = ctx.button(
    'performance.latreset',
    t('acllog.reset'),
    async () => {
      if (await run(ctx.db, ['LATENCY', 'RESET'])) c.again();
    },
    { small: true },
  );
  fill(tools, set, reset);
  const c = card(ctx, {
    title: t('latency.title'),
    ms: 5000,
    tools,
    body: [none, body],
    read: async () => {
      const a = await get('latency', {}, ctx.stop);
      now = a.threshold || 0;
      fill(
        none,
        a.denied
          ? ''
          : a.threshold === 0
            ? t('latency.off')
            : (a.threshold ? t('latency.on', { span: span(a.threshold) }) + ' ' : '') + (a.events.length ? '' : t('latency.none')),
      );
      if (reset) reset.hidden = !a.events.length;
      list(body, a.events, (/** @type {any} */ e) => e.event + e.at + e.max, chart);
      return a.denied;
    },
  });
  return c.el;
}

/** @param {import('../app.js').Ctx} ctx */
export function scripts(ctx) {
  const running = h('div'),
    facts = h('p', { class: 'faint' });
  async function look(/** @type {any} */ r) {
    const a = await exec(ctx.db, ['SCRIPT', 'SHOW', r.sha]);
    await dialog({
      title: t('scripts.of', { sha: r.sha.slice(0, 8) }),
      wide: true,
      body: a.error ? h('p', { class: 'error' }, a.text) : h('pre', { class: 'command' }, text(a.reply)),
    });
  }
  const cached = table({
    label: t('scripts.cached'),
    key: (r) => r.sha,
    fade: false,
    columns: [
      col('sha', 'SHA1', (r) => r.sha, {
        minor: true,
        cell: (/** @type {any} */ r) => h('span', { class: 'mono', title: r.sha }, r.sha.slice(0, 8)),
      }),
      col('head', t('scripts.text'), (r) => text(r.head), { wide: true, cell: (/** @type {any} */ r) => show(r.head, 120) }),
      col('bytes', t('files.size'), (r) => r.bytes, { num: true, cell: (/** @type {any} */ r) => size(r.bytes) }),
      col('loaded', t('scripts.kept'), (r) => (r.loaded ? 1 : 0), {
        minor: true,
        cell: (/** @type {any} */ r) => t(r.loaded ? 'scripts.loaded' : 'scripts.evictable'),
      }),
    ],
    actions: (now) =>
      ctx.me.can['performance.show'] &&
      ctx.me.values &&
      h('button', { type: 'button', class: 'small', on: { click: () => look(now()) } }, t('scripts.show')),
    empty: () => t('scripts.none'),
  });
  const functions = table({
    label: t('scripts.functions'),
    key: (r) => id(r.library) + '/' + id(r.name),
    fade: false,
    columns: [
      col('library', t('scripts.library'), (r) => text(r.library), { cell: (/** @type {any} */ r) => show(r.library, 60) }),
      col('name', t('scripts.function'), (r) => text(r.name), { cell: (/** @type {any} */ r) => show(r.name, 60) }),
      col('flags', t('scripts.flags'), (r) => r.flags.join(', '), { minor: true }),
      col('about', t('config.doc'), (r) => text(r.description), {
        wide: true,
        cell: (/** @type {any} */ r) => (r.description ? h('span', { class: 'faint' }, text(r.description)) : ''),
      }),
    ],
    actions: (now) =>
      ctx.button(
        'performance.fundel',
        t('scripts.delete'),
        async () => {
          if (await run(ctx.db, ['FUNCTION', 'DELETE', now().library], { danger: true, text: t('scripts.delete.text') })) c.again();
        },
        { small: true, danger: true },
      ),
    empty: () => t('scripts.nofunctions'),
  });
  const flush = ctx.button(
    'performance.scriptflush',
    t('scripts.flush'),
    async () => {
      if (await run(ctx.db, ['SCRIPT', 'FLUSH'], { danger: true, text: t('scripts.flush.text') })) c.again();
    },
    { small: true },
  );
  const part = (/** @type {string} */ name, /** @type {HTMLElement} */ el) => h('div', { class: 'tall' }, h('h3', null, t(name)), el);
  const cachedPart = part('scripts.cached', cached.el),
    functionPart = part('scripts.functions', functions.el);
  const c = card(ctx, {
    title: t('scripts.title'),
    ms: 5000,
    tools: flush,
    body: [running, facts, cachedPart, functionPart],
    read: async () => {
      const a = await get('scripts', {}, ctx.stop),
        r = a.running,
        denied = new Set(a.denied || []);
      fill(
        running,
        r &&
          h(
            'p',
            { class: 'row ' + (r.overdue ? 'bad' : '') },
            t(r.overdue ? 'scripts.overdue' : 'scripts.runs', { span: span(r.ms) }),
            ctx.button(
              'performance.scriptkill',
              t('scripts.kill'),
              async () => {
                if (await run(ctx.db, ['SCRIPT', 'KILL'], { danger: true, text: t('scripts.kill.text') })) c.again();
              },
              { small: true },
            ),
          ),
      );
      fill(
        facts,
        denied.has('INFO')
          ? ''
          : t('scripts.facts', { n: a.cached, size: size(a.bytes), functions: a.functions }) +
              (a.evicted ? ' ' + t('scripts.evicted', { n: a.evicted }) : ''),
      );
      cachedPart.hidden = denied.has('SCRIPT SHOW');
      functionPart.hidden = denied.has('FUNCTION LIST');
      if (flush) flush.hidden = !a.scripts.length;
      cached.set(a.scripts);
      functions.set(a.libraries.flatMap((/** @type {any} */ l) => l.functions.map((/** @type {any} */ f) => ({ ...f, library: l.name }))));
      return a.denied;
    },
  });
  return c.el;
}

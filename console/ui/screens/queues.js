// Queues: delay queues with lateness and waiting consumers; one of them with its jobs by state.
import { h, fill, say } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { form } from '../lib/dialog.js';
import { table } from '../lib/table.js';
import { listed, live, missing } from '../lib/live.js';
import { ttl } from '../lib/ticks.js';
import { clock } from '../lib/feed.js';
import { argv, id, show, text, url } from '../lib/bytes.js';
import { t, num, parseSpan, span } from '../lib/i18n.js';

export const title = 'queues.title';

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const { db, params, button } = ctx,
    said = h('p', { class: 'faint' }),
    k = params.get('k') || '';
  if (params.has('k')) {
    detail();
    return;
  }
  /** The instant at which a queue was first seen with ready jobs and no consumer. @type {Map<string, number>} */
  const alone = new Map();
  const count = (/** @type {string} */ name) => ({
    id: name,
    label: t('queues.' + name),
    num: true,
    value: (/** @type {any} */ r) => r[name],
    cell: (/** @type {any} */ r) => num(r[name]),
  });
  const one = table({
    label: t('queues.title'),
    key: (r) => id(r.k),
    fade: false,
    open: (r) => ctx.go('queues', { db, k: url(r.k) }),
    columns: [
      {
        id: 'k',
        label: t('keys.name'),
        wide: true,
        value: (r) => text(r.k),
        cell: (r) => [
          h('a', { href: ctx.link('queues', { db, k: url(r.k) }) }, show(r.k, 100, true)),
          r.paused && [' ', h('span', { class: 'badge look' }, t('queues.paused'))],
          r.stream && [
            ' ',
            h('span', { class: 'badge' }, t('queues.delivers')),
            ' ',
            h('a', { href: ctx.link('streams', { db, k: url(r.stream) }) }, show(r.stream, 60)),
          ],
          r.alone && !r.paused && [' ', h('span', { class: 'badge look' }, t('queues.unattended'))],
        ],
      },
      count('delayed'),
      count('ready'),
      count('leased'),
      {
        id: 'late',
        label: t('queues.late'),
        num: true,
        value: (r) => r.late,
        cell: (r) => h('span', { class: r.late > 5000 ? 'look' : '' }, r.ready ? span(r.late) : ''),
      },
      {
        id: 'next',
        label: t('queues.next'),
        num: true,
        value: (r) => r.next ?? Infinity,
        cell: (r) => (r.next === null ? '' : r.next > clock() ? span(r.next - clock()) : t('limits.now')),
      },
      { id: 'waiting', label: t('queues.consumers'), num: true, value: (r) => r.waiting, cell: (r) => num(r.waiting) },
      {
        id: 'dead',
        label: t('queues.dead'),
        num: true,
        value: (r) => r.dead,
        cell: (r) => (r.to && r.dead ? h('a', { href: ctx.link('queues', { db, k: url(r.k), s: 'dead' }) }, num(r.dead)) : num(r.dead)),
      },
      { ...count('dropped'), minor: true },
    ],
    empty: () => [t('queues.none'), h('pre', { class: 'command' }, 'DQ.ADD mail * hello DELAY 30000')],
  });
  fill(root, h('h1', null, t('queues.title')), said, h('section', { class: 'card' }, one.el));
  listed(ctx, 'queues', (a) => {
    const now = clock();
    for (const r of a.rows) {
      const k = id(r.k);
      if (r.ready > 0 && r.waiting === 0 && r.leased === 0) {
        if (!alone.has(k)) alone.set(k, now);
      } else alone.delete(k);
      r.alone = alone.has(k) && now - /** @type {number} */ (alone.get(k)) > 10000;
    }
    one.set(a.rows);
    say(said, missing(a.denied, t) || (a.more ? t('list.more', { n: a.rows.length }) : ''));
  });

  function detail() {
    const state = params.get('s') || 'ready',
      dead = state === 'dead';
    const head = h('div', { class: 'titlebar' }),
      tabs = h('nav', { class: 'titlebar', 'aria-label': t('queues.states') }),
      more = h('p', { class: 'faint' });
    const next = h(
      'button',
      {
        type: 'button',
        hidden: true,
        on: {
          click: () => {
            pages.push(last);
            again();
          },
        },
      },
      t('queues.further'),
    );
    const first = h(
      'button',
      {
        type: 'button',
        hidden: true,
        on: {
          click: () => {
            pages.length = 0;
            again();
          },
        },
      },
      t('queues.first'),
    );
    /** The ids behind which the pages before this one end. @type {string[]} */ const pages = [];
    let last = '',
      over = 0;
    /** The queue. @type {any} */ let row = null;
    /** The key of the queue whose jobs are shown. @type {any} */ let shown = null;
    const act = async (/** @type {any[]} */ words, /** @type {any} */ o) => {
      if (await run(db, words, o)) again();
    };
    const resume = button(
      'queues.pause',
      t('queues.resume'),
      () => act(['DQ.CONFIG', row.k, 'PAUSED', 'no'], { text: t('queues.resume.text') }),
      { small: true },
    );
    const pause = button(
      'queues.pause',
      t('queues.pause'),
      async () => {
        const key = row.k;
        const a = await form({
          title: t('queues.pause'),
          text: t('queues.pause.text'),
          fields: [{ name: 'for', label: t('queues.pause.for'), value: '' }],
          command: (v) => {
            const ms = v.for ? parseSpan(v.for) : 0;
            return Number.isNaN(ms) || (v.for && ms < 1) ? t('queues.pause.bad') : argv('DQ.CONFIG', key, 'PAUSED', ms > 0 ? ms : 'yes');
          },
        });
        if (a) act(a.argv, { quiet: true });
      },
      { small: true },
    );
    const cells = [
      {
        id: 'id',
        label: t('queues.job'),
        wide: true,
        value: (/** @type {any} */ r) => text(r.id),
        cell: (/** @type {any} */ r) => show(r.id, 80),
      },
      {
        id: 'payload',
        label: t('queues.payload'),
        wide: true,
        minor: true,
        value: (/** @type {any} */ r) => text(r.payload),
        cell: (/** @type {any} */ r) => show(r.payload, 120),
      },
      {
        id: 'deliveries',
        label: t('queues.deliveries'),
        num: true,
        value: (/** @type {any} */ r) => r.deliveries,
        cell: (/** @type {any} */ r) => num(r.deliveries),
      },
      {
        id: 'due',
        label: t('queues.due'),
        num: true,
        value: (/** @type {any} */ r) => r.due,
        cell: (/** @type {any} */ r) => {
          const at = clock();
          return r.due > at ? ttl(r.due - at, at) : t('queues.ago', { span: span(at - r.due) });
        },
      },
      ...(state === 'leased'
        ? [
            {
              id: 'until',
              label: t('locks.lease'),
              num: true,
              value: (/** @type {any} */ r) => r.until,
              cell: (/** @type {any} */ r) => {
                const at = clock();
                return ttl(Math.max(0, r.until - at), at);
              },
            },
            { id: 'token', label: t('locks.token'), num: true, minor: true, value: (/** @type {any} */ r) => r.token },
          ]
        : []),
    ];
    const jobs = table({
      label: t('queues.jobs'),
      key: (r) => id(r.id),
      fade: false,
      columns: cells,
      empty: () => t('queues.nojobs'),
      actions: (now) => [
        dead &&
          button(
            'queues.move',
            t('queues.requeue'),
            () => act(['DQ.MOVE', shown, row.k, 'IDS', 1, now().id], { text: t('queues.requeue.text') }),
            { small: true },
          ),
        ' ',
        button(
          'queues.cancel',
          t('queues.cancel'),
          () => act(['DQ.CANCEL', shown, now().id], { danger: true, text: t('queues.cancel.text') }),
          { danger: true, small: true },
        ),
      ],
    });
    const all =
      dead &&
      button('queues.move', t('queues.requeue.all'), () =>
        act(['DQ.MOVE', shown, row.k, 'COUNT', 10000], { text: t('queues.requeue.text') }),
      );
    const plans = schedules(act, () => row.k);
    fill(
      root,
      h('p', null, h('a', { href: ctx.link('queues', { db }) }, t('queues.others'))),
      head,
      tabs,
      said,
      h('section', { class: 'card' }, all && h('p', null, all), jobs.el, more, h('p', null, first, ' ', next)),
      plans.card,
    );
    const again = live(ctx, 1000, async () => {
      const a = await get('queue', { db, k, limit: 1 }, ctx.stop);
      row = a.row;
      fill(
        head,
        h('h1', null, row ? show(row.k, 120) : t('queues.gone')),
        row && row.waiting > 0 && h('span', { class: 'badge' }, t('queues.consumers') + ' ' + num(row.waiting)),
        row &&
          row.paused &&
          h(
            'span',
            { class: 'badge look' },
            row.until === null ? t('queues.paused') : t('queues.paused.until', { span: span(Math.max(0, row.until - clock())) }),
          ),
        row && (row.paused ? resume : pause),
      );
      plans.set(a.schedules);
      fill(
        tabs,
        ...['ready', 'delayed', 'leased', 'dead']
          .filter((s) => s !== 'dead' || (row && row.to) || dead)
          .map((s) =>
            h(
              'a',
              {
                href: ctx.link('queues', { db, k, s }),
                class: 'badge',
                'aria-current': s === state ? 'page' : undefined,
              },
              t('queues.' + s) + (s === 'dead' || !row ? '' : ' ' + num(row[s])),
            ),
          ),
      );
      shown = dead ? row && row.to : row && row.k;
      const from = pages[pages.length - 1];
      const b = shown
        ? await get('queue', { db, k: url(shown), state: dead ? 'all' : state, from }, ctx.stop)
        : { jobs: [], more: false };
      if (from !== undefined && !b.jobs.length && !over) {
        over = 1;
        pages.pop();
      } else over = 0; // the job has gone: the page before
      jobs.set(b.jobs);
      last = b.jobs.length ? url(b.jobs[b.jobs.length - 1].id) : '';
      next.hidden = !b.more;
      first.hidden = !pages.length;
      if (all) all.hidden = !b.jobs.length;
      say(
        said,
        missing(
          [...(a.denied || []), ...(b.denied || [])].filter((x, i, l) => l.indexOf(x) === i),
          t,
        ),
      );
      say(more, b.more ? t('list.more', { n: b.jobs.length }) : '');
    });
  }

  /**
   * The card of a queue's schedules. It is hidden while there are none.
   * @param {(words: any[], o: any) => Promise<void>} act @param {() => any} key
   */
  function schedules(act, key) {
    const when = (/** @type {number|null} */ at) =>
      at === null ? '–' : at > clock() ? ttl(at - clock(), clock()) : t('queues.ago', { span: span(clock() - at) });
    const count = (/** @type {string} */ name) => ({
      id: name,
      label: t('queues.' + name),
      num: true,
      value: (/** @type {any} */ r) => r[name],
      cell: (/** @type {any} */ r) => num(r[name]),
    });
    const list = table({
      label: t('queues.schedules'),
      key: (r) => id(r.name),
      fade: false,
      actions: (now) => [
        button(
          'queues.unschedule',
          t('queues.unschedule'),
          () => act(['DQ.UNSCHEDULE', key(), now().name], { danger: true, text: t('queues.unschedule.text') }),
          { danger: true, small: true },
        ),
      ],
      columns: [
        { id: 'name', label: t('keys.name'), wide: true, value: (r) => text(r.name), cell: (r) => show(r.name, 80) },
        {
          id: 'rule',
          label: t('queues.rule'),
          wide: true,
          value: (r) => r.rule,
          cell: (r) => h('span', { class: 'mono' }, r.rule + (r.zone ? ' ' + r.zone : '')),
        },
        { id: 'next', label: t('queues.next'), num: true, value: (r) => r.next, cell: (r) => when(r.next) },
        { id: 'last', label: t('queues.last'), num: true, minor: true, value: (r) => r.last ?? 0, cell: (r) => when(r.last) },
        count('runs'),
        count('skipped'),
        { ...count('late.runs'), value: (r) => r.late, cell: (r) => num(r.late), minor: true },
      ],
    });
    const card = h('section', { class: 'card', hidden: true }, h('h2', null, t('queues.schedules')), list.el);
    return {
      card,
      set: (/** @type {any[]} */ rows) => {
        card.hidden = !rows.length;
        list.set(rows);
      },
    };
  }
}

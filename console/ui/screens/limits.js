// Limits: the limiters that deny most requests now, and the state of each limiter.
import { h, fill, say } from '../lib/h.js';
import { exec, run } from '../lib/api.js';
import { dialog } from '../lib/dialog.js';
import { table } from '../lib/table.js';
import { listed, missing, partly } from '../lib/poll.js';
import { clock } from '../lib/events.js';
import { argv, fromUrl, id, line, show, text, url } from '../lib/bytes.js';
import { t, num, span } from '../lib/i18n.js';

export const title = 'limits.title';

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const { db, params, button } = ctx,
    only = params.has('k') ? id(fromUrl(params.get('k') || '')) : null;
  const said = h('p', { class: 'faint' }),
    more = h('p', { class: 'faint' }),
    head = h('div', { class: 'titlebar' });
  const link = (/** @type {any} */ r) => h('a', { href: ctx.link('key', { db, k: url(r.k) }) }, show(r.k, 100, true));
  const reset = (/** @type {() => any} */ now) =>
    button(
      'limits.reset',
      t('limits.reset'),
      async () => {
        if (await run(db, ['RL.RESET', now().k], { text: t('limits.reset.text') })) again();
      },
      { small: true },
    );
  /** Asks by RL.TAKE with PEEK what the limiter would answer to n requests now, and takes them if the user wants. @param {any} r */
  async function whatIf(r) {
    const n = h('input', { type: 'number', min: 0, value: '1', required: true }),
      preview = h('pre', { class: 'command' });
    const answer = h('p', { role: 'status' }, t('limits.if.ask'));
    const words = (/** @type {boolean} */ peek) =>
      argv(
        'RL.TAKE',
        r.k,
        r.limit,
        r.period,
        ...(r.algorithm === 'gcra' ? ['BURST', r.burst] : []),
        'COST',
        n.value || 0,
        'ALGO',
        r.algorithm,
        ...(peek ? ['PEEK'] : []),
      );
    const paint = () => fill(preview, line(words(true)));
    const ask = async () => {
      const x = await exec(db, words(true)).catch((e) => ({ error: true, text: e.message, reply: null }));
      answer.classList.toggle('error', !!x.error);
      if (x.error || !Array.isArray(x.reply)) {
        say(answer, x.text);
        return;
      }
      const [ok, most, left, retry] = x.reply.map((/** @type {any} */ v) => Number(v.i));
      answer.classList.toggle('look', !ok);
      say(
        answer,
        ok
          ? t('limits.if.yes', { left: left - Number(n.value), most })
          : retry < 0
            ? t('limits.if.never', { most })
            : t('limits.if.no', { span: span(retry / 1000), left }),
      );
    };
    n.addEventListener('input', paint);
    paint();
    const take = await dialog({
      title: t('limits.if.of', { name: text(r.k) }),
      ok: t('limits.if.take'),
      body: [
        h('label', null, h('span', null, t('limits.if.n')), n),
        h('p', { class: 'faint' }, t('limits.if.text', { limit: r.limit, span: span(r.period) })),
        preview,
        h('div', { class: 'row asks' }, h('button', { type: 'button', on: { click: ask } }, t('limits.if.button')), answer),
      ],
    });
    if (take && (await run(db, words(false), { quiet: true }))) again();
  }
  // The server halves the counts each minute: those of a limiter that always denies are of a minute and a half on average.
  const minutes = (/** @type {any} */ r) => Math.min(1.5, Math.max(1, (clock() - r.since) / 60000));
  const top = table({
    label: t('limits.top'),
    key: (r) => id(r.k),
    fade: false,
    sort: ['rate', -1],
    actions: (now) => [reset(now)],
    columns: [
      { id: 'k', label: t('keys.name'), wide: true, value: (r) => text(r.k), cell: link },
      {
        id: 'rate',
        label: t('limits.rate'),
        num: true,
        value: (r) => r.denied / minutes(r),
        cell: (r) => h('b', { class: 'look' }, num(r.denied / minutes(r), 0)),
      },
      {
        id: 'allowed',
        label: t('limits.allowed'),
        num: true,
        minor: true,
        value: (r) => r.allowed / minutes(r),
        cell: (r) => num(r.allowed / minutes(r), 0),
      },
      { id: 'since', label: t('limits.since'), num: true, minor: true, value: (r) => r.since, cell: (r) => span(clock() - r.since) },
    ],
    empty: () => t('limits.calm'),
  });
  const all = table({
    label: t('limits.all'),
    key: (r) => id(r.k),
    fade: false,
    sort: ['left', 1],
    sorted: (by) => list.sorted(by),
    actions: (now) => [button('limits.take', t('limits.if'), () => whatIf(now()), { small: true }), ' ', reset(now)],
    columns: [
      { id: 'k', label: t('keys.name'), wide: true, value: (r) => text(r.k), cell: link },
      {
        id: 'left',
        label: t('limits.remaining'),
        num: true,
        value: (r) => r.remaining / Math.max(1, r.limit),
        cell: (r) =>
          h(
            'span',
            null,
            h('meter', { min: 0, max: Math.max(1, r.limit), value: Math.max(0, r.remaining), 'aria-hidden': 'true' }),
            ' ',
            num(r.remaining) + ' / ' + num(r.limit),
          ),
      },
      { id: 'period', label: t('limits.period'), num: true, minor: true, value: (r) => r.period, cell: (r) => span(r.period) },
      {
        id: 'retry',
        label: t('limits.retry'),
        num: true,
        value: (r) => r.retry,
        cell: (r) => (r.retry > 0 ? span(r.retry) : t('limits.now')),
      },
      { id: 'reset', label: t('limits.full'), num: true, minor: true, value: (r) => r.reset, cell: (r) => span(r.reset) },
      { id: 'algo', label: t('limits.algorithm'), minor: true, value: (r) => r.algorithm },
      { id: 'held', label: t('limits.reservations'), num: true, minor: true, value: (r) => r.reservations },
      { id: 'line', label: t('limits.waiting'), num: true, minor: true, value: (r) => r.line },
    ],
    empty: () => (params.get('match') ? t('keys.nomatch') : [t('limits.none'), h('pre', { class: 'command' }, 'RL.TAKE api:ann 5 60000')]),
  });
  fill(
    root,
    h('h1', null, t('limits.title')),
    h('p', { class: 'faint' }, t('limits.about')),
    said,
    h('section', { class: 'card' }, h('h2', null, t('limits.top')), top.el),
    h('section', { class: 'card' }, head, all.el, more),
  );
  const list = listed(ctx, 'limits', 'left', (a) => {
    const mine = (/** @type {any} */ r) => only === null || id(r.k) === only;
    top.set(a.top.filter(mine));
    all.set(a.rows.filter(mine));
    say(said, missing(a.denied, t));
    say(more, partly(a));
  });
  const again = list.read;
  fill(head, h('h2', null, t('limits.all')), list.filter);
}

// Streams: streams with their groups, and the expiry rules.
import { h, fill, say } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { table } from '../lib/table.js';
import { filter, live, missing, partly } from '../lib/poll.js';
import { detail } from '../cards/stream.js';
import { id, show, text, url } from '../lib/bytes.js';
import { t, num, percent } from '../lib/i18n.js';

export const title = 'streams.title';

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const { db, button } = ctx,
    said = h('p', { class: 'faint' });
  if (ctx.params.has('k')) {
    detail(root, ctx);
    return;
  }
  let by = '-lag';
  /** The streams of rules, and how many entries each keeps. @type {Map<string, number>} */
  const bounds = new Map();
  const link = (/** @type {any} */ k) => h('a', { href: ctx.link('streams', { db, k: url(k) }) }, show(k, 100, true));
  const count = (/** @type {string} */ name, /** @type {any} */ o = {}) => ({
    id: name,
    label: t('streams.' + name),
    num: true,
    value: (/** @type {any} */ r) => r[name],
    cell: (/** @type {any} */ r) => (r[name] === null || r[name] === undefined ? '–' : num(r[name])),
    ...o,
  });
  const one = table({
    label: t('streams.title'),
    key: (r) => id(r.k) + '/' + id(r.group),
    fade: false,
    sort: ['lag', -1],
    sorted: (s) => {
      by = s;
      again();
    },
    open: (r) => ctx.go('streams', { db, k: url(r.k), g: r.group ? url(r.group) : undefined }),
    columns: [
      { id: 'k', label: t('keys.name'), wide: true, value: (r) => text(r.k), cell: (r) => link(r.k) },
      count('length'),
      {
        id: 'group',
        label: t('streams.group'),
        value: (r) => text(r.group),
        cell: (r) => (r.group ? show(r.group, 60) : h('span', { class: 'faint' }, t('streams.nogroup'))),
      },
      count('lag', {
        cell: (/** @type {any} */ r) => {
          const max = bounds.get(id(r.k)) || 0,
            late = max > 0 && r.lag > max * 0.8;
          return [
            late && [h('span', { class: 'badge look' }, t('streams.losing', { share: percent(r.lag / max) })), ' '],
            r.lag === null || r.lag === undefined ? '–' : num(r.lag),
          ];
        },
      }),
      count('pending'),
      count('consumers'),
      { id: 'last', label: t('streams.last'), minor: true, value: (r) => r.last, cell: (r) => h('span', { class: 'mono' }, r.last) },
    ],
    empty: () => (ctx.params.get('match') ? t('keys.nomatch') : [t('streams.none'), h('pre', { class: 'command' }, 'XADD orders * id 17')]),
  });
  const rules = table({
    label: t('streams.rules'),
    key: (r) => id(r.name),
    fade: false,
    columns: [
      { id: 'name', label: t('keys.name'), wide: true, value: (r) => text(r.name), cell: (r) => show(r.name, 60) },
      { id: 'match', label: t('streams.match'), value: (r) => text(r.match), cell: (r) => show(r.match, 60) },
      {
        id: 'levels',
        label: t('streams.levels'),
        minor: true,
        value: (r) => r.levels.join(),
        cell: (r) => r.levels.map((/** @type {string} */ l) => t('level.one.' + l)).join(', '),
      },
      {
        id: 'to',
        label: t('streams.target'),
        value: (r) => text(r.to),
        cell: (r) =>
          r.queue
            ? [t('streams.queue') + ' ', h('a', { href: ctx.link('queues', { db, k: url(r.to) }) }, show(r.to, 100, true))]
            : link(r.to),
      },
      count('fired'),
      count('suspended'),
      {
        id: 'why',
        label: t('streams.state'),
        value: (r) => text(r.why),
        cell: (r) => (r.why ? h('b', { class: 'bad' }, show(r.why, 120)) : t('streams.works')),
      },
    ],
    actions: (now) => [
      button(
        'streams.rule',
        t('streams.delrule'),
        async () => {
          if (await run(db, ['EXPIRY', 'RULE', 'DEL', now().name], { danger: true })) again();
        },
        { small: true },
      ),
    ],
    empty: () => [t('streams.norules'), h('pre', { class: 'command' }, 'EXPIRY RULE SET sessions MATCH session:* LEVEL KEY TO ended')],
  });
  fill(
    root,
    h('div', { class: 'titlebar' }, h('h1', null, t('streams.title')), filter(ctx, 'streams')),
    said,
    h('section', { class: 'card' }, one.el),
    h('section', { class: 'card' }, h('h2', null, t('streams.rules')), rules.el),
  );
  const again = live(ctx, 2000, async () => {
    const a = await get('streams', { db, match: ctx.params.get('match'), sort: by }, ctx.stop);
    bounds.clear();
    for (const r of a.rules) if (r.maxLen > 0) bounds.set(id(r.to), r.maxLen);
    one.set(
      a.rows.flatMap((/** @type {any} */ s) =>
        s.groups.length
          ? s.groups.map((/** @type {any} */ g) => ({
              k: s.k,
              length: s.length,
              group: g.name,
              lag: g.lag,
              pending: g.pending,
              consumers: g.consumers,
              last: g.last,
            }))
          : [{ k: s.k, length: s.length, group: null, last: s.last }],
      ),
    );
    rules.set(a.rules);
    say(said, missing(a.denied, t) || partly(a));
  });
}

// One stream: its groups and their consumers, and the entries that a group has not acknowledged.
import { h, fill, say } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { form } from '../lib/dialog.js';
import { live, missing } from '../lib/poll.js';
import { table } from '../lib/table.js';
import { clock } from '../lib/events.js';
import { col } from './card.js';
import { argv, id, plain, show, text, url } from '../lib/bytes.js';
import { t, num, parseSpan, span } from '../lib/i18n.js';

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function detail(root, ctx) {
  const { db, params, button } = ctx,
    k = params.get('k') || '';
  const head = h('div', { class: 'titlebar' }),
    said = h('p', { class: 'faint' }),
    tabs = h('nav', { class: 'titlebar', 'aria-label': t('streams.groups') });
  const facts = h('p', { class: 'faint' }),
    more = h('p', { class: 'faint' });
  /** The stream. @type {any} */ let row = null;
  /** Its group that is shown. @type {any} */ let group = null;
  /** The entries that are chosen. @type {any[]} */ let chosen = [];
  const act = async (/** @type {any[]} */ words, /** @type {any} */ o = {}) => {
    if (await run(db, words, o)) {
      entries.clear();
      again();
    }
  };

  const trim = button(
    'streams.trim',
    t('streams.trim'),
    async () => {
      const key = row.k;
      const a = await form({
        title: t('streams.trim'),
        text: t('streams.trim.text', { n: row.length }),
        danger: true,
        fields: [
          {
            name: 'by',
            label: t('streams.trim.by'),
            value: 'max',
            options: [
              ['max', t('streams.trim.max')],
              ['age', t('streams.trim.age')],
            ],
          },
          { name: 'n', label: t('streams.trim.n'), required: true, value: '', hint: t('streams.trim.hint') },
        ],
        command: (v) => {
          const n = v.n.trim(),
            ms = parseSpan(n);
          if (v.by === 'max') return /^\d+$/.test(n) ? argv('XTRIM', key, 'MAXLEN', n) : t('performance.number');
          return Number.isNaN(ms) ? t('queues.pause.bad') : argv('XTRIM', key, 'MINID', Math.max(0, Math.floor(clock() - ms)));
        },
      });
      if (a) act(a.argv, { quiet: true });
    },
    { small: true },
  );
  const claim = async (/** @type {string[]} */ ids) => {
    const key = row.k,
      g = group;
    const a = await form({
      title: t('streams.claim'),
      text: t('streams.claim.text'),
      fields: [
        {
          name: 'to',
          label: t('streams.claim.to'),
          required: true,
          value: plain(g.consumersRows[0]?.name || { t: '' }) ?? '',
          hint: t('streams.claim.hint'),
        },
        { name: 'idle', label: t('streams.claim.idle'), value: '0' },
      ],
      command: (v) => {
        const ms = v.idle === '0' ? 0 : parseSpan(v.idle);
        if (!v.to || Number.isNaN(ms)) return t(v.to ? 'queues.pause.bad' : 'streams.claim.needs');
        return argv('XCLAIM', key, g.name, v.to, ms, ...ids, 'JUSTID');
      },
    });
    if (a) act(a.argv, { quiet: true });
  };
  const ack = (/** @type {string[]} */ ids) => act(['XACK', row.k, group.name, ...ids], { text: t('streams.ack.text') });
  const ids = () => chosen.map((r) => r.id);

  const consumers = table({
    label: t('streams.consumers'),
    key: (r) => id(r.name),
    fade: false,
    columns: [
      col('name', t('streams.consumer'), (r) => text(r.name), { wide: true, cell: (/** @type {any} */ r) => show(r.name, 100) }),
      col('pending', t('streams.pending'), (r) => r.pending, { num: true, cell: (/** @type {any} */ r) => num(r.pending) }),
      col('idle', t('streams.asked'), (r) => r.idle, {
        num: true,
        cell: (/** @type {any} */ r) => t('queues.ago', { span: span(r.idle) }),
      }),
      col('inactive', t('streams.got'), (r) => r.inactive, {
        num: true,
        minor: true,
        cell: (/** @type {any} */ r) => (r.inactive < 0 ? '–' : t('queues.ago', { span: span(r.inactive) })),
      }),
    ],
    actions: (now) => [
      button(
        'streams.delconsumer',
        t('streams.delconsumer'),
        () =>
          act(['XGROUP', 'DELCONSUMER', row.k, group.name, now().name], {
            danger: true,
            text: t('streams.delconsumer.text', { n: now().pending }),
          }),
        { small: true, danger: true },
      ),
    ],
    empty: () => t('streams.noconsumers'),
  });
  const ackAll = button('streams.ack', t('streams.ack'), () => ack(ids()), { small: true }),
    claimAll = button('streams.claim', t('streams.claim'), () => claim(ids()), { small: true });
  const entries = table({
    label: t('streams.pending'),
    key: (r) => r.id,
    fade: false,
    columns: [
      col('id', 'ID', (r) => r.id, { cell: (/** @type {any} */ r) => h('span', { class: 'mono' }, r.id) }),
      col('consumer', t('streams.consumer'), (r) => text(r.consumer), { wide: true, cell: (/** @type {any} */ r) => show(r.consumer, 80) }),
      col('idle', t('streams.delivered'), (r) => r.idle, {
        num: true,
        cell: (/** @type {any} */ r) => t('queues.ago', { span: span(r.idle) }),
      }),
      col('deliveries', t('queues.deliveries'), (r) => r.deliveries, {
        num: true,
        minor: true,
        cell: (/** @type {any} */ r) => num(r.deliveries),
      }),
    ],
    stack: true,
    select:
      ackAll || claimAll
        ? (rows) => {
            chosen = rows;
            for (const b of [ackAll, claimAll]) if (b) b.hidden = !rows.length;
          }
        : undefined,
    empty: () => t('streams.nopending'),
  });
  const consumerCard = h('section', { class: 'card' }, h('h2', null, t('streams.consumers')), facts, consumers.el);
  const pendingCard = h(
    'section',
    { class: 'card' },
    h('div', { class: 'titlebar' }, h('h2', null, t('streams.pending.title')), ackAll, claimAll),
    entries.el,
    more,
  );
  fill(root, h('p', null, h('a', { href: ctx.link('streams', { db }) }, t('streams.others'))), head, said, tabs, consumerCard, pendingCard);

  const again = live(ctx, 2000, async () => {
    let g = params.get('g'),
      a;
    try {
      a = await get('stream', { db, k, g }, ctx.stop);
      if (g === undefined && a.row.groups.length) {
        g = url(a.row.groups[0].name);
        a = await get('stream', { db, k, g }, ctx.stop);
      }
    } catch (e) {
      if (!(/** @type {any} */ (e).gone)) throw e;
      fill(head, h('h1', null, t('streams.gone')));
      for (const x of [tabs, consumerCard, pendingCard]) x.hidden = true;
      return;
    }
    row = a.row;
    group = row.groups.find((/** @type {any} */ x) => url(x.name) === g) || null;
    fill(
      head,
      h('h1', null, show(row.k, 120)),
      h('span', { class: 'badge' }, t('streams.entries', { n: row.length })),
      h('a', { href: ctx.link('key', { db, k }) }, t('streams.read')),
      h('span', { class: 'grow' }),
      trim,
    );
    for (const x of [consumerCard, pendingCard]) x.hidden = !group;
    tabs.hidden = row.groups.length < 2;
    fill(
      tabs,
      row.groups.map((/** @type {any} */ x) =>
        h(
          'a',
          { href: ctx.link('streams', { db, k, g: url(x.name) }), class: 'badge', 'aria-current': x === group ? 'page' : undefined },
          show(x.name, 40, true),
        ),
      ),
    );
    say(said, missing(a.denied, t) || (row.groups.length ? '' : t('streams.nogroups')));
    if (!group) return;
    const name = text(group.name) || t('bytes.empty');
    say(facts, t('streams.facts', { group: name, lag: group.lag === null ? '–' : num(group.lag), last: group.last }));
    consumers.set(group.consumersRows);
    entries.set(a.pending);
    say(more, a.more ? t('streams.more', { n: a.pending.length }) : '');
  });
}

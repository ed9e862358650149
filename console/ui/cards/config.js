// The card of the configuration on the screen Server: what differs from its default, and all other directives by search.
import { h, fill } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { card, col } from './card.js';
import { form } from '../lib/dialog.js';
import { table } from '../lib/table.js';
import { argv, show, text } from '../lib/bytes.js';
import { t, meanings } from '../lib/i18n.js';

/** @param {import('../app.js').Ctx} ctx */
export function configuration(ctx) {
  /** @type {any[]} */ let rows = [];
  let find = '',
    at = 'changed';
  const value = (/** @type {any} */ r, /** @type {any} */ x) =>
    r.secret ? h('span', { class: 'faint' }, t(r.set ? 'config.secret' : 'config.nosecret')) : show(x, 60);
  async function change(/** @type {any} */ r) {
    const a = await form({
      title: t('config.change.of', { name: r.name }),
      text: r.doc,
      ok: t('confirm.run'),
      fields: [
        {
          name: 'value',
          label: t('key.value'),
          value: text(r.value),
          options: r.choices && r.choices.map((/** @type {string} */ c) => [c, c]),
          hint: t('config.takes', { usage: r.usage, value: text(r.default) || '""' }),
        },
      ],
      command: (v) => argv('CONFIG', 'SET', r.name, v.value),
    });
    if (a && (await run(ctx.db, a.argv, { quiet: true }))) c.again();
  }
  const all = table({
    label: t('config.title'),
    key: (r) => r.name,
    fade: false,
    columns: [
      col('name', t('config.name'), (r) => r.name, {
        cell: (/** @type {any} */ r) => h('span', { class: 'mono' + (r.changed ? ' strong' : '') }, r.name),
      }),
      col('value', t('key.value'), (r) => text(r.value), { wide: true, cell: (/** @type {any} */ r) => value(r, r.value) }),
      col('default', t('config.default'), (r) => text(r.default), {
        minor: true,
        cell: (/** @type {any} */ r) => value({ ...r, set: false }, r.default),
      }),
      col('doc', t('config.doc'), (r) => r.doc, {
        wide: true,
        minor: true,
        sort: false,
        cell: (/** @type {any} */ r) =>
          h(
            'span',
            { class: 'faint' },
            r.ignored ? t('config.ignored', { why: r.ignored }) : r.doc,
            r.from && [' ', h('span', { class: 'from' }, t('config.given', { at: r.from }))],
          ),
      }),
    ],
    actions: (now) => {
      const r = now();
      if (r.ignored || r.secret) return null;
      return r.immutable
        ? h('span', { class: 'faint' }, t('config.immutable'))
        : ctx.button('server.config', t('config.change'), () => change(now()), { small: true });
    },
    empty: () => t(find ? 'config.nofind' : at === 'ignored' ? 'config.noignored' : 'config.nochange'),
  });
  const search = h('input', {
    type: 'search',
    placeholder: t('config.find'),
    'aria-label': t('config.find'),
    spellcheck: 'false',
    on: {
      input: () => {
        find = search.value.toLowerCase().trim();
        paint();
      },
    },
  });
  const tabs = h('span', { class: 'segments' }),
    file = h('span', { class: 'row' });
  const sets = (/** @type {string} */ name) =>
    rows.filter((r) => (name === 'all' ? !r.ignored : name === 'ignored' ? r.ignored && (r.changed || r.from) : r.changed && !r.ignored));
  function paint() {
    fill(
      tabs,
      ['changed', 'all', 'ignored']
        .filter((n) => n !== 'ignored' || sets(n).length > 0)
        .map((n) =>
          h(
            'button',
            {
              type: 'button',
              'aria-pressed': String(n === at && !find),
              on: {
                click: () => {
                  at = n;
                  find = search.value = '';
                  paint();
                },
              },
            },
            t('config.tab.' + n, { n: sets(n).length }),
          ),
        ),
    );
    all.set(find ? rows.filter((r) => [r.name, r.doc, r.english].join(' ').toLowerCase().includes(find)) : sets(at));
  }
  const c = card(ctx, {
    title: t('config.title'),
    ms: 10000,
    tools: [tabs, search, h('span', { class: 'grow' }), file],
    body: all.el,
    read: async () => {
      const [a, say] = await Promise.all([get('config', {}, ctx.stop), meanings()]);
      rows = a.rows.map((/** @type {any} */ r) => ({
        ...r,
        english: r.doc,
        doc: say(r.doc),
        usage: say(r.usage),
        ignored: r.ignored && say(r.ignored),
        from: say(text(r.given)),
      }));
      tabs.hidden = search.hidden = !rows.length;
      all.el.hidden = !rows.length;
      fill(
        file,
        a.file && [
          h('span', { class: 'faint mono bytes' }, a.file),
          ctx.button('server.rewrite', t('config.rewrite'), () => run(ctx.db, ['CONFIG', 'REWRITE'], { text: t('config.rewrite.text') }), {
            small: true,
          }),
        ],
      );
      paint();
      return a.denied;
    },
  });
  return c.el;
}

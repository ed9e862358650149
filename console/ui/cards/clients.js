// The card of the clients on the screen Server.
import { h, setText, searchBox } from '../lib/h.js';
import { get } from '../lib/api.js';
import * as column from '../lib/column.js';
import { commandButton } from '../lib/command-button.js';
import { table } from '../lib/table.js';
import { card } from './card.js';
import { show } from '../lib/bytes.js';
import { t, span } from '../lib/i18n.js';

/** @import { ClientRow, Column, Ctx } from '../lib/types.js' */

/** @param {'age'|'idle'} name @param {Partial<Column<ClientRow>>} [more] @returns {Column<ClientRow>} */
const seconds = (name, more) =>
  column.of(name, t('server.' + name), (r) => r[name], {
    num: true,
    cell: (r) => (r[name] ? span(r[name] * 1000) : t('unit.s', { n: 0 })),
    ...more,
  });

/** A column for a text that clients set. @param {string} id @param {string} label @param {(r: ClientRow) => string} value
 * @param {Partial<Column<ClientRow>>} [more] @returns {Column<ClientRow>} */
const chosen = (id, label, value, more) =>
  column.of(id, label, value, { minor: true, cell: (r) => (value(r) ? show({ t: value(r) }, 40, true) : ''), ...more });

/** @returns {Column<ClientRow>[]} */
const columns = () => [
  column.of('id', 'ID', (r) => r.id, { num: true, minor: true }),
  column.code('addr', t('server.addr'), (r) => r.addr, { wide: true }),
  chosen('name', t('keys.name'), (r) => r.name),
  column.name('user', t('server.user'), (r) => r.user),
  column.of('db', 'db', (r) => r.db, { num: true, minor: true }),
  chosen('cmd', t('performance.command'), (r) => r.cmd, { minor: false }),
  seconds('age', { minor: true }),
  seconds('idle'),
  column.bytes('mem', t('keys.bytes'), (r) => r.mem, { minor: true }),
  chosen('lib', t('server.lib'), (r) => [r.lib, r.libVer].filter(Boolean).join(' ')),
];

/** @param {Ctx} ctx */
export function clients(ctx) {
  let by = 'id',
    finding = ctx.params.get('find') || '',
    isAsked = !!finding;
  const more = h('p', { class: 'faint' }),
    search = searchBox(
      t('server.clients.find'),
      (s) => {
        finding = s.trim();
        again();
      },
      { live: true, value: finding },
    );
  const rows = table({
    label: t('server.clients'),
    key: (r) => String(r.id),
    fade: false,
    sort: ['id', 1],
    sorted: (s) => {
      by = s;
      again();
    },
    columns: columns(),
    actions: (now) =>
      commandButton(
        ctx,
        'server.kill',
        t('server.kill'),
        () => ['CLIENT', 'KILL', 'ID', now().id],
        () => again(),
        {
          danger: true,
          unchanged: t('server.killed'),
        },
      ),
    empty: () => t(finding ? 'keys.nomatch' : 'server.noclients'),
  });
  const { el, again } = card(ctx, {
    title: t('server.clients'),
    ms: 2000,
    tools: search,
    body: [rows.el, more],
    read: async () => {
      const a = await get('clients', { find: finding, sort: by }, ctx.stop);
      rows.el.hidden = search.hidden = !!a.denied;
      rows.set(a.rows);
      if (isAsked) el.scrollIntoView();
      isAsked = false;
      setText(more, a.more ? t('list.first', { n: a.rows.length, all: a.looked }) : '');
      return a.denied;
    },
  });
  return el;
}

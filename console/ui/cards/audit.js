// The cards of the screen Server about refused requests, and about the commands that the console ran.
import { h } from '../lib/h.js';
import { clock, get } from '../lib/api.js';
import * as column from '../lib/column.js';
import { commandButton } from '../lib/command-button.js';
import { card } from './card.js';
import { table } from '../lib/table.js';
import { line, show, text } from '../lib/bytes.js';
import { t, span, time, date } from '../lib/i18n.js';

/** @import { AclLogRow, AuditRow, Column, Ctx } from '../lib/types.js' */

/** How many requests the card shows. */
const MAX_ROWS = 100;

/** @param {AclLogRow} r */
const refusedCell = (r) => (r.reason === 'auth' ? t('acllog.auth') : [t('acllog.' + r.reason), ' ', show(r.object, 80)]);

/** @param {() => number} now the time of the answer @returns {Column<AclLogRow>[]} */
const refusalColumns = (now) => [
  column.of('last', t('acllog.last'), (r) => r.last, {
    cell: (r) => h('span', { title: date(r.last) }, t('time.ago', { span: span(Math.max(0, now() - r.last)) })),
  }),
  column.name('user', t('server.user'), (r) => r.user, {}, 40),
  column.of('what', t('acllog.what'), (r) => r.reason + ' ' + text(r.object), { wide: true, cell: refusedCell }),
  column.number('count', t('acllog.count'), (r) => r.count),
  column.code('addr', t('server.addr'), (r) => r.addr, { minor: true }),
];

/** @param {Ctx} ctx */
export function refusals(ctx) {
  let now = 0;
  const rows = table({
    label: t('acllog.title'),
    stack: true,
    key: (r) => String(r.id),
    fade: false,
    columns: refusalColumns(() => now),
    empty: () => t('acllog.none'),
  });
  const reset = commandButton(
    ctx,
    'server.aclreset',
    t('acllog.reset'),
    () => ['ACL', 'LOG', 'RESET'],
    () => again(),
    { danger: true },
  );
  const { el, again } = card(ctx, {
    title: t('acllog.title'),
    text: t('acllog.text'),
    ms: 5000,
    tools: [h('span', { class: 'grow' }), reset],
    body: rows.el,
    read: async () => {
      const a = await get('acllog', {}, ctx.stop);
      now = clock();
      rows.el.hidden = !!a.denied;
      rows.set(a.rows);
      if (reset) reset.hidden = !a.rows.length;
      return a.denied;
    },
  });
  return el;
}

/** @returns {Column<AuditRow>[]} */
const auditColumns = () => [
  column.of('at', t('performance.at'), (r) => r.at, { cell: (r) => h('span', { title: date(r.at) }, time(r.at)) }),
  column.name('user', t('server.user'), (r) => r.user, {}, 40),
  column.of('argv', t('performance.command'), (r) => line(r.argv), {
    wide: true,
    sort: false,
    cell: (r) => r.argv.map((a, i) => [i ? ' ' : '', show(a, 60)]),
  }),
  column.of('result', t('audit.result'), (r) => r.result, {
    minor: true,
    wide: true,
    cell: (r) => h('span', { class: r.refused ? 'look' : 'faint' }, r.result),
  }),
  column.code('addr', t('server.addr'), (r) => r.addr, { minor: true }),
];

/** @param {Ctx} ctx */
export function audit(ctx) {
  const rows = table({
    label: t('audit.title'),
    stack: true,
    key: (r) => r.at + r.addr + JSON.stringify(r.argv),
    fade: false,
    columns: auditColumns(),
    empty: () => t('audit.none'),
  });
  return card(ctx, {
    title: t('audit.title'),
    text: t('audit.text'),
    ms: 2000,
    body: rows.el,
    read: async () => {
      rows.el.hidden = !ctx.me.can['server.audit'];
      if (rows.el.hidden) return ['ACL LOG'];
      rows.set((await get('audit', {}, ctx.stop)).rows.slice(0, MAX_ROWS));
    },
  }).el;
}

// Server: its identity, its group, replication, files, clients, configuration and users, and every field of INFO.
import { h, fill, setText, searchBox } from '../lib/h.js';
import { get, refusal } from '../lib/api.js';
import * as column from '../lib/column.js';
import { table } from '../lib/table.js';
import { poll } from '../lib/poll.js';
import { isHandledByPage, jumps, property, refused } from '../cards/card.js';
import { audit, refusals } from '../cards/audit.js';
import { clients } from '../cards/clients.js';
import { configuration } from '../cards/config.js';
import { files } from '../cards/files.js';
import { group } from '../cards/group.js';
import { replication } from '../cards/replication.js';
import { users } from '../cards/users.js';
import { t, num, size, span } from '../lib/i18n.js';

/** @import { Child, Column, Ctx, ServerAnswer } from '../lib/types.js' */
/** @typedef {{section: string, name: string, value: string}} Field of INFO */

export const title = 'server.title';
/** The sections of INFO that other screens show. */
const OTHER_SCREENS = ['commandstats', 'latencystats', 'errorstats'];
/** Differences of the clocks, us. Below the first one the page shows none; from the second one on the clock needs attention. */
const CLOCK_OFFSET = { least: 1000, look: 1e6 };

/** @returns {Column<Field>[]} */
const columns = () => [
  column.of('section', t('server.section'), (r) => r.section, { minor: true }),
  column.of('name', t('server.field'), (r) => r.name, { cell: (r) => h('span', { class: 'mono any' }, r.name) }),
  column.of('value', t('key.value'), (r) => r.value, { wide: true, cell: (r) => h('span', { class: 'mono any' }, r.value) }),
];

/** The difference between the machine's clock and the server's. @param {Record<string, string>} expiry */
function clockProperty(expiry) {
  const offset = Number(expiry.clock_offset_us) || 0,
    words = span(Math.abs(offset) < CLOCK_OFFSET.least ? 0 : offset / 1000);
  return expiry.clock_offset_us !== undefined && property(t('server.clock'), words, Math.abs(offset) > CLOCK_OFFSET.look ? 'look' : '');
}

/** @param {ServerAnswer['info']} info @returns {Child[]} */
function properties({ server = {}, replication: repl = {}, memory = {}, expiry = {} }) {
  const limit = Number(memory.maxmemory) ? ' / ' + size(Number(memory.maxmemory)) : '';
  return [
    property(t('server.version'), server.ebb_version || server.redis_version),
    property(t('server.uptime'), span(Number(server.uptime_in_seconds) * 1000)),
    property(t('server.memory'), size(Number(memory.used_memory)) + limit),
    property(t('server.rss'), size(Number(memory.used_memory_rss))),
    property(t('server.role'), t(repl.role === 'slave' ? 'role.replica' : 'role.master')),
    property(t('server.replicas'), num(Number(repl.connected_slaves))),
    clockProperty(expiry),
    Number(expiry.clock_steps) > 0 && property(t('server.steps'), num(Number(expiry.clock_steps)), 'look'),
  ];
}

/** @param {ServerAnswer['info']} info @returns {Field[]} */
const fieldsOf = (info) =>
  Object.entries(info)
    .filter(([section]) => !OTHER_SCREENS.includes(section))
    .flatMap(([section, fields]) => Object.entries(fields).map(([name, value]) => ({ section, name, value })));

/** @param {HTMLElement} root @param {Ctx} ctx */
export function open(root, ctx) {
  const facts = h('dl', { class: 'facts' }),
    why = h('p', { class: 'faint' }),
    info = table({ label: 'INFO', key: (r) => r.section + '.' + r.name, fade: false, stack: true, columns: columns() });
  /** @type {Field[]} */
  let fields = [];
  let finding = '';
  const paint = () => info.set(fields.filter((r) => (r.section + ' ' + r.name).toLowerCase().includes(finding)));
  const search = searchBox(
    t('server.find'),
    (s) => {
      finding = s.toLowerCase();
      paint();
    },
    { live: true },
  );
  const factCard = h('section', { class: 'card' }, facts),
    infoCard = h('section', { class: 'card tall' }, h('div', { class: 'titlebar' }, h('h2', null, 'INFO'), search), info.el),
    members = ctx.me.grouped ? [group(ctx)] : [],
    pair = [replication(ctx), files(ctx)],
    cards = [clients(ctx), configuration(ctx), users(ctx), refusals(ctx), audit(ctx), infoCard];
  fill(
    root,
    h('div', { class: 'titlebar' }, h('h1', null, t('server.title'))),
    jumps([...members, ...pair, ...cards]),
    why,
    factCard,
    members,
    h('div', { class: 'cols' }, pair),
    cards,
  );
  poll(ctx, 2000, async () => {
    try {
      const a = await get('server', {}, ctx.stop);
      factCard.hidden = !!a.denied;
      refused(infoCard, a.denied || []);
      if (!a.denied) fill(facts, properties(a.info));
      fields = fieldsOf(a.info);
      paint();
      setText(why, '');
    } catch (e) {
      if (isHandledByPage(e)) throw e;
      setText(why, refusal(e)); // the other cards continue
    }
  });
}

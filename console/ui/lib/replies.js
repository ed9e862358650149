// Replies of commands as elements. A map of RESP3 becomes a table.
import { show } from './bytes.js';
import { h } from './h.js';
import { t } from './i18n.js';

/** @import { Child, Resp } from './types.js' */
/** @typedef {[Resp, Resp][]} Pairs */

/** A table shows up to this many pairs; a longer reply is shown as text. */
const MAX_PAIRS = 1000;

/** The pairs of a map; undefined for other replies. @param {Resp} reply */
const pairsOf = (reply) => (reply && typeof reply === 'object' && !Array.isArray(reply) ? reply.map : undefined);

/** The contents of a cell for a reply. @param {Resp} reply @returns {Child} */
function cell(reply) {
  if (reply === null) return h('span', { class: 'faint' }, '(nil)');
  if (typeof reply !== 'object') return String(reply);
  if (Array.isArray(reply)) return reply.map((x) => h('div', null, cell(x)));
  const { map, set, v } = reply,
    plain = reply.i ?? reply.s ?? reply.e ?? reply.d ?? reply.big;
  if (plain !== undefined) return h('span', { class: 'mono' }, String(plain));
  if (map) return mapTable(map);
  return set ? cell(set) : show(v || reply, 400);
}

/** @param {Pairs} pairs */
function mapTable(pairs) {
  if (!pairs.length) return h('span', { class: 'faint' }, t('bytes.empty'));
  const rows = pairs.map(([name, value]) => h('tr', null, h('th', { scope: 'row' }, cell(name)), h('td', { class: 'wide' }, cell(value))));
  return h('table', { class: 'map' }, h('tbody', null, rows));
}

/** A map, or a list of maps, as tables; null for other replies. @param {Resp} reply */
export function mapTables(reply) {
  const maps = (Array.isArray(reply) ? reply : [reply]).map(pairsOf),
    n = maps.reduce((sum, m) => sum + (m ? m.length : Infinity), 0);
  return maps.length && n <= MAX_PAIRS
    ? h(
        'div',
        { class: 'table' },
        maps.map((m) => m && mapTable(m)),
      )
    : null;
}

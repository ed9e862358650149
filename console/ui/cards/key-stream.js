// The properties of a key on the screen Key, and the groups and entries of a stream.
import { argv, id, line, show, text } from '../lib/bytes.js';
import * as column from '../lib/column.js';
import { clock } from '../lib/api.js';
import { toast } from '../lib/dialog.js';
import { h, searchBox, section } from '../lib/h.js';
import { t, has, date, parseSpan } from '../lib/i18n.js';
import { table } from '../lib/table.js';

/** @import { B, Child, Column, ConsumerRow, Ctx, Entry, Fact, Facts, GroupRow, ViewStreamAnswer } from '../lib/types.js' */

/** @param {Fact} x @returns {x is B} */
const isBytes = (x) => typeof x === 'object' && x !== null && !Array.isArray(x) && ('t' in x || 'b' in x);

/** The text for a property. @param {Fact} x @returns {Child} */
function factWords(x) {
  if (x === null || x === undefined) return '–';
  if (Array.isArray(x)) return x.map((y, i) => [i ? ', ' : '', factWords(y)]);
  if (isBytes(x)) return show(x);
  if (typeof x === 'object') return Object.entries(x).map(([name, y], i) => [i ? ', ' : '', name, ' ', factWords(y)]);
  return String(x);
}

/** A card with the reply of a command such as XINFO. @param {Facts} info */
export const factsCard = (info) =>
  section(
    t('key.raw'),
    h(
      'dl',
      { class: 'facts' },
      Object.entries(info)
        .filter(([name]) => name !== 'holders' && name !== 'line')
        .map(([name, x]) =>
          h('div', null, h('dt', null, has('key.info.' + name) ? t('key.info.' + name) : name), h('dd', null, factWords(x))),
        ),
    ),
  );

/** @returns {Column<GroupRow>[]} */
const groupColumns = () => [
  column.name('name', t('key.group.name'), (r) => r.name),
  column.number('consumers', t('key.group.consumers'), (r) => r.consumers),
  column.number('pending', t('key.group.pending'), (r) => r.pending),
  column.number('lag', t('key.group.lag'), (r) => r.lag),
  column.of('last', t('key.group.last'), (r) => r.last, { num: true }),
];

/** @returns {Column<ConsumerRow>[]} */
const consumerColumns = () => [
  column.name('name', t('key.group.name'), (r) => r.name),
  column.number('pending', t('key.group.pending'), (r) => r.pending),
  column.duration('idle', t('key.group.idle'), (r) => r.idle),
  column.duration('inactive', t('key.group.inactive'), (r) => r.inactive),
];

/** @param {GroupRow[]} groups */
function groupsCard(groups) {
  const key = (/** @type {{name: B}} */ r) => id(r.name),
    consumers = groups
      .filter((g) => g.consumersRows?.length)
      .map((g) => [
        h('h3', null, show(g.name, 60)),
        table({ label: text(g.name), rows: g.consumersRows, key, fade: false, columns: consumerColumns() }).el,
      ]);
  return section(t('key.groups'), table({ label: t('key.groups'), rows: groups, key, fade: false, columns: groupColumns() }).el, consumers);
}

/**
 * The fields of an entry. If there are many, the first ones, and the command that shows all.
 * @param {Ctx} ctx @param {B} key @param {Entry} r
 */
const fieldsCell = (ctx, key, r) => [
  r.fields.map(([name, value]) => h('div', null, h('span', { class: 'faint' }, show(name, 60)), ' ', show(value, 200))),
  r.more !== undefined &&
    h('a', { href: ctx.link('shell', { line: line(argv('XRANGE', key, r.id, r.id)) }) }, t('key.morefields', { n: r.more })),
];

/** @param {Ctx} ctx @param {B} key @returns {Column<Entry>[]} */
const entryColumns = (ctx, key) => [
  column.of('id', 'ID', (r) => r.id, { cell: (r) => h('span', { class: 'mono', title: date(Number(r.id.split('-')[0])) }, r.id) }),
  column.of('fields', t('level.field'), (r) => r.fields.map(([name, value]) => text(name) + '=' + text(value)).join(' '), {
    wide: true,
    sort: false,
    cell: (r) => fieldsCell(ctx, key, r),
  }),
];

/** Parses an end of a range: an ID, or an age such as 1h. Returns null for any other text. @param {string} s */
function idOf(s) {
  const ms = parseSpan(s);
  if (!s || /^\d+(-\d+)?$/.test(s)) return s;
  return Number.isNaN(ms) ? null : String(Math.max(0, Math.floor(clock() - ms)));
}

/** Converts a typed range such as 1h..10m to the API's range of IDs. Returns null for any other text. @param {string} s */
function rangeOf(s) {
  const [first, last = ''] = s.split('..').map((x) => idOf(x.trim()));
  return first === null || last === null ? null : first || last ? first + '..' + last : '';
}

/** A field for the range of entries. @param {(range: string) => void} set */
export const rangeBox = (set) =>
  searchBox(t('key.range'), (s) => {
    const range = rangeOf(s);
    if (range === null) toast(t('key.range.bad'), 'bad');
    else set(range);
  });

/**
 * The cards of a stream. turn: the function that turns the pages, or false if there is only one. range: a field for the range of the
 * entries.
 * @param {Ctx} ctx
 * @param {B} key
 * @param {ViewStreamAnswer} stream
 * @param {{back: false|(() => void), next: false|(() => void)}} turn
 * @param {HTMLInputElement} range
 */
export function streamBody(ctx, key, stream, turn, range) {
  const entries = table({
    label: t('key.entries'),
    rows: stream.rows,
    key: (r) => r.id,
    fade: false,
    columns: entryColumns(ctx, key),
    empty: () => t(range.value ? 'keys.nomatch' : 'key.noitems'),
  });
  return [
    factsCard(stream.info || {}),
    stream.groups && stream.groups.length > 0 && groupsCard(stream.groups),
    section(
      null,
      h('div', { class: 'titlebar' }, h('h2', null, t('key.entries')), range),
      entries.el,
      h(
        'div',
        { class: 'row' },
        turn.back && h('button', { type: 'button', on: { click: turn.back } }, t('key.back')),
        turn.next && h('button', { type: 'button', on: { click: turn.next } }, t('key.next')),
      ),
    ),
  ];
}

// Expiry: the number of keys and items that will expire and when, how punctual expirations were, and the latest ones.
import { h, fill, searchBox, section } from '../lib/h.js';
import { run } from '../lib/api.js';
import { form } from '../lib/dialog.js';
import { changeMany } from '../lib/bulk-actions.js';
import { forecastCard } from '../cards/forecast.js';
import { expiredCard, heatCard, lagCard, LEVELS } from '../cards/expired.js';
import { nextCard } from '../cards/next-expiry.js';
import { argv } from '../lib/bytes.js';
import { t } from '../lib/i18n.js';

/** @import { Ctx, Field } from '../lib/types.js' */
/** @import { Unit } from '../lib/i18n.js' */

export const title = 'expiry.title';
/** @type {Unit[]} */
const SPANS = ['minute', 'hour', 'day', 'month'];

/** @param {string} match @returns {Field[]} */
const ruleFields = (match) => [
  { name: 'name', label: t('expiry.rule.name'), value: '', required: true },
  { name: 'match', label: t('keys.match'), value: match || '*' },
  {
    name: 'level',
    label: t('expiry.level'),
    options: [['', t('expiry.levels')], ...[...LEVELS, 'fresh'].map((l) => /** @type {[string, string]} */ ([l, t('level.' + l)]))],
  },
  { name: 'to', label: t('expiry.rule.to'), value: 'expired' },
  { name: 'queue', label: t('expiry.rule.queue'), type: 'check' },
  { name: 'max', label: 'MAXLEN', type: 'number', min: 1, value: '100000' },
  { name: 'value', label: t('expiry.rule.value'), type: 'check' },
];

/** @param {Record<string, string>} v */
function ruleCommand(v) {
  if (!v.name || !v.to) return t('expiry.rule.bad');
  const level = v.level ? ['LEVEL', v.level.toUpperCase()] : [],
    to = v.queue ? ['QUEUE', v.to] : [v.to, ...(v.max ? ['MAXLEN', '~', v.max] : [])];
  return argv('EXPIRY', 'RULE', 'SET', v.name, 'MATCH', v.match || '*', ...level, 'TO', ...to, ...(v.value ? ['WITHVALUE'] : []));
}

/** Asks for an expiry rule, and sets it. @param {number} db @param {string} match */
async function setRule(db, match) {
  const a = await form({ title: t('expiry.rule'), text: t('expiry.rule.text'), fields: ruleFields(match), command: ruleCommand });
  if (a) run(db, a.argv, { quiet: true });
}

/** @param {HTMLElement} root @param {Ctx} ctx */
export function open(root, ctx) {
  const { db, params } = ctx,
    match = params.get('match') || '',
    unit = SPANS.find((s) => s === params.get('span')) || 'minute';
  /** @param {Record<string, string>} more */
  const move = (more) => ctx.go('expiry', { db, ...Object.fromEntries(params), ...more });
  const next = nextCard(ctx, match, unit),
    forecast = forecastCard(ctx, match, unit, next.choose),
    expired = expiredCard(ctx, match),
    lag = lagCard(ctx, expired.tell);
  /** A button that changes all matching keys. @param {string} verb */
  const many = (verb) =>
    match &&
    ctx.button('expiry.' + verb, t('bulk.' + verb), async () => {
      if (await changeMany({ db, verb, match })) forecast.read();
    });
  const spans = SPANS.map((s) =>
    h('button', { type: 'button', 'aria-pressed': String(s === unit), on: { click: () => move({ span: s }) } }, t('expiry.' + s)),
  );
  fill(
    root,
    h(
      'div',
      { class: 'titlebar' },
      h('h1', null, t('expiry.title')),
      h('span', { class: 'segments' }, spans),
      searchBox(t('keys.match'), (text) => move({ match: text }), { value: match }),
      many('prolong'),
      many('persist'),
      h('span', { class: 'grow' }),
      ctx.button('expiry.rule', t('expiry.rule'), () => setRule(db, match)),
    ),
    forecast.el,
    next.el,
    h('div', { class: 'cols' }, section(t('expiry.ontime'), lag.el), expired.el),
    heatCard(ctx, match),
  );
  const read = () => {
    forecast.read();
    next.read();
    lag.read();
  };
  read();
  const every = setInterval(
    () => {
      if (!document.hidden) read();
    },
    unit === 'minute' ? 5000 : 30_000,
  );
  ctx.onClose(() => clearInterval(every));
}

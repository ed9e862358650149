// The dialog for a new key.
import { isIdle, run, runAll } from '../lib/api.js';
import { argv, fromText } from '../lib/bytes.js';
import { form } from '../lib/dialog.js';
import { parseSpan, t } from '../lib/i18n.js';

/** @import { B } from '../lib/types.js' */

/** The types of keys that the dialog can create. */
const TYPES = ['string', 'hash', 'list', 'set', 'zset', 'stream'];

/** The command that creates a container with its first item, or a string that describes a mistake. @param {Record<string, string>} v */
function firstItem(v) {
  const k = fromText(v.k),
    value = fromText(v.v),
    field = fromText(v.f);
  switch (v.type) {
    case 'hash':
      return v.f ? argv('HSETNX', k, field, value) : t('keys.new.field.bad.hash');
    case 'stream':
      return v.f ? argv('XADD', k, '*', field, value) : t('keys.new.field.bad.stream');
    case 'zset':
      return v.n && !Number.isNaN(Number(v.n)) ? argv('ZADD', k, 'NX', fromText(v.n), value) : t('keys.new.field.bad.zset');
    case 'list':
      return argv('RPUSH', k, value);
    default:
      return argv('SADD', k, value);
  }
}

/** The commands that create the key, or a string that describes a mistake. @param {Record<string, string>} v @returns {B[]|B[][]|string} */
function commands(v) {
  const ms = v.s ? parseSpan(v.s) : 0,
    k = fromText(v.k);
  if (!v.k) return t('key.newname.bad');
  if (v.s && !(ms > 0)) return t('bulk.span.bad');
  if (v.type === 'string') return argv('SET', k, fromText(v.v), 'NX', ...(ms ? ['PX', ms] : []));
  const first = firstItem(v);
  if (typeof first === 'string') return first;
  return ms ? [first, argv('PEXPIRE', k, ms)] : [first];
}

/**
 * Asks for a new key and creates it. Returns its name, or null if it was not created.
 * @param {number} db @param {string} base begins the name
 */
export async function askNewKey(db, base) {
  const a = await form({
    title: t('keys.new'),
    fields: [
      { name: 'k', label: t('keys.name'), value: base, required: true, hint: t('keys.new.name.hint') },
      { name: 'type', label: t('keys.type'), options: TYPES.map((x) => /** @type {[string, string]} */ ([x, x])), value: 'string' },
      { name: 'f', label: t('keys.new.field'), value: '', when: (v) => v.type === 'hash' || v.type === 'stream' },
      { name: 'n', label: t('key.score'), value: '0', when: (v) => v.type === 'zset' },
      { name: 'v', label: t('key.value'), type: 'area', rows: 3, value: '' },
      { name: 's', label: t('bulk.span'), value: '', hint: t('keys.new.span.hint') },
    ],
    command: commands,
  });
  if (!a) return null;
  const taken = t('key.taken'),
    k = fromText(a.values.k);
  if (a.values.type === 'string') {
    const r = await run(db, /** @type {B[]} */ (a.argv), { quiet: true, unchanged: taken });
    return r && !isIdle(r.reply) ? k : null;
  }
  const expect = /** @type {import('../lib/api.js').Expect[]} */ ([[['EXISTS', k], '']]);
  return (await runAll(db, /** @type {B[][]} */ (a.argv), { quiet: true, expect, changed: taken })) ? k : null;
}

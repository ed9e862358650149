// A string on the screen Key: formats in which to read it, and a form to change it.
import { get, isIdle, run } from '../lib/api.js';
import { argv, bytes, copier, editor, fromBytes, plain, short, text, url } from '../lib/bytes.js';
import { form } from '../lib/dialog.js';
import { bits, gunzip, hex, msgpack, pretty } from '../lib/formats.js';
import { h, setText, section } from '../lib/h.js';
import { t } from '../lib/i18n.js';

/** @import { B, Ctx, ViewStringAnswer } from '../lib/types.js' */

/** How many bytes the bit view shows. */
const MAX_BIT_BYTES = 8192;

/** The formats in which the page can show a value. @type {Record<string, (v: B) => string|Promise<string>>} */
const FORMATS = {
  text: (v) => plain(v) ?? text(v),
  json: (v) => pretty(plain(v) ?? text(v)),
  hex: (v) => hex(bytes(v)),
  msgpack: (v) => msgpack(bytes(v)),
  gzip: async (v) => text(fromBytes(await gunzip(bytes(v)))),
  bits: (v) => bits(bytes(v).subarray(0, MAX_BIT_BYTES)),
};

/** The initial format of a value. @param {B} v @param {boolean} cut */
function firstWay(v, cut) {
  if (v.b !== undefined) {
    const [first, second] = bytes(v);
    if (first === 0x1f && second === 0x8b) return 'gzip';
  }
  return /^\s*[[{]/.test(plain(v) ?? '') && !cut ? 'json' : 'text';
}

/** A value, and a choice of its format. @param {B} v @param {boolean} cut the page has a part of it */
export function viewer(v, cut) {
  const box = h('pre', { class: 'value', tabIndex: 0 });
  /** @param {string} way */
  async function read(way) {
    for (const b of buttons) b.setAttribute('aria-pressed', String(b.getAttribute('data-way') === way));
    try {
      setText(box, await FORMATS[way](v));
    } catch (e) {
      setText(box, t('key.way.failed', { way: t('key.way.' + way) }) + ' ' + /** @type {Error} */ (e).message);
    }
  }
  const buttons = Object.keys(FORMATS).map((way) =>
    h('button', { type: 'button', 'data-way': way, on: { click: () => void read(way) } }, t('key.way.' + way)),
  );
  read(firstWay(v, cut));
  return h(
    'div',
    null,
    h(
      'div',
      { class: 'row' },
      h('span', { class: 'segments' }, buttons),
      copier(() => plain(v) ?? text(v)),
    ),
    cut && h('p', { class: 'look' }, t('key.cut')),
    box,
  );
}

/** The hint of the form: an initial one, or, after another client's change, that the typed text stays. @param {B|undefined} [now] */
export const editWords = (now) => (now ? t('key.set.again', { value: short(now, 120) || t('bytes.empty') }) : t('key.set.text'));

/**
 * The present value of a key, with its digest; null if it is not a string, or the page does not have all of it.
 * @param {Ctx} ctx @param {B} key
 */
async function latest(ctx, key) {
  const view = await get('key', { db: ctx.db, k: url(key) }, ctx.stop).catch(() => null),
    string = view?.type === 'string' && view.body && 'v' in view.body ? view.body : null;
  return view && string && editor(string.v) ? { string, digest: view.digest } : null;
}

/**
 * Asks for a new value, and sets it if the key still has the value that the form showed. Otherwise the form appears again with the typed
 * text. Returns whether the value has changed.
 * @param {Ctx} ctx
 * @param {B} key
 * @param {ViewStringAnswer} first
 * @param {string|undefined} firstDigest
 */
async function edit(ctx, key, first, firstDigest) {
  const x = editor(first.v),
    typed = { v: x?.value, keep: true };
  let string = first,
    digest = firstDigest,
    words = editWords();
  while (x) {
    const a = await form({
      title: t('key.set'),
      text: words,
      fields: [
        { name: 'v', label: t('key.value'), type: 'area', value: typed.v, hint: x.hint, rows: 12 },
        { name: 'keep', label: t('key.keepttl'), type: 'check', value: typed.keep },
      ],
      command: (f) => {
        const value = x.read(f.v);
        if (typeof value === 'string') return value;
        return argv('SET', key, value, ...(digest ? ['IFDEQ', digest] : ['XX']), ...(f.keep ? ['KEEPTTL'] : []));
      },
    });
    if (!a) return false;
    const o = { quiet: true, unchanged: t('key.changed.meanwhile') },
      r = await run(ctx.db, a.argv, digest ? o : { ...o, expect: [[['GET', key], string.seen || '']] });
    if (r && !isIdle(r.reply)) return true;
    const now = await latest(ctx, key);
    if (!now || ctx.stop.aborted) return false;
    Object.assign(typed, { v: a.values.v, keep: !!a.values.keep });
    words = editWords(now.string.seen === string.seen ? undefined : now.string.v);
    ({ string, digest } = now);
  }
  return false;
}

/**
 * The card of a string. changed is called after an edit.
 * @param {Ctx} ctx
 * @param {B} key
 * @param {ViewStringAnswer} string
 * @param {string|undefined} digest
 * @param {() => void} changed
 */
export function stringBody(ctx, key, string, digest, changed) {
  const { v, len } = string,
    change = async () => {
      if (await edit(ctx, key, string, digest)) changed();
    };
  return section(
    null,
    h(
      'div',
      { class: 'titlebar' },
      h('h2', null, t('key.value'), ' ', h('small', null, t('key.len', { n: len ?? v.n ?? bytes(v).length }))),
      editor(v) && ctx.button('key.set', t('key.edit'), change),
    ),
    v.t === undefined ? h('p', { class: 'faint' }, t('key.hidden')) : viewer(v, v.n !== undefined),
  );
}

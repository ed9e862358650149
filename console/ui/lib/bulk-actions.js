// One change to many keys: a preview, then batches of 500 with progress and a stop.
import { h, fill, say } from './h.js';
import { get, post } from './api.js';
import { dialog, form, toast } from './dialog.js';
import { argv, line, show, text } from './bytes.js';
import { t, parseSpan } from './i18n.js';

/** @typedef {import('./bytes.js').B} B */
/** How many pages without a key the preview passes over, about 50 ms each. */
const LOOKS = 100;
/** The verbs: the argv for a key. @type {Map<string, (k: B, ms: number) => B[]>} */
const VERBS = new Map([
  ['del', (k) => argv('UNLINK', k)],
  ['persist', (k) => argv('PERSIST', k)],
  ['ttl', (k, ms) => argv('PEXPIRE', k, ms)],
  ['prolong', (k, ms) => argv('PEXPIRE', k, ms, 'GT')],
]);

/**
 * Asks, shows the first 20 keys, and runs the verb (del, persist, ttl, prolong) on keys, or on all keys that match and that the filters
 * of type and ttl let pass. Answers how many keys it changed.
 * @param {{db: number, verb: string, keys?: B[], match?: string, prefix?: string, type?: string, ttl?:
 *   string}} o prefix: of keys whose names are no text, as url; match then names them
 */
export async function bulk(o) {
  const make = /** @type {(k: B, ms: number) => B[]} */ (VERBS.get(o.verb));
  let ms = 0;
  if (o.verb === 'ttl' || o.verb === 'prolong') {
    const a = await form({
      title: t('bulk.' + o.verb),
      fields: [{ name: 'span', label: t('bulk.span'), value: '1h', hint: t('bulk.span.hint') }],
      ok: t('bulk.next'),
      command: (v) => (parseSpan(v.span) > 0 ? make({ t: 'key' }, parseSpan(v.span)) : t('bulk.span.bad')),
    });
    if (!a) return 0;
    ms = parseSpan(a.values.span);
  }
  const filters = { db: o.db, match: o.prefix ? '' : o.match, prefix: o.prefix, type: o.type, ttl: o.ttl || 'any' };
  /** @type {any} */ let page = { rows: (o.keys || []).map((k) => ({ k })), done: true };
  // A page without rows is no end: the keys that pass the filters may be far on.
  for (let cursor = '0', looks = 0; !o.keys && looks < LOOKS; looks++) {
    page = await get('keys', { ...filters, cursor, limit: 20 }).catch((e) => {
      toast(e.message, 'bad');
      return null;
    });
    if (!page || page.done || page.rows.length) break;
    cursor = page.cursor;
  }
  if (!page) return 0;
  if (!page.rows.length && page.done) {
    toast(t('bulk.none'));
    return 0;
  }
  const typed = o.match || '',
    input = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', 'aria-label': t('confirm.type', { text: typed }) });
  const sure = await dialog({
    title: t('bulk.' + o.verb),
    ok: t('confirm.run'),
    danger: o.verb === 'del',
    body: [
      h(
        'p',
        null,
        o.keys ? t('bulk.count', { n: o.keys.length }) : t('bulk.match'),
        ' ',
        o.match && h('strong', { class: 'mono' }, o.match),
      ),
      o.type && h('p', null, t('bulk.type'), ' ', h('strong', null, o.type)),
      o.ttl && h('p', null, t('bulk.ttl.of'), ' ', h('strong', null, t('keys.ttl.' + o.ttl))),
      h(
        'ul',
        { class: 'value' },
        page.rows.slice(0, 20).map((/** @type {any} */ r) => h('li', null, show(r.k, 80))),
      ),
      h('p', { class: 'faint' }, t('confirm.as')),
      page.rows[0] && h('pre', { class: 'command' }, line(make(page.rows[0].k, ms))),
      o.match && h('label', null, t('confirm.type', { text: typed }), input),
    ],
    live: (ok) => {
      ok.disabled = !!o.match && input.value !== typed;
    },
  });
  if (!sure) return 0;
  let stop = false,
    changed = 0,
    looked = 0,
    over = false;
  const state = h('p', { role: 'status' }, t('bulk.running', { n: 0 }));
  const shown = dialog({ title: t('bulk.' + o.verb), body: state });
  shown.then(() => {
    stop = true;
    if (!over) toast(t('bulk.stopped', { n: changed }));
  });
  try {
    let cursor = '0',
      rest = o.keys || [];
    for (let done = false; !done && !stop;) {
      /** @type {B[]} */
      let ks;
      if (o.keys) {
        ks = rest.slice(0, 500);
        rest = rest.slice(500);
        done = !rest.length;
      } else {
        const p = await get('keys', { ...filters, cursor, limit: 500 });
        ks = p.rows.map((/** @type {any} */ r) => r.k);
        cursor = p.cursor;
        done = p.done;
      }
      // A body has at most 1 MiB: long names go in smaller batches.
      for (let i = 0; i < ks.length && !stop;) {
        let n = 0,
          room = 700000;
        while (i + n < ks.length && n < 500 && (n === 0 || room > 0)) room -= text(ks[i + n++]).length * 6 + 80;
        const a = await post('batch', { db: o.db, cmds: ks.slice(i, i + n).map((k) => make(k, ms)), atomic: false });
        const wrong = a.replies.find((/** @type {any} */ r) => r && r.e);
        if (wrong) throw new Error(wrong.e);
        changed += a.replies.filter((/** @type {any} */ r) => r && r.i !== '0').length;
        looked += n;
        i += n;
        say(state, t('bulk.running', { n: looked }));
      }
    }
    over = true;
    fill(state, t('bulk.done', { n: changed }));
  } catch (e) {
    over = true;
    fill(state, h('span', { class: 'error' }, /** @type {Error} */ (e).message), ' ', t('bulk.done', { n: changed }));
  }
  await shown;
  return changed;
}

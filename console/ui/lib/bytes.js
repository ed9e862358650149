// Byte strings in the API's form: {t} is plain text; {b, t} is base64 and the escaped text; n is the full length if the string was cut or
// hidden.
import { h, icon } from './h.js';
import { t as word, num } from './i18n.js';

/** @import { B, Child, Params, Words } from './types.js' */

// Characters that a reader cannot see or recognise: control and format characters, separators, blanks other than the space, characters
// that fonts leave out, and unpaired surrogates. A symbol may have the variation selector of an emoji. encode.go has the same rule.
const UNCLEAN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u2800]|(?! )\p{Zs}|(?!\ufe0f)\p{DI}|(?<!\p{So})\ufe0f/u;
const encoder = new TextEncoder();

/** The bytes of B. @param {B} x @returns {Uint8Array} */
export function bytes(x) {
  if (x.b === undefined) return encoder.encode(x.t || '');
  const s = atob(x.b),
    out = new Uint8Array(s.length);
  for (let i = 0; i < s.length; i++) out[i] = s.charCodeAt(i);
  return out;
}

/** @param {Uint8Array} a */
function base64(a) {
  let s = '';
  for (let i = 0; i < a.length; i += 8192) s += String.fromCharCode(...a.subarray(i, i + 8192));
  return btoa(s);
}

/** Converts bytes to B, with text if they are clean UTF-8. @param {Uint8Array} a @returns {B} */
export function fromBytes(a) {
  try {
    const s = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(a);
    if (!UNCLEAN.test(s)) return { t: s };
  } catch {
    /* the bytes are not UTF-8 */
  }
  return { b: base64(a), t: escaped(a) };
}

/** Converts typed text to B. @param {string} s @returns {B} */
export const fromText = (s) => (UNCLEAN.test(s) ? { b: base64(encoder.encode(s)), t: escaped(encoder.encode(s)) } : { t: s });

/** Converts an argv of strings, numbers and B to a list of B. @param {Words} args @returns {B[]} */
export const argv = (...args) => args.map((a) => (typeof a === 'object' ? a : fromText(String(a))));

const NAMED = new Map([
  [7, '\\a'],
  [8, '\\b'],
  [9, '\\t'],
  [10, '\\n'],
  [13, '\\r'],
  [34, '\\"'],
  [92, '\\\\'],
]);

/** Bytes as redis-cli escapes them, without the quotes. @param {Uint8Array} a */
export function escaped(a) {
  let s = '';
  for (const c of a) s += NAMED.get(c) || (c >= 32 && c < 127 ? String.fromCharCode(c) : '\\x' + c.toString(16).padStart(2, '0'));
  return s;
}

/** The readable form: clean text, or escaped text. @param {B|null|undefined} x */
export const text = (x) => (!x ? '' : x.t !== undefined ? x.t : x.n !== undefined ? word('bytes.hidden', { n: num(x.n) }) : '');

/** The text, shortened in its middle. @param {B|null|undefined} x @param {number} [max] */
export function short(x, max = 256) {
  const s = [...text(x)];
  return s.length <= max ? s.join('') : s.slice(0, max / 2).join('') + ' … ' + s.slice(-max / 4).join('');
}

/** A key for Map that is equal for equal bytes. @param {B|null|undefined} x */
export const id = (x) => (!x ? '' : (x.b !== undefined ? 'b' + x.b : 't' + x.t) + (x.n === undefined ? '' : ' ' + x.n));

/** base64url without padding, for `k=` and hashes; of a name that the server has cut, "!" and its length. @param {B} x */
export const url = (x) => (x.n !== undefined ? '!' + x.n : base64(bytes(x)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, ''));

/** Parameters that may contain the empty name. Without them a request or a route would have another meaning. */
const NAMES = ['k', 'g', 'from'];

/** Parameters of a request or of a route, leaving out those without a value. @param {Params} params */
export function query(params) {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== undefined && v !== null && (v !== '' || NAMES.includes(k))) q.set(k, String(v));
  return q;
}

/** Converts base64url to B. @param {string} s @returns {B} */
export const fromUrl = (s) => fromBytes(bytes({ b: s.replace(/-/g, '+').replace(/_/g, '/') }));

/** One argument as typed in redis-cli: in quotes if necessary. @param {B} x */
export function quote(x) {
  const s = text(x);
  if (x.b === undefined && s !== '' && !/[\s"'\\]/.test(s)) return s;
  return x.b === undefined ? '"' + s.replace(/["\\]/g, '\\$&') + '"' : '"' + escaped(bytes(x)) + '"';
}

/** A command as typed in redis-cli. @param {B[]} args */
export const line = (args) => args.map(quote).join(' ');

/** Escapes the letters of a glob, so that a name matches itself. @param {string} s */
export const glob = (s) => s.replace(/[*?[\]\\]/g, '\\$&');

/**
 * A pattern that only one name matches. (Without special letters the server would search within names.) '' if the name is not text.
 * @param {B} x
 */
export const exactly = (x) => (x.b === undefined ? glob(text(x)).replace(/^[^\\]/, '\\$&') : '');

// Text that a text area returns unchanged, including all kinds of blanks. It would turn a carriage return into a line end.
const PLAIN = /[^\P{Cc}\t\n]|[\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/**
 * Returns the text of a value with its line ends and tabs, or undefined if the value contains other bytes that are not plain text.
 * @param {B} x
 */
export function plain(x) {
  if (x.b === undefined) return x.t;
  if (x.n !== undefined) return undefined;
  try {
    const s = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes(x));
    return PLAIN.test(s) ? undefined : s;
  } catch {
    return undefined;
  }
}

/**
 * Parses a text with the backslash escapes that escaped writes. Returns B, or a string that describes the mistake.
 * @param {string} s @returns {B|string}
 */
export function unescaped(s) {
  const part = /\\x([0-9a-fA-F]{2})|\\([abtnr"\\])|[^\\]+/y;
  /** @type {number[]} */
  const out = [];
  for (let at = 0; at < s.length; at = part.lastIndex) {
    part.lastIndex = at;
    const m = part.exec(s);
    if (!m) return word('bytes.escape.bad', { text: s.slice(at, at + 4) });
    if (m[1]) out.push(parseInt(m[1], 16));
    else if (m[2]) out.push([...NAMED].find(([, x]) => x === '\\' + m[2])?.[0] || 0);
    else for (const c of encoder.encode(m[0])) out.push(c);
  }
  return fromBytes(new Uint8Array(out));
}

/**
 * How a form edits a value: the initial text, a hint, and a function that returns B for the typed text, or a string that describes a
 * mistake. Unchanged text keeps the same bytes. null: the page does not have the whole value.
 * @param {B|undefined} x @returns {{value: string, hint?: string, read: (s: string) => B|string}|null}
 */
export function editor(x) {
  if (!x || x.t === undefined || x.n !== undefined) return null;
  const s = plain(x);
  return s === undefined ? { value: text(x), hint: word('bytes.edit'), read: unescaped } : { value: s, read: fromText };
}

/** The parameters of the screen Keys for the keys with a prefix. A pattern is text, so it cannot have arbitrary bytes. @param {B} prefix */
export const beginning = (prefix) => (prefix.b === undefined ? { match: glob(text(prefix)) + '*' } : { prefix: url(prefix) });

/**
 * The beginning of a name up to and including the first colon after `from` bytes; null if there is none.
 * @param {B} x @param {number} from
 */
export function upToColon(x, from) {
  if (x.n !== undefined) return null; // the page does not have the whole name
  const all = bytes(x),
    at = all.indexOf(58, from);
  return at < 0 ? null : fromBytes(all.subarray(0, at + 1));
}

/** Splits a typed line as redis-cli does; null if a quote is not closed. @param {string} s @returns {B[]|null} */
export function split(s) {
  /** @type {B[]} */
  const out = [];
  for (let i = 0; i < s.length;) {
    if (/\s/.test(s[i])) {
      i++;
      continue;
    }
    /** @type {number[]} */
    const arg = [];
    let q = '';
    for (; i < s.length && (q || !/\s/.test(s[i])); i++) {
      const c = s[i],
        hex = /^\\x([0-9a-f]{2})/i.exec(s.slice(i, i + 4));
      if (q === '"' && hex) {
        arg.push(parseInt(hex[1], 16));
        i += 3;
        continue;
      }
      if (q === '"' && c === '\\' && i + 1 < s.length) {
        i++;
        arg.push(...encoder.encode({ n: '\n', r: '\r', t: '\t', b: '\b', a: '\x07' }[s[i]] || s[i]));
        continue;
      }
      if (q === "'" && c === '\\' && s[i + 1] === "'") {
        arg.push(39);
        i++;
        continue;
      }
      if (!q && (c === '"' || c === "'")) {
        q = c;
        continue;
      }
      if (q && c === q) {
        q = '';
        continue;
      }
      const whole = String.fromCodePoint(/** @type {number} */ (s.codePointAt(i)));
      arg.push(...encoder.encode(whole));
      i += whole.length - 1;
    }
    if (q) return null;
    out.push(fromBytes(new Uint8Array(arg)));
  }
  return out;
}

/** Copies text to the clipboard. @param {string} s */
export function copy(s) {
  if (navigator.clipboard) return navigator.clipboard.writeText(s);
  const box = h('textarea', { value: s, class: 'sr' });
  document.body.append(box);
  box.select();
  document.execCommand('copy');
  box.remove();
  return Promise.resolve();
}

/** A small button that copies. @param {() => string} s */
export const copier = (s) =>
  h(
    'button',
    {
      class: 'ghost copy',
      type: 'button',
      title: word('copy'),
      'aria-label': word('copy'),
      on: {
        click: (e) => {
          e.stopPropagation();
          e.preventDefault();
          copy(s());
        },
      },
    },
    icon('copy'),
  );

/** Spaces as visible boxes. @param {string} s */
const boxes = (s) => [...s].map((c) => h('span', { class: 'blank' }, c));

/** A text with visible spaces at both ends. @param {string} s @returns {Child} */
function withEnds(s) {
  const inner = s.trim();
  if (inner === s) return s;
  if (!inner) return [boxes(s), h('span', { class: 'faint' }, ' ' + word('bytes.blank', { n: s.length }))];
  const at = s.indexOf(inner);
  return [boxes(s.slice(0, at)), inner, boxes(s.slice(at + inner.length))];
}

/**
 * A name or a value as an element: in monospace, with marks for escapes and for spaces at the ends, and shortened with a copy button if
 * it is long; in a link (bare) without the button.
 * @param {B|null|undefined} x @param {number} [max] @param {boolean} [bare]
 */
export function show(x, max = 256, bare = false) {
  if (!x) return h('span', { class: 'faint' }, '–');
  if (x.t === undefined) return h('span', { class: 'faint' }, text(x));
  if (x.t === '') return h('span', { class: 'faint' }, word('bytes.empty'));
  const s = text(x),
    long = [...s].length > max,
    cut = x.n !== undefined,
    title = x.b !== undefined ? 'bytes.escaped' : s.trim() !== s ? 'bytes.blanks' : '';
  return h(
    'span',
    { class: ['mono', 'bytes', x.b !== undefined && 'escaped'], title: title ? word(title) : null },
    withEnds(short(x, max)),
    cut && h('span', { class: 'faint' }, ' ' + word('bytes.cut', { n: num(x.n) })),
    long && !bare && copier(() => s),
  );
}

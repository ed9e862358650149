// Texts, numbers and times in the reader's language.

/** @type {Map<string, string>} */
let words = new Map();
let code = 'en';

/** The present language: en or zh. */
export const lang = () => code;

/** Loads the texts of a language and remembers the choice. @param {string} [want] */
export async function setLang(want) {
  code = (want || localStorage.getItem('ebb.lang') || navigator.language || 'en').startsWith('zh') ? 'zh' : 'en';
  if (want) localStorage.setItem('ebb.lang', code);
  words = new Map(Object.entries(await (await fetch('i18n/' + code + '.json')).json()));
  document.documentElement.lang = code;
}

/**
 * Sets the initial language. ?lang=zh in the address chooses one as the button does, and is then removed from the address. The next load
 * uses the last choice.
 */
export async function startLang() {
  const want = new URLSearchParams(location.search).get('lang');
  if (want) history.replaceState(null, '', location.pathname + location.hash);
  await setLang(want || undefined);
}

/**
 * Returns the text of key, with {name} replaced. An English plural has the form `one|many`, with {n}.
 * @param {string} key
 * @param {Record<string, unknown>} [vars]
 * @returns {string}
 */
export function t(key, vars = {}) {
  let s = words.get(key);
  if (s === undefined) return key;
  const at = s.indexOf('|');
  if (at >= 0) s = String(vars.n) === '1' ? s.slice(0, at) : s.slice(at + 1);
  return s.replace(/\{(\w+)\}/g, (_, name) =>
    vars[name] === undefined ? '' : typeof vars[name] === 'number' ? num(vars[name]) : String(vars[name]),
  );
}

/** Whether a key has a text. @param {string} key */
export const has = (key) => words.has(key);

/** The formatters in use, because making one is slow. */
const formats = {
  /** @type {Map<string, Intl.NumberFormat>} */
  number: new Map(),
  /** @type {Map<string, Intl.DateTimeFormat>} */
  date: new Map(),
};

/** @param {Intl.NumberFormatOptions} options */
function numberFormat(options) {
  const k = code + JSON.stringify(options),
    f = formats.number.get(k) || new Intl.NumberFormat(code, options);
  formats.number.set(k, f);
  return f;
}

/** @param {Intl.DateTimeFormatOptions} options */
function dateFormat(options) {
  const k = code + JSON.stringify(options),
    f = formats.date.get(k) || new Intl.DateTimeFormat(code === 'en' ? 'en-GB' : code, options);
  formats.date.set(k, f);
  return f;
}

/** A number in groups of digits: 2,100,000. @param {number|string|null|undefined} n @param {number} [digits] */
export function num(n, digits = 0) {
  if (n === null || n === undefined || n === '') return '–';
  if (typeof n === 'string') {
    try {
      return numberFormat({}).format(BigInt(n));
    } catch {
      return n;
    }
  }
  return numberFormat({ maximumFractionDigits: digits }).format(n);
}

/** A number of at most four letters: 2.1M. @param {number|null|undefined} n */
export function brief(n) {
  if (n === null || n === undefined || !isFinite(n)) return '–';
  if (Math.abs(n) < 10000) return num(n, Math.abs(n) < 10 && n % 1 ? 1 : 0);
  for (const [u, s] of /** @type {[number, string][]} */ ([
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ]))
    if (Math.abs(n) >= u) return num(n / u, n / u < 100 ? 1 : 0) + s;
  return num(n);
}

/** A size in binary units: 1.5 MiB. @param {number|null|undefined} n */
export function size(n) {
  if (n === null || n === undefined) return '–';
  let u = 0;
  while (Math.abs(n) >= 1024 && u < 5) {
    n /= 1024;
    u++;
  }
  return num(n, u && n < 100 ? 1 : 0) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][u];
}

/** A share in percent. @param {number} x */
export const percent = (x) => numberFormat({ style: 'percent', maximumFractionDigits: x > 0 && x < 0.1 ? 1 : 0 }).format(x);

/** A number of a unit of time, in the words of the language. @param {string} name @param {string} n */
const unit = (name, n) => t('unit.' + name, { n });

/** A span of ms in its two largest units: 1 h 05 min, 4.2 s, 15 ms. @param {number|null|undefined} ms @returns {string} */
export function span(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 0) return '-' + span(-ms);
  if (ms < 1) return unit('ms', num(ms, 2));
  if (ms < 1000) return unit('ms', num(ms, ms < 10 ? 1 : 0));
  const s = ms / 1000,
    two = (/** @type {number} */ n) => String(Math.floor(n)).padStart(2, '0');
  if (s < 10) return unit('s', (Math.floor(s * 10) / 10).toFixed(1));
  if (s < 60) return unit('s', num(Math.floor(s)));
  if (s < 3600) return unit('min', num(Math.floor(s / 60))) + ' ' + unit('s', two(s % 60));
  if (s < 86400) return unit('h', num(Math.floor(s / 3600))) + ' ' + unit('min', two((s % 3600) / 60));
  return unit('d', num(Math.floor(s / 86400))) + ' ' + unit('h', two((s % 86400) / 3600));
}

/** A fixed span, in the largest unit that gives an integer: 1 min, 90 s, 1 h. @param {number} ms */
export function interval(ms) {
  const whole = /** @type {[string, number][]} */ ([
    ['d', 864e5],
    ['h', 36e5],
    ['min', 6e4],
    ['s', 1e3],
  ]).find(([, one]) => ms >= one && ms % one === 0);
  return whole ? unit(whole[0], num(ms / whole[1])) : span(ms);
}

/** Microseconds as a span: 120 µs, 4.2 ms. @param {number|null|undefined} us */
export const micros = (us) =>
  us === null || us === undefined
    ? '–'
    : us < 1000
      ? unit('us', num(Math.round(us)))
      : us < 1e6
        ? unit('ms', num(us / 1000, us < 1e5 ? 1 : 0))
        : span(us / 1000);

/** Time of day of unix ms: 12:00:01. @param {number} ms @param {boolean} [fraction] with ms */
export const time = (ms, fraction) =>
  dateFormat({
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hour12: false,
    ...(fraction ? { fractionalSecondDigits: 3 } : {}),
  }).format(ms);

/** Date and time of unix ms, followed by the time zone, which Intl puts between the two in Chinese. @param {number} ms */
export function date(ms) {
  const day = dateFormat({ day: 'numeric', month: 'short', year: 'numeric' }).format(ms),
    zone = dateFormat({ timeZoneName: 'short' })
      .formatToParts(ms)
      .find((p) => p.type === 'timeZoneName');
  return day + (code === 'en' ? ', ' : ' ') + time(ms) + ' ' + (zone?.value || '');
}

/** The span of a chart. @typedef {'minute'|'hour'|'day'|'month'} Unit */

/** Day or hour of unix ms for axes. @param {number} ms @param {Unit} unit */
export const tick = (ms, unit) =>
  dateFormat(
    unit === 'month'
      ? { day: 'numeric', month: 'short' }
      : { hour: '2-digit', minute: '2-digit', hour12: false, ...(unit === 'minute' ? { second: '2-digit' } : {}) },
  ).format(ms);

const UNITS = new Map([
  ['ms', 1],
  ['s', 1e3],
  ['sec', 1e3],
  ['m', 6e4],
  ['min', 6e4],
  ['h', 36e5],
  ['d', 864e5],
  ['w', 6048e5],
]);
/** The longest span, ms. Its end still lies before the server's last instant, 2^46 ms since 1970. */
const LATEST = 2 ** 46 - 4e12;

/** Parses a span such as "90 s", "5m", "1h", "250ms" to ms; NaN if it cannot. A number without a unit means seconds. @param {string} s */
export function parseSpan(s) {
  let ms = 0,
    rest = s.trim();
  if (!rest) return NaN;
  for (; rest;) {
    const m = /^(\d+(?:\.\d+)?)\s*(ms|sec|s|min|m|h|d|w)?(?:\s+|(?=\d)|$)/i.exec(rest);
    if (!m || (!m[2] && m[0].length < s.trim().length)) return NaN; // only seconds may stand without a unit
    ms += Number(m[1]) * /** @type {number} */ (UNITS.get((m[2] || 's').toLowerCase()));
    rest = rest.slice(m[0].length);
  }
  return ms < LATEST ? Math.round(ms) : NaN;
}

/**
 * Formats a span exactly, so that parseSpan can read it: 250ms, 1m 30s, 1h 50m 49s. If ms is not positive (no deadline), one hour.
 * @param {number} ms
 */
export function asSpan(ms) {
  if (!(ms > 0)) return '1h';
  let rest = ms < 10000 ? Math.ceil(ms) : Math.ceil(ms / 1000) * 1000;
  if (rest % 1000) return rest + 'ms';
  const parts = [];
  for (const unit of ['d', 'h', 'm', 's']) {
    const one = /** @type {number} */ (UNITS.get(unit)),
      n = Math.floor(rest / one);
    if (n) parts.push(n + unit);
    rest -= n * one;
  }
  return parts.join(' ');
}

/** @type {Map<string, (s: string) => string>} */
const translations = new Map([['en', (s) => s]]);

/**
 * Returns a function that translates the descriptions of directives, which the server sends in English. i18n/config.<language>.json
 * contains each text, or a pattern with *, whose match replaces $1. A missing text stays in English.
 * @returns {Promise<(s: string) => string>}
 */
export async function meanings() {
  const known = translations.get(code);
  if (known) return known;
  const of = code;
  /** @type {[string, string][]} */
  const all = Object.entries(await (await fetch('i18n/config.' + of + '.json')).json());
  const exact = new Map(all);
  const patterns = all
    .filter(([from]) => from.includes('*'))
    .map(([from, to]) => /** @type {[RegExp, string]} */ ([new RegExp('^' + from.split('*').map(literal).join('(.+)') + '$'), to]));
  /** @param {string} s */
  const translate = (s) => {
    const p = exact.has(s) ? undefined : patterns.find(([from]) => from.test(s));
    return p ? s.replace(p[0], p[1]) : (exact.get(s) ?? s);
  };
  translations.set(of, translate);
  return translate;
}

/** A regular expression that matches s only. @param {string} s */
const literal = (s) => s.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** The server's name for the type of a Bloom filter. */
export const BLOOM = 'MBbloom--';

/** The type of a key in words. @param {string} type */
export const typeWords = (type) => (type === BLOOM ? 'bloom' : type);

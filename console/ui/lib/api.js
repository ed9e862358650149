// The JSON API: get, post, and run, the one way to write.
import { argv as toArgv, line, query } from './bytes.js';
import { confirmCommand, toast } from './dialog.js';
import { t } from './i18n.js';

/** @typedef {import('./bytes.js').B} B */
/** @typedef {{reply: any, text: string, ms: number, error?: boolean, secret?: boolean}} Reply */

/**
 * An answer that is no success. `login`: the user must log in; `loading`: the share loaded; `retry`: seconds to wait;
 * `confirm`: what must be typed; `passing`: the server is away, and the next try may succeed; `command` and `rule`: what the user may
 * not run, and the ACL rule that allows it; `secret`: the command has a password.
 */
export class ApiError extends Error {
  /** @param {number} status @param {any} body @param {number} retry */
  constructor(status, body, retry) {
    super(body.error || t('error.status', { status }));
    this.status = status;
    this.code = body.code || '';
    this.login = !!body.login;
    this.gone = !!body.gone;
    this.loading = body.loading || null;
    this.confirm = body.confirm || '';
    this.command = body.command || '';
    this.rule = body.rule || '';
    this.secret = !!body.secret;
    this.retry = retry;
    this.passing = !!this.loading || (!this.code && [0, 502, 503, 504].includes(status));
  }
}

// The server's clock. The offset of the answer with the shortest way is the best one; it is forgotten after ten minutes.
let offset = 0,
  best = Infinity,
  bestAt = 0;
const here = () => performance.timeOrigin + performance.now();

/** Tells the clock what the server said, and how long its way was. @param {number} now @param {number} way ms there and back */
export function sync(now, way) {
  if (way > best && here() - bestAt < 600000) return;
  best = way;
  bestAt = here();
  offset = now + way / 2 - here();
}

/** The server's time now, unix ms with fractions. */
export const clock = () => here() + offset;

/** @type {(e: ApiError) => void} */
let failed = () => {};
/** Calls fn at each answer that asks for a login or says that the server loads. @param {(e: ApiError) => void} fn */
export const onFail = (fn) => {
  failed = fn;
};

/** The length of the longest query in an address. Proxies take addresses of some 8,000 characters; longer names travel in a body. */
export const LONG = 4000;

/** @param {string} method @param {string} path @param {Record<string, any>} params @param {any} body @param {AbortSignal} [signal] */
async function call(method, path, params, body, signal) {
  let q = query(params);
  if (method === 'GET' && String(q).length > LONG) {
    method = 'POST';
    body = Object.fromEntries(q);
    q = new URLSearchParams();
  }
  const sent = performance.now();
  /** @type {Response} */
  let res;
  try {
    res = await fetch('api/' + path + (q.size ? '?' + q : ''), {
      method,
      signal,
      credentials: 'same-origin',
      cache: 'no-store',
      ...(body === undefined ? {} : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
    });
  } catch (e) {
    if (/** @type {Error} */ (e).name === 'AbortError') throw e;
    throw new ApiError(0, { error: t('error.network') }, 0);
  }
  const way = performance.now() - sent;
  const answer =
    res.status === 204
      ? {}
      : await res.json().catch((e) => {
          if (!res.ok) return { error: t('error.status', { status: res.status }) };
          throw e.name === 'AbortError' ? e : new ApiError(0, { error: t('error.network') }, 0); // the answer has ended too early
        });
  if (!res.ok) {
    const e = new ApiError(res.status, answer, Number(res.headers.get('Retry-After')) || 0);
    if ((e.login && path !== 'login') || e.loading) failed(e);
    throw e;
  }
  if (typeof answer.now === 'number') sync(answer.now, way);
  return answer;
}

/** GET api/path. @param {string} path @param {Record<string, any>} [params] @param {AbortSignal} [signal] @returns {Promise<any>} */
export const get = (path, params = {}, signal) => call('GET', path, params, undefined, signal);

/** POST api/path with a JSON body. @param {string} path @param {any} [body] @returns {Promise<any>} */
export const post = (path, body = {}) => call('POST', path, {}, body);

/** DELETE api/path. @param {string} path @param {Record<string, any>} [params] @returns {Promise<any>} */
export const del = (path, params = {}) => call('DELETE', path, params, undefined);

/**
 * Runs a command without a question: for reads and for the shell.
 * @param {number} db
 * @param {Array<string|number|B>} args
 * @param {object} [more]
 * @returns {Promise<Reply>}
 */
export const exec = (db, args, more = {}) => post('do', { db, argv: toArgv(...args), ...more });

/**
 * Shows the command as typed, asks, runs it, and says what came back. null: the user went back, or it failed (and the user has read why).
 * danger: true for a red button, or the text that the user must type. text: what it does, in a sentence. quiet: no question (a form
 * showed the command before). unchanged: what a reply of 0 or nil means, where it says that the command has changed nothing.
 * expect: what must still be so, see runAll.
 * @param {number} db
 * @param {Array<string|number|B>} args
 * @param {{danger?: boolean|string, text?: string, quiet?: boolean, expect?: Expect[], unchanged?: string}} [o]
 * @returns {Promise<Reply|null>}
 */
export async function run(db, args, o = {}) {
  const words = toArgv(...args);
  let typed = typeof o.danger === 'string' ? o.danger : '';
  if (!o.quiet && !(await confirmCommand({ argv: words, text: o.text, danger: !!o.danger, type: typed }))) return null;
  for (;;) {
    try {
      const r = o.expect
        ? first(await post('batch', { db, cmds: [words], atomic: true, expect: expected(o.expect), confirm: typed || undefined }))
        : await post('do', { db, argv: words, confirm: typed || undefined });
      if (!r.error && o.unchanged && idle(r.reply)) toast(o.unchanged, 'bad');
      else toast(r.error ? r.text : line(words) + ' → ' + r.text, r.error ? 'bad' : 'good');
      return r.error ? null : r;
    } catch (e) {
      const err = /** @type {ApiError} */ (e);
      if (err.status !== 409 || !err.confirm || typed === err.confirm) {
        toast(why(err), 'bad');
        return null;
      }
      typed = err.confirm;
      if (!(await confirmCommand({ argv: words, text: err.message, danger: true, type: typed }))) return null;
    }
  }
}

/** Whether a reply says that a command has changed nothing: 0 or nil. @param {any} reply */
export const idle = (reply) => reply === null || reply === undefined || reply.i === '0';

/**
 * A read, and the mark of the value that the page has shown of it (the row's `seen`; '' for nothing): a command runs only if the read
 * still has that value, in one step with the look.
 * @typedef {[Array<string|number|B>, string]} Expect
 */
/** @param {Expect[]} all */
const expected = (all) => all.map(([read, seen]) => ({ argv: toArgv(...read), seen }));
/** The answer of a batch of one command, as that of the command. @param {any} a @returns {Reply} */
const first = (a) => ({ reply: a.replies[0], text: a.text[0], ms: 0, error: !!(a.replies[0] && a.replies[0].e !== undefined) });
/** What to say of a command that has not run. @param {ApiError} e */
const why = (e) => (e.code === 'CHANGED' ? t('key.changed.meanwhile') : e.message);

/**
 * Runs commands as a transaction, as run does a single one. done: what to say of the replies. changed: what to say where something of
 * expect is not so.
 * @param {number} db
 * @param {Array<Array<string|number|B>>} cmds
 * @param {{danger?: boolean, text?: string, quiet?: boolean, done?: (replies: any[]) => [string, 'good'|'bad'], expect?: Expect[],
 *   changed?: string}} o
 * @returns {Promise<any[]|null>}
 */
export async function runAll(db, cmds, o) {
  const argv = cmds.map((c) => toArgv(...c));
  if (!o.quiet && !(await confirmCommand({ argv, text: o.text, danger: o.danger }))) return null;
  try {
    const r = await post('batch', { db, cmds: argv, atomic: true, expect: o.expect && expected(o.expect) });
    const bad = r.replies.findIndex((/** @type {any} */ x) => x && x.e !== undefined);
    if (bad >= 0) toast(r.text[bad], 'bad');
    else if (o.done) toast(...o.done(r.replies));
    else toast(argv.map((a, i) => line(a) + ' → ' + r.text[i]).join('\n'));
    return bad >= 0 ? null : r.replies;
  } catch (e) {
    const err = /** @type {ApiError} */ (e);
    toast((err.code === 'CHANGED' && o.changed) || why(err), 'bad');
    return null;
  }
}

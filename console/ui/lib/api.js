// The JSON API: get, post, and run, the one way to write.
import { argv as toArgv, line, query } from './bytes.js';
import { confirmCommand, toast } from './dialog.js';
import { t } from './i18n.js';

/** @import { Answers, Failure, Params, Posted, PostBatchAnswer, Reply, Resp, Words } from './types.js' */

/** The codes of errors that pass: a script runs for long, the master is away. */
const PASSING = new Set(['BUSY', 'LOADING', 'MASTERDOWN', 'CLUSTERDOWN']);

/**
 * An answer that is not a success. `login`: the user must log in; `loading`: the share loaded; `retry`: seconds to wait;
 * `confirm`: what must be typed; `passing`: the server is away or busy, or a proxy asks for it by another name, and the next try may
 * succeed; `command` and `rule`: what the user may not run, and the ACL rule that allows it; `secret`: the command has a password.
 */
export class ApiError extends Error {
  /** @param {number} status @param {Failure} body @param {number} retry */
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
    this.passing = !!this.loading || PASSING.has(this.code) || (!this.code && [0, 421, 429, 502, 503, 504].includes(status));
  }
}

// The server's clock. The offset of the answer with the shortest way is the best one; it is forgotten after ten minutes, and where an
// answer shows that it is wrong: the browser's clock stands still while a laptop sleeps.
const SLACK = 50; // ms
let offset = 0,
  best = Infinity,
  bestAt = 0;
const here = () => performance.timeOrigin + performance.now();

/** Tells the clock what the server said, and how long its way was. @param {number} now @param {number} way ms there and back */
export function sync(now, way) {
  const since = clock() - now, // the server has said it: 0 to way
    wrong = since < -best / 2 - SLACK || since > way + best / 2 + SLACK;
  if (way > best && here() - bestAt < 600000 && !wrong) return;
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

/**
 * @param {string} method
 * @param {string} path
 * @param {Params} params
 * @param {unknown} body
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>} what the server has answered, as JSON
 */
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
    if (isAbort(e)) throw e;
    throw new ApiError(0, { error: t('error.network') }, 0);
  }
  const way = performance.now() - sent;
  const answer =
    res.status === 204
      ? {}
      : await res.json().catch((e) => {
          if (!res.ok) return { error: t('error.status', { status: res.status }) };
          throw isAbort(e) ? e : new ApiError(0, { error: t('error.network') }, 0); // the answer has ended too early
        });
  if (!res.ok) {
    const e = new ApiError(res.status, answer, Number(res.headers.get('Retry-After')) || 0);
    if ((e.login && path !== 'login') || e.loading) failed(e);
    throw e;
  }
  if (typeof answer.now === 'number') sync(answer.now, way);
  return answer;
}

/** Whether a request has ended because its screen has. @param {unknown} e */
export const isAbort = (e) => e instanceof Error && e.name === 'AbortError';

/** The text of an error. @param {unknown} e */
export const messageOf = (e) => (e instanceof Error ? e.message : String(e));

/** Whether the server is away or busy, and the next try may succeed. @param {unknown} e */
export const isPassing = (e) => e instanceof ApiError && e.passing;

/** Whether an error is about something that does not exist any longer. @param {unknown} e */
export const isGone = (e) => e instanceof ApiError && e.gone;

/** What a person reads of an error: of a missing permission, the ACL rule that gives it. @param {unknown} e */
export const refusal = (e) => (e instanceof ApiError && e.rule ? t('forbidden.rule', { command: e.command, rule: e.rule }) : messageOf(e));

/**
 * GET api/path.
 * @template {keyof Answers} P
 * @param {P} path
 * @param {Params} [params]
 * @param {AbortSignal} [signal]
 * @returns {Promise<Answers[P]>}
 */
export const get = (path, params = {}, signal) => call('GET', path, params, undefined, signal);

/**
 * POST api/path with a JSON body.
 * @template {keyof Posted} P
 * @param {P} path
 * @param {object} [body]
 * @returns {Promise<Posted[P]>}
 */
export const post = (path, body = {}) => call('POST', path, {}, body);

/** Ends a walk over the keys. @param {string} id @returns {Promise<unknown>} */
export const endWalk = (id) => call('DELETE', 'walk', { id }, undefined);

/** The text of a reply that is an error; undefined for others. @param {Resp|undefined} reply */
export const errorOf = (reply) => (reply && typeof reply === 'object' && !Array.isArray(reply) ? reply.e : undefined);

/** The integer of a reply, as text; undefined for others. @param {Resp|undefined} reply */
export const integerOf = (reply) => (reply && typeof reply === 'object' && !Array.isArray(reply) ? reply.i : undefined);

/** Whether a reply says that a command has changed nothing: 0 or nil. @param {Resp|undefined} reply */
export const isIdle = (reply) => reply === null || reply === undefined || integerOf(reply) === '0';

/** Whether a reply says that a key is of another type by now. @param {Resp} reply */
const hasOtherType = (reply) => (errorOf(reply) || '').startsWith('WRONGTYPE');

/**
 * Runs a command without a question: for reads and for the shell.
 * @param {number} db
 * @param {Words} args
 * @param {object} [more]
 */
export const exec = (db, args, more = {}) => post('do', { db, argv: toArgv(...args), ...more });

/**
 * A read, and the mark of the value that the page has shown of it (the row's `seen`; '' for nothing): a command runs only if the read
 * still has that value, in one step with the look.
 * @typedef {[Words, string]} Expect
 */
/** @param {Expect[]} all */
const expected = (all) => all.map(([read, seen]) => ({ argv: toArgv(...read), seen }));

/** The answer of a batch of one command, as that of the command. @param {PostBatchAnswer} a @returns {Reply} */
const single = (a) => ({ reply: a.replies[0], text: a.text[0], ms: 0, error: errorOf(a.replies[0]) !== undefined });

/** What to say of a command that has not run. @param {unknown} e @param {string} [changed] where something of expect is not so */
const failure = (e, changed = t('key.changed.meanwhile')) => (e instanceof ApiError && e.code === 'CHANGED' ? changed : messageOf(e));

/**
 * danger: true for a red button, or the text that the user must type. text: what the command does, in a sentence. quiet: no question (a
 * form showed the command before). unchanged: what a reply of 0 or nil means, where it says that the command has changed nothing. expect:
 * what must still be so.
 * @typedef {{danger?: boolean|string, text?: string, quiet?: boolean, expect?: Expect[], unchanged?: string}} RunOptions
 */

/**
 * Shows the command as typed, asks, runs it, and says what came back. null: the user went back, or it failed (and the user has read why).
 * @param {number} db
 * @param {Words} args
 * @param {RunOptions} [o]
 * @returns {Promise<Reply|null>}
 */
export async function run(db, args, o = {}) {
  const words = toArgv(...args);
  let typed = typeof o.danger === 'string' ? o.danger : '';
  if (!o.quiet && !(await confirmCommand({ argv: words, text: o.text, danger: !!o.danger, type: typed }))) return null;
  for (;;) {
    try {
      const r = await send(db, words, typed || undefined, o.expect);
      if (o.unchanged && (r.error ? hasOtherType(r.reply) : isIdle(r.reply))) toast(o.unchanged, 'bad');
      else toast(r.error ? r.text : line(words) + ' → ' + r.text, r.error ? 'bad' : 'good');
      return r.error ? null : r;
    } catch (e) {
      if (!(e instanceof ApiError) || e.status !== 409 || !e.confirm || typed === e.confirm) {
        toast(failure(e), 'bad');
        return null;
      }
      typed = e.confirm;
      if (!(await confirmCommand({ argv: words, text: e.message, danger: true, type: typed }))) return null;
    }
  }
}

/** @param {number} db @param {import('./types.js').B[]} argv @param {string|undefined} confirm @param {Expect[]|undefined} expect */
async function send(db, argv, confirm, expect) {
  if (!expect) return post('do', { db, argv, confirm });
  return single(await post('batch', { db, cmds: [argv], atomic: true, expect: expected(expect), confirm }));
}

/**
 * Runs commands as a transaction, as run does a single one. done: what to say of the replies. changed: what to say where something of
 * expect is not so.
 * @param {number} db
 * @param {Words[]} cmds
 * @param {{danger?: boolean, text?: string, quiet?: boolean, done?: (replies: Resp[]) => [string, 'good'|'bad'], expect?: Expect[],
 *   changed?: string}} o
 * @returns {Promise<Resp[]|null>}
 */
export async function runAll(db, cmds, o) {
  const argv = cmds.map((c) => toArgv(...c));
  if (!o.quiet && !(await confirmCommand({ argv, text: o.text, danger: o.danger }))) return null;
  try {
    const r = await post('batch', { db, cmds: argv, atomic: true, expect: o.expect && expected(o.expect) });
    const bad = r.replies.findIndex((x) => errorOf(x) !== undefined);
    if (bad >= 0) toast(r.text[bad], 'bad');
    else if (o.done) toast(...o.done(r.replies));
    else toast(argv.map((a, i) => line(a) + ' → ' + r.text[i]).join('\n'));
    return bad >= 0 ? null : r.replies;
  } catch (e) {
    toast(failure(e, o.changed), 'bad');
    return null;
  }
}

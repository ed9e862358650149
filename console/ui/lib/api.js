// The JSON API: get, post, and run, the one way to write.
import { argv as toArgv, line, query } from './bytes.js';
import { confirmCommand, toast } from './dialog.js';
import { t } from './i18n.js';

/** @import { Answers, Failure, Params, Posted, PostBatchAnswer, Reply, Resp, Words } from './types.js' */

/** The codes of temporary errors: a script is running for long, or the master is away. */
const PASSING = new Set(['BUSY', 'LOADING', 'MASTERDOWN', 'CLUSTERDOWN']);

/**
 * An answer that reports no success. `login`: the user must log in; `loading`: the loaded share; `retry`: seconds until the next try;
 * `confirm`: the text that the user must type; `passing`: the server is away or busy, or a proxy reports that in its own way, so the next
 * try may succeed; `command` and `rule`: the command that the user may not run, and the ACL rule that would allow it; `secret`: the
 * command contains a password.
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

// The server's clock. The offset from the answer that came fastest is the best one. The page forgets it after ten minutes, and when an
// answer shows that it is wrong: the browser's clock stops while a laptop sleeps.
const CLOCK_TOLERANCE = 50; // ms
let offset = 0,
  best = Infinity,
  bestAt = 0;
const here = () => performance.timeOrigin + performance.now();

/** Sets the clock by a time from the server, and the duration of the request. @param {number} now @param {number} way ms there and back */
export function sync(now, way) {
  const since = clock() - now, // the server told its time between 0 and way ms ago
    wrong = since < -best / 2 - CLOCK_TOLERANCE || since > way + best / 2 + CLOCK_TOLERANCE;
  if (way > best && here() - bestAt < 600000 && !wrong) return;
  best = way;
  bestAt = here();
  offset = now + way / 2 - here();
}

/** The server's time now, unix ms with fractions. */
export const clock = () => here() + offset;

/** @type {(e: ApiError) => void} */
let failed = () => {};
/** Calls fn at each answer that requires a login, or tells that the server is loading. @param {(e: ApiError) => void} fn */
export const onFail = (fn) => {
  failed = fn;
};

/** The longest query in an address. Proxies accept addresses of some 8,000 characters; longer names travel in a body. */
export const MAX_QUERY = 4000;

/**
 * @param {string} method
 * @param {string} path
 * @param {Params} params
 * @param {unknown} body
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>} the server's answer, parsed as JSON
 */
async function call(method, path, params, body, signal) {
  let q = query(params);
  if (method === 'GET' && String(q).length > MAX_QUERY) {
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
          throw isAbort(e) ? e : new ApiError(0, { error: t('error.network') }, 0); // the answer ended too early
        });
  if (!res.ok) {
    const e = new ApiError(res.status, answer, Number(res.headers.get('Retry-After')) || 0);
    if ((e.login && path !== 'login') || e.loading) failed(e);
    throw e;
  }
  if (typeof answer.now === 'number') sync(answer.now, way);
  return answer;
}

/** Whether a request was aborted because its screen ended. @param {unknown} e */
export const isAbort = (e) => e instanceof Error && e.name === 'AbortError';

/** The text of an error. @param {unknown} e */
export const messageOf = (e) => (e instanceof Error ? e.message : String(e));

/** Whether the server is away or busy, and the next try may succeed. @param {unknown} e */
export const isPassing = (e) => e instanceof ApiError && e.passing;

/** Whether an error concerns something that no longer exists. @param {unknown} e */
export const isGone = (e) => e instanceof ApiError && e.gone;

/** The readable text of an error; for a missing permission, with the ACL rule that gives it. @param {unknown} e */
export const refusal = (e) => (e instanceof ApiError && e.rule ? t('forbidden.rule', { command: e.command, rule: e.rule }) : messageOf(e));

/**
 * Sends GET api/path.
 * @template {keyof Answers} P
 * @param {P} path
 * @param {Params} [params]
 * @param {AbortSignal} [signal]
 * @returns {Promise<Answers[P]>}
 */
export const get = (path, params = {}, signal) => call('GET', path, params, undefined, signal);

/**
 * Sends POST api/path with a JSON body.
 * @template {keyof Posted} P
 * @param {P} path
 * @param {object} [body]
 * @returns {Promise<Posted[P]>}
 */
export const post = (path, body = {}) => call('POST', path, {}, body);

/** Ends a walk over the keys. @param {string} id @returns {Promise<unknown>} */
export const endWalk = (id) => call('DELETE', 'walk', { id }, undefined);

/** The text of an error reply; undefined for other replies. @param {Resp|undefined} reply */
export const errorOf = (reply) => (reply && typeof reply === 'object' && !Array.isArray(reply) ? reply.e : undefined);

/** The integer of a reply, as text; undefined for other replies. @param {Resp|undefined} reply */
export const integerOf = (reply) => (reply && typeof reply === 'object' && !Array.isArray(reply) ? reply.i : undefined);

/** Whether a reply says that a command has changed nothing: 0 or nil. @param {Resp|undefined} reply */
export const isIdle = (reply) => reply === null || reply === undefined || integerOf(reply) === '0';

/** Whether a reply tells that the key now has another type. @param {Resp} reply */
const hasOtherType = (reply) => (errorOf(reply) || '').startsWith('WRONGTYPE');

/**
 * Runs a command without asking the user: for reads, and for the shell.
 * @param {number} db
 * @param {Words} args
 * @param {object} [more]
 */
export const exec = (db, args, more = {}) => post('do', { db, argv: toArgv(...args), ...more });

/**
 * A read, and the mark of the value that the page has shown of it (`seen` of the row; '' for none). The server runs a command only if the
 * read still has that value; it checks that in the same step.
 * @typedef {[Words, string]} Expect
 */
/** @param {Expect[]} all */
const expected = (all) => all.map(([read, seen]) => ({ argv: toArgv(...read), seen }));

/** Converts the answer of a batch of one command to the answer of a command. @param {PostBatchAnswer} a @returns {Reply} */
const single = (a) => ({ reply: a.replies[0], text: a.text[0], ms: 0, error: errorOf(a.replies[0]) !== undefined });

/** The message about a command that did not run. @param {unknown} e @param {string} [changed] where something of expect is not so */
const failure = (e, changed = t('key.changed.meanwhile')) => (e instanceof ApiError && e.code === 'CHANGED' ? changed : messageOf(e));

/**
 * danger: true makes the button red; a string is the text that the user must type. text: a sentence about the effect of the command.
 * quiet: ask nothing, because a form has already shown the command. unchanged: the message for a reply of 0 or nil that means that
 * nothing has changed. expect: conditions that must still hold.
 * @typedef {{danger?: boolean|string, text?: string, quiet?: boolean, expect?: Expect[], unchanged?: string}} RunOptions
 */

/**
 * Shows the command as typed, asks the user, runs it, and shows the result. Returns null if the user went back, or if it failed and the
 * user has read why.
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
 * Runs commands as a transaction, in the same way as run. done: returns the message about the replies. changed: the message if a
 * condition of expect no longer holds.
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

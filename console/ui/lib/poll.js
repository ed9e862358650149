// Screens that read their state repeatedly while the page is visible, or receive it in the stream of events.
import { ApiError, get, isAbort, isPassing } from './api.js';
import { fromText, url } from './bytes.js';
import { searchBox } from './h.js';
import { t } from './i18n.js';

/** @import { Answers, Ctx, Lists } from './types.js' */

/** After a slow read, the page waits this many times its duration before the next: to list the streams, the server looks at all keys. */
const PAUSE_FACTOR = 10;
/** The longest such pause, ms: a read is also slow because the server hangs or is away, and its screen must not stay old afterwards. */
const MAX_PAUSE = 15e3;

/**
 * Calls read now, and again ms after each call has ended, while the page is visible. It passes an error to ctx.fail, once until a call
 * succeeds, but no temporary error, as the banner shows those. Returns a function that reads at once.
 * @param {Ctx} ctx
 * @param {number} ms
 * @param {() => Promise<unknown>} read
 */
export function poll(ctx, ms, read) {
  let timer = 0,
    failed = false,
    over = false;
  async function beat() {
    clearTimeout(timer);
    if (over) return;
    const began = performance.now();
    if (!document.hidden) {
      try {
        await read();
        failed = false;
      } catch (e) {
        const passing = isPassing(e);
        if (!failed && !passing && !isAbort(e)) ctx.fail(e);
        failed = !passing;
      }
    }
    if (!over) timer = setTimeout(beat, Math.max(ms, Math.min(PAUSE_FACTOR * (performance.now() - began), MAX_PAUSE)));
  }
  ctx.onClose(() => {
    over = true;
    clearTimeout(timer);
  });
  beat();
  return beat;
}

/**
 * Shows a list from the stream of events, which sends it each second in which it changes: the matching rows that come first by a column.
 * Returns functions that read it at once and sort it by another column, and a field for the filter.
 * @template {keyof Lists} N
 * @param {Ctx} ctx
 * @param {N} name
 * @param {string} sort
 * @param {(list: Answers[N]) => void} show
 * @param {string} [only] the pattern of the names, instead of the filter
 */
export function listed(ctx, name, sort, show, only) {
  const match = only || ctx.params.get('match') || '';
  let end = () => {};
  async function read() {
    const asked = sort;
    try {
      const a = await get(name, { db: ctx.db, match, sort }, ctx.stop);
      if (asked === sort) show(a);
    } catch (e) {
      ctx.fail(e);
    }
  }
  function begin() {
    end();
    end = ctx.onEvent(name, ctx.db + ':' + (match ? url(fromText(match)) : '') + ':' + sort, (data, event) => {
      if (event === 'resync' || (data.sort || '') !== sort) return;
      const { error, code, command, rule } = data,
        failure = error && new ApiError(code === 'NOPERM' ? 403 : 409, { error, code, command, rule }, 0);
      if (failure && isPassing(failure)) return; // the list comes again later
      if (failure) ctx.fail(failure);
      else show(/** @type {Answers[N]} */ (/** @type {unknown} */ (data)));
    });
  }
  begin();
  return {
    read,
    /** @param {string} by */
    sorted(by) {
      sort = by;
      begin();
      read();
    },
    filter: filterBox(ctx, name),
  };
}

/** A field for a part of a name, or a pattern. The list then has only the matching keys. @param {Ctx} ctx @param {string} screen */
export const filterBox = (ctx, screen) =>
  searchBox(t('list.filter'), (match) => ctx.go(screen, { db: ctx.db, match }), { value: ctx.params.get('match') });

/** Tells that a list is incomplete, and how many keys the server has checked. @param {import('./types.js').Ranked<unknown>} a */
export const partly = (a) => (!a.more ? '' : t(a.all ? 'list.first' : 'list.part', { n: a.rows.length, all: a.looked }));

/** A line of a screen with the names of the commands that the user may not run. @param {string[]|undefined} denied */
export const missing = (denied) => (denied && denied.length ? t('denied', { n: denied.length, commands: denied.join(', ') }) : '');

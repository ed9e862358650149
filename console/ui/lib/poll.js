// A screen that reads its state again while the page is visible, or gets it by the feed.
import { ApiError, get } from './api.js';
import { fromText, url } from './bytes.js';
import { h } from './h.js';
import { t } from './i18n.js';

/**
 * Calls read now, and again ms after each call has ended, while the page is visible and the news are not paused. After a call that
 * has taken long it
 * waits for ten times as long: the server looks at all keys to list the streams. An error goes to ctx.fail once, until a call
 * succeeds; not one
 * that passes, of which the banner tells.
 * @param {import('../app.js').Ctx} ctx @param {number} ms @param {() => Promise<any>} read
 */
export function live(ctx, ms, read) {
  /** @type {any} */ let timer = 0;
  let failed = false,
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
        const passing = /** @type {any} */ (e).passing;
        if (!failed && !passing && /** @type {Error} */ (e).name !== 'AbortError') ctx.fail(e);
        failed = !passing;
      }
    }
    if (!over) timer = setTimeout(beat, Math.max(ms, 10 * (performance.now() - began)));
  }
  ctx.onClose(() => {
    over = true;
    clearTimeout(timer);
  });
  beat();
  return beat;
}

/**
 * Shows a list that comes by the feed, each second in which it changes: of the names that match, the rows that come first by a column.
 * Answers how to read it again at once, how to sort it by another column, and a field for the filter.
 * @param {import('../app.js').Ctx} ctx @param {string} name limits, locks or queues @param {string} sort @param {(list: any) => void} show
 */
export function listed(ctx, name, sort, show) {
  const match = ctx.params.get('match') || '';
  /** The list that is asked for now. */ let by = sort;
  let end = () => {};
  const read = async () => {
    const mine = by;
    try {
      const a = await get(name, { db: ctx.db, match, sort: mine }, ctx.stop);
      if (mine === by) show(a);
    } catch (e) {
      ctx.fail(e);
    }
  };
  function begin() {
    end();
    end = ctx.onNews(name + ':' + ctx.db + ':' + (match ? url(fromText(match)) : '') + ':' + by, (data, event) => {
      if (event === 'resync' || (data.sort || '') !== by) return;
      if (data.error) ctx.fail(new ApiError(data.code === 'NOPERM' ? 403 : 409, data, 0));
      else show(data);
    });
  }
  begin();
  return {
    read,
    /** @param {string} sort */
    sorted(sort) {
      by = sort;
      begin();
      read();
    },
    filter: filter(ctx, name),
  };
}

/** A field for a part of a name, or a pattern: the list is then that of the keys that match. @param {import('../app.js').Ctx} ctx
 * @param {string} screen */
export function filter(ctx, screen) {
  const box = h('input', {
    type: 'search',
    value: ctx.params.get('match') || '',
    placeholder: t('list.filter'),
    'aria-label': t('list.filter'),
    spellcheck: 'false',
    on: { change: () => ctx.go(screen, { db: ctx.db, match: box.value }) },
  });
  return box;
}

/** Says that a list has not all rows, and how many the server has looked at. @param {any} a */
export const partly = (a) =>
  !a.more ? '' : a.all ? t('list.first', { n: a.rows.length, all: a.looked }) : t('list.part', { n: a.rows.length, all: a.looked });

/** What a person reads of an error: of a missing permission, the ACL rule that gives it. @param {any} e */
export const refusal = (e) => (e.rule ? t('forbidden.rule', { command: e.command, rule: e.rule }) : e.message);

/**
 * The names of commands that the user may not run, as a line of a screen.
 * @param {string[]|undefined} denied
 * @param {(key: string, vars: any) => string} _
 */
export const missing = (denied, _ = t) => (denied && denied.length ? t('denied', { n: denied.length, commands: denied.join(', ') }) : '');

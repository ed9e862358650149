// A screen that reads its state again while the page is visible, or gets it by the feed.
import { ApiError, get } from './api.js';
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
 * Shows a list that comes by the feed, each second in which it changes. Answers how to read it again at once.
 * @param {import('../app.js').Ctx} ctx @param {string} name limits, locks or queues @param {(list: any) => void} show
 */
export function listed(ctx, name, show) {
  const read = async () => {
    try {
      show(await get(name, { db: ctx.db }, ctx.stop));
    } catch (e) {
      ctx.fail(e);
    }
  };
  ctx.onNews(name + ':' + ctx.db, (data, event) => {
    if (event === 'resync') return;
    if (data.error) ctx.fail(new ApiError(data.code === 'NOPERM' ? 403 : 409, data, 0));
    else show(data);
  });
  return read;
}

/** What a person reads of an error: of a missing permission, the ACL rule that gives it. @param {any} e */
export const refusal = (e) => (e.rule ? t('forbidden.rule', { command: e.command, rule: e.rule }) : e.message);

/**
 * The names of commands that the user may not run, as a line of a screen.
 * @param {string[]|undefined} denied
 * @param {(key: string, vars: any) => string} t
 */
export const missing = (denied, t) => (denied && denied.length ? t('denied', { n: denied.length, commands: denied.join(', ') }) : '');

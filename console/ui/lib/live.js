// A screen that reads its state again while the page is visible.

/**
 * Calls read now, and again ms after each call has ended, while the page is visible and the news are not paused. An error goes to ctx.fail once,
 * until a call succeeds.
 * @param {import('../app.js').Ctx} ctx @param {number} ms @param {() => Promise<any>} read
 */
export function live(ctx, ms, read) {
  /** @type {any} */ let timer = 0;
  let failed = false, over = false;
  async function beat() {
    clearTimeout(timer);
    if (over) return;
    if (!document.hidden) {
      try { await read(); failed = false; } catch (e) {
        if (!failed && /** @type {Error} */ (e).name !== 'AbortError') ctx.fail(e);
        failed = true;
      }
    }
    if (!over) timer = setTimeout(beat, ms);
  }
  ctx.onClose(() => { over = true; clearTimeout(timer); });
  beat();
  return beat;
}

/** The names of commands that the user may not run, as a line of a screen. @param {string[]|undefined} denied @param {(key: string, vars: any) => string} t */
export const missing = (denied, t) => (denied && denied.length ? t('denied', { commands: denied.join(', ') }) : '');

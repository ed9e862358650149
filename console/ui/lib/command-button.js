// Small buttons that run a command.
import { run } from './api.js';

/** @import { Ctx, Words } from './types.js' */
/** @import { RunOptions } from './api.js' */

/**
 * Makes a small button that asks the user, runs a command, and then calls a function.
 * @param {Ctx} ctx
 * @param {string} action
 * @param {string} label
 * @param {() => Words} command
 * @param {() => unknown} after
 * @param {RunOptions|(() => RunOptions)} [o]
 */
export const commandButton = (ctx, action, label, command, after, o) =>
  ctx.button(
    action,
    label,
    async () => {
      if (await run(ctx.db, command(), typeof o === 'function' ? o() : o)) after();
    },
    { small: true },
  );

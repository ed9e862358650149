// A sample command for a screen without data, with buttons that copy it and open it in the shell.
import { copier } from '../lib/bytes.js';
import { h } from '../lib/h.js';
import { t } from '../lib/i18n.js';

/** @import { Ctx } from '../lib/types.js' */

/** @param {Ctx} ctx @param {string} line */
export const firstCommand = (ctx, line) =>
  h(
    'div',
    { class: 'row' },
    h('code', { class: 'command mono' }, line),
    copier(() => line),
    ctx.me.writes && h('a', { href: ctx.link('shell', { line }) }, t('shell.open')),
  );

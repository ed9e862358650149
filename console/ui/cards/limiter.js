// One limiter: what is left of its limit, and what it would answer.
import { h, fill, setText } from '../lib/h.js';
import { exec, integerOf, messageOf, run } from '../lib/api.js';
import { dialog } from '../lib/dialog.js';
import { argv, line, text } from '../lib/bytes.js';
import { t, num, span } from '../lib/i18n.js';

/** @import { LimitRow, Reply } from '../lib/types.js' */

/** What is left of a limit, as a bar and as figures. @param {LimitRow} r */
export function remaining(r) {
  const meter = h('meter', { min: 0, max: Math.max(1, r.limit), value: Math.max(0, r.remaining), 'aria-hidden': 'true' });
  return h('span', null, meter, ' ', num(r.remaining) + ' / ' + num(r.limit));
}

/** The command that takes n requests, or asks what the limiter would answer. @param {LimitRow} r @param {string} n @param {boolean} peek */
function take(r, n, peek) {
  const burst = r.algorithm === 'gcra' ? ['BURST', r.burst] : [];
  return argv('RL.TAKE', r.k, r.limit, r.period, ...burst, 'COST', n || 0, 'ALGO', r.algorithm, ...(peek ? ['PEEK'] : []));
}

/** The answer to n requests in words. @param {HTMLElement} el @param {Reply} x @param {number} n */
function showAnswer(el, x, n) {
  el.classList.toggle('error', !!x.error);
  if (x.error || !Array.isArray(x.reply)) {
    setText(el, x.text);
    return;
  }
  const [ok, most, left, retry] = x.reply.map((v) => Number(integerOf(v)));
  el.classList.toggle('look', !ok);
  if (ok) setText(el, t('limits.whatif.yes', { left: left - n, most }));
  else if (retry < 0) setText(el, t('limits.whatif.never', { most }));
  else setText(el, t('limits.whatif.no', { span: span(retry / 1000), left }));
}

/**
 * Asks by RL.TAKE with PEEK what the limiter would answer to n requests now, and takes them if the user wants. taken is called then.
 * @param {number} db
 * @param {LimitRow} r
 * @param {() => unknown} taken
 */
export async function whatIf(db, r, taken) {
  const n = h('input', { type: 'number', min: 0, value: '1', required: true }),
    preview = h('pre', { class: 'command' }),
    answer = h('p', { role: 'status' }, t('limits.whatif.ask')),
    paint = () => fill(preview, line(take(r, n.value, true)));
  const ask = async () => {
    const x = await exec(db, take(r, n.value, true)).catch((e) => ({ error: true, text: messageOf(e), reply: null, ms: 0 }));
    showAnswer(answer, x, Number(n.value));
  };
  n.addEventListener('input', paint);
  paint();
  const sure = await dialog({
    title: t('limits.whatif.of', { name: text(r.k) }),
    ok: t('limits.whatif.take'),
    body: [
      h('label', null, h('span', null, t('limits.whatif.n')), n),
      h('p', { class: 'faint' }, t('limits.whatif.text', { limit: r.limit, span: span(r.period) })),
      preview,
      h('div', { class: 'row asks' }, h('button', { type: 'button', on: { click: ask } }, t('limits.whatif.button')), answer),
    ],
  });
  if (sure && (await run(db, take(r, n.value, false), { quiet: true }))) taken();
}

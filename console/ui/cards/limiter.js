// One limiter: what is left of its limit, and what it would answer.
import { h, fill, setText } from '../lib/h.js';
import { exec, integerOf, messageOf } from '../lib/api.js';
import { confirmCommand, dialog } from '../lib/dialog.js';
import { argv, line, text } from '../lib/bytes.js';
import { t, num, span } from '../lib/i18n.js';

/** @import { B, LimitRow, Reply } from '../lib/types.js' */

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

/**
 * The answer to n requests in words: of a check, or after they were taken.
 * @param {HTMLElement} el
 * @param {Reply} x
 * @param {number} n
 * @param {boolean} peek
 */
function showAnswer(el, x, n, peek) {
  el.classList.toggle('error', !!x.error);
  if (x.error || !Array.isArray(x.reply)) {
    setText(el, x.text);
    return;
  }
  const [ok, most, left, retry] = x.reply.map((v) => Number(integerOf(v))),
    nothing = peek ? '' : ' ' + t('limits.whatif.nothing');
  el.classList.toggle('look', !ok);
  if (ok && peek) setText(el, t('limits.whatif.yes', { left: left - n, most }));
  else if (ok) setText(el, t('limits.whatif.taken', { n, left, most }));
  else if (retry < 0) setText(el, t('limits.whatif.never', { most }) + nothing);
  else setText(el, t('limits.whatif.no', { span: span(retry / 1000), left }) + nothing);
}

/** @param {number} db @param {B[]} command @returns {Promise<Reply>} */
const answerOf = (db, command) => exec(db, command).catch((e) => ({ error: true, text: messageOf(e), reply: null, ms: 0 }));

/**
 * Asks by RL.TAKE with PEEK what the limiter would answer to n requests now. A button apart takes them, after a question. taken is
 * called then.
 * @param {number} db
 * @param {LimitRow} r
 * @param {() => unknown} taken
 */
export async function whatIf(db, r, taken) {
  // It belongs to no form: Enter checks, and does not close the dialog.
  const n = h('input', { type: 'number', min: 0, value: '1', form: '' }),
    preview = h('pre', { class: 'command' }),
    answer = h('p', { role: 'status' }, t('limits.whatif.ask')),
    consume = h('button', { type: 'button', on: { click: () => takeNow() } });
  function paint() {
    fill(preview, line(take(r, n.value, true)));
    setText(consume, t('limits.whatif.take', { n: Number(n.value) }));
    consume.disabled = !(Number(n.value) > 0);
  }
  const check = async () => showAnswer(answer, await answerOf(db, take(r, n.value, true)), Number(n.value), true);
  async function takeNow() {
    const count = n.value,
      argv = take(r, count, false);
    if (!(await confirmCommand({ argv, text: t('limits.whatif.take.text') }))) return;
    showAnswer(answer, await answerOf(db, argv), Number(count), false);
    taken();
  }
  n.addEventListener('input', paint);
  n.addEventListener('keydown', (e) => {
    if (e.key === 'Enter') check();
  });
  paint();
  await dialog({
    title: t('limits.whatif.of', { name: text(r.k) }),
    body: [
      h('label', null, h('span', null, t('limits.whatif.n')), n),
      h('p', { class: 'faint' }, t('limits.whatif.text', { limit: r.limit, span: span(r.period) })),
      preview,
      h(
        'div',
        { class: 'row asks' },
        h('button', { type: 'button', class: 'primary', on: { click: check } }, t('limits.whatif.button')),
        answer,
      ),
      h('p', null, consume),
    ],
  });
}

// The forms of a queue, the actions on its dead letters, and the card of its schedules.
import { clock, errorOf, exec, integerOf, post } from '../lib/api.js';
import { argv, fromText, id, line, plain } from '../lib/bytes.js';
import * as column from '../lib/column.js';
import { commandButton } from '../lib/command-button.js';
import { ago, ttl } from '../lib/countdown.js';
import { confirmCommand, form, toast } from '../lib/dialog.js';
import { section } from '../lib/h.js';
import { parseSpan, t } from '../lib/i18n.js';
import { table } from '../lib/table.js';

/** @import { B, Column, Ctx, QueueRow, ScheduleRow } from '../lib/types.js' */

/** Asks how long a queue should pause. @param {B} key */
export const askPause = (key) =>
  form({
    title: t('queues.pause'),
    text: t('queues.pause.text'),
    fields: [{ name: 'for', label: t('queues.pause.for'), value: '' }],
    command: (v) => {
      const ms = v.for ? parseSpan(v.for) : 0;
      return Number.isNaN(ms) || (v.for && ms < 1) ? t('form.span') : argv('DQ.CONFIG', key, 'PAUSED', ms > 0 ? ms : 'yes');
    },
  });

/** Asks for a new job. @param {B} key */
export const askJob = (key) =>
  form({
    title: t('queues.add'),
    fields: [
      { name: 'payload', label: t('queues.payload'), type: 'area', rows: 4, value: '' },
      { name: 'delay', label: t('queues.add.delay'), value: '', hint: t('queues.add.delay.hint') },
      { name: 'id', label: t('queues.add.id'), value: '', hint: t('queues.add.id.hint') },
    ],
    command: (v) => {
      const ms = v.delay ? parseSpan(v.delay) : 0;
      if (Number.isNaN(ms)) return t('form.span');
      return argv('DQ.ADD', key, fromText(v.id || '*'), fromText(v.payload), ...(ms ? ['DELAY', ms] : []));
    },
  });

/** The fields of the form about a queue's limits: the word of DQ.CONFIG, the text, and the present value. @param {QueueRow} q */
const limits = (q) =>
  /** @type {Array<[string, string, string]>} */ ([
    ['MAXDELIVERIES', 'queues.most', String(q.most)],
    ['DEADLETTER', 'queues.deadletters.to', plain(q.to || { t: '' }) ?? ''],
    ['MAXLEN', 'queues.maxlen', String(q.maxLen)],
    ['DELIVER', 'queues.delivers', plain(q.stream || { t: '' }) ?? ''],
  ]);

/** Asks for the limits of a queue, and sets those that the user has changed. @param {QueueRow} q */
export const askConfig = (q) =>
  form({
    title: t('queues.config'),
    text: t('queues.config.text'),
    fields: limits(q).map(([name, words, value]) => ({ name, label: t(words), value })),
    command: (v) => {
      const changed = limits(q).filter(([name, , value]) => v[name] !== value);
      if (changed.some(([name]) => name.startsWith('MAX') && !/^\d+$/.test(v[name]))) return t('form.number');
      return changed.length ? argv('DQ.CONFIG', q.k, ...changed.flatMap(([name]) => [name, fromText(v[name])])) : t('form.nochange');
    },
  });

/** How many of the jobs are still in a queue; null if the user may not ask. @param {number} db @param {B} queue @param {B[]} ids */
async function countLeft(db, queue, ids) {
  const cmds = ids.map((x) => argv('DQ.GET', queue, x)),
    a = await post('batch', { db, cmds, atomic: false }).catch(() => null);
  return !a || a.replies.some(errorOf) ? null : a.replies.filter((r) => r !== null).length;
}

/**
 * Asks the user, moves dead letters back to their queue, and explains why some stay. Returns whether it tried.
 * @param {number} db
 * @param {B[]} command
 * @param {B} from
 * @param {B[]} ids the ids of all or some of the jobs that the command moves
 * @param {string} text
 */
export async function requeue(db, command, from, ids, text) {
  if (!(await confirmCommand({ argv: command, text }))) return false;
  const { reply, error, text: words } = await exec(db, command),
    moved = Number(integerOf(reply) || 0),
    left = error || moved >= ids.length ? 0 : await countLeft(db, from, ids);
  if (error) toast(words, 'bad');
  else if (left) toast(t('queues.requeue.there', { n: left }), 'bad');
  else if (!moved && left === 0) toast(t('queues.job.moved'), 'bad');
  else toast(line(command) + ' → ' + words, moved ? 'good' : 'bad');
  return true;
}

/**
 * Jobs that become due now pass through a temporary queue. Returns a key for it in the hash slot of the given queue; '' if none exists.
 * @param {B} k
 */
export function runNowQueue(k) {
  const key = plain(k) ?? '',
    from = key.indexOf('{'),
    to = from < 0 ? -1 : key.indexOf('}', from + 1),
    tag = from >= 0 && to > from + 1 ? key.slice(from + 1, to) : key;
  return tag && !tag.includes('}') ? '{' + tag + '}:run-now-' + crypto.getRandomValues(new Uint32Array(1))[0].toString(36) : '';
}

/** A text for an instant: a countdown, or the time since. @param {number|null} at */
function near(at) {
  const now = clock();
  if (at === null) return '–';
  return at > now ? ttl(at - now, now, { done: t('time.now') }) : ago(at);
}

/** @returns {Column<ScheduleRow>[]} */
const columns = () => [
  column.name('name', t('keys.name'), (r) => r.name, { wide: true }, 80),
  column.code('rule', t('queues.rule'), (r) => r.rule + (r.zone ? ' ' + r.zone : ''), { wide: true }),
  column.of('next', t('queues.next'), (r) => r.next, { num: true, cell: (r) => near(r.next) }),
  column.of('last', t('queues.last'), (r) => r.last ?? 0, { num: true, minor: true, cell: (r) => near(r.last) }),
  column.number('runs', t('queues.runs'), (r) => r.runs),
  column.number('skipped', t('queues.skipped'), (r) => r.skipped),
  column.number('late.runs', t('queues.late.runs'), (r) => r.late, { minor: true }),
];

/** The card of a queue's schedules. It is hidden while there are none. @param {Ctx} ctx @param {() => B} key @param {() => void} after */
export function schedulesCard(ctx, key, after) {
  const schedules = table({
    label: t('queues.schedules'),
    key: (r) => id(r.name),
    fade: false,
    columns: columns(),
    actions: (now) =>
      commandButton(ctx, 'queues.unschedule', t('queues.unschedule'), () => ['DQ.UNSCHEDULE', key(), now().name], after, {
        danger: true,
        text: t('queues.unschedule.text'),
      }),
  });
  const el = section(t('queues.schedules'), schedules.el);
  el.hidden = true;
  return {
    el,
    /** @param {ScheduleRow[]} rows */
    set(rows) {
      el.hidden = !rows.length;
      schedules.set(rows);
    },
  };
}

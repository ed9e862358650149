// Now: the concerns, six figures, the expirations of the next minute, and the last 15 minutes.
import { h, fill, setText, section } from '../lib/h.js';
import { lines, bars } from '../lib/chart.js';
import { samples } from '../lib/events.js';
import { clock, get, isAbort, messageOf } from '../lib/api.js';
import { poll } from '../lib/poll.js';
import { t, num, brief, size, micros, span, time, percent } from '../lib/i18n.js';
import { attentionList } from '../cards/attention.js';
import { firstCommand } from '../cards/first-command.js';

/** @import { ConcernsAnswer, Ctx, Sample } from '../lib/types.js' */

export const title = 'now.title';

/** The heights of charts, px. */
const HEIGHT = 132;
const FIRST_COMMAND = 'SET hello world PX 30000';

/** A figure with a line of text, as a link to a screen. @param {Ctx} ctx @param {string} name @param {string} screen */
function tile(ctx, name, screen) {
  const figure = h('b', null, '–'),
    note = h('span', null, ' ');
  return {
    el: h('a', { class: 'tile', href: ctx.link(screen) }, h('span', null, t('now.' + name)), figure, note),
    /** @param {string} words @param {string} below */
    set: (words, below) => {
      setText(figure, words);
      setText(note, below);
    },
  };
}

/** A sample's state of the replication, in words. @param {Sample} s */
function replicationNote(s) {
  const lag = span((s.replLag || 0) * 1000);
  if (s.role === 'replica') return s.link === 'up' ? t('now.master.heard', { lag }) : t('now.master.down');
  return t('now.replicas', { n: s.replicas || 0 }) + (s.replicas ? ' · ' + lag : '');
}

/** The six figures. @param {Ctx} ctx */
function tiles(ctx) {
  const keys = tile(ctx, 'keys', 'keys'),
    ops = tile(ctx, 'ops', 'performance'),
    mem = tile(ctx, 'mem', 'server'),
    lag = tile(ctx, 'lag', 'expiry'),
    clients = tile(ctx, 'clients', 'server'),
    role = tile(ctx, 'role', 'server');
  return {
    el: h(
      'div',
      { class: 'tiles' },
      [keys, ops, mem, lag, clients, role].map((x) => x.el),
    ),
    /** @param {Sample} s */
    set: (s) => {
      keys.set(brief(s.keys), t('now.keys.ttl', { n: brief(s.keysTTL) }));
      ops.set(brief(Math.round(s.ops)) + '/s', 'p50 ' + micros(s.p50) + ' · p99 ' + micros(s.p99));
      const limit = s.memMax ? t('now.mem.share', { max: size(s.memMax), share: percent(s.mem / s.memMax) }) : t('now.mem.nolimit');
      mem.set(size(s.mem), limit + ' · rss ' + size(s.rss));
      lag.set(span(s.lag99), s.backlog > 0 ? t('now.backlog', { n: s.backlog }) : t('now.ontime'));
      clients.set(num(s.clients), t('now.waiting', { n: s.waiting || 0 }));
      role.set(t('role.' + (s.role || 'master')), replicationNote(s));
    },
  };
}

/** The chart of the expirations in the next minute. @param {Ctx} ctx */
function nextMinute(ctx) {
  const chart = h('div'),
    note = h('p', { class: 'faint' });
  /**
   * A text about the expirations of the minute.
   * @param {Sample} s @param {number[]} due @param {number} from @param {number|undefined} worst
   */
  function words(s, due, from, worst) {
    const total = due.reduce((a, b) => a + b, 0);
    if (!total) return t('now.nothing');
    if (worst === undefined) return t('now.due', { n: total });
    const seconds = Math.max(1, Math.round((from + worst * 1000 - (s.at || from)) / 1000));
    return t('now.storm', { n: due[worst], in: seconds, share: percent(due[worst] / s.keys) });
  }
  return {
    el: section(t('now.next'), note, chart),
    /** @param {Sample} s */
    set: (s) => {
      const due = s.due || [],
        from = s.dueFrom || s.at || clock(),
        storms = new Set(due.flatMap((n, i) => (s.keys > 100 && n > s.keys / 10 ? [i] : [])));
      note.className = storms.size ? 'look' : 'faint';
      setText(note, words(s, due, from, [...storms][0]));
      bars(chart, [{ label: t('now.expirations'), cls: 's-key', values: due }], {
        label: t('now.next'),
        x: (i) => (i ? t('now.in', { n: i }) : t('now.now')) + ' · ' + time(from + i * 1000),
        tick: (i) => (i ? '+' + t('unit.s', { n: i }) : t('now.now')),
        marks: storms,
        height: HEIGHT,
        pick: () => ctx.go('expiry'),
      });
    },
  };
}

/** The charts of the last 15 minutes. */
function history() {
  const ops = h('div'),
    times = h('div');
  return {
    el: h('div', { class: 'cols' }, section(t('now.history.ops'), ops), section(t('now.history.p99'), times)),
    draw: () => {
      const all = samples(),
        at = all.map((p) => p.at);
      /** @param {'ops'|'p50'|'p99'} name */
      const series = (name) => all.map((p) => p[name]);
      lines(ops, at, [{ label: t('now.ops'), cls: 's-key', values: series('ops'), format: (n) => num(n) + '/s' }], {
        label: t('now.history.ops'),
        height: HEIGHT,
      });
      lines(
        times,
        at,
        [
          { label: 'p50', cls: 's-other', values: series('p50'), format: micros },
          { label: 'p99', cls: 's-member', values: series('p99'), format: micros },
        ],
        { label: t('now.history.p99'), unit: micros, height: HEIGHT },
      );
    },
  };
}

/** A first command, shown while the server is empty. @param {Ctx} ctx */
const firstSteps = (ctx) => section(t('now.empty'), h('p', null, t('now.empty.text')), firstCommand(ctx, FIRST_COMMAND));

/** @param {HTMLElement} root @param {Ctx} ctx */
export function open(root, ctx) {
  const attention = attentionList(ctx),
    first = h('div'),
    figures = tiles(ctx),
    next = nextMinute(ctx),
    past = history();
  fill(root, h('h1', { class: 'sr' }, t('now.title')), attention.el, first, figures.el, next.el, past.el);
  poll(ctx, 3000, async () => {
    /** @type {ConcernsAnswer|null} */
    let concerns = null;
    let failure = '';
    try {
      concerns = await get('concerns', { db: ctx.db }, ctx.stop);
    } catch (e) {
      if (isAbort(e)) throw e;
      failure = messageOf(e); // for example, a script is running for long
    }
    attention.setData(concerns, failure);
  });
  /** @param {Sample} s */
  function draw(s) {
    attention.setServer(s.attention || []);
    figures.set(s);
    next.set(s);
    fill(first, s.keys === 0 && firstSteps(ctx));
    past.draw();
  }
  const before = samples();
  if (before.length) draw(before[before.length - 1]);
  ctx.onEvent('sample', '', (s, event) => {
    const all = samples();
    if (event === 'sample') draw(s);
    else if (all.length) draw(all[all.length - 1]);
  });
}

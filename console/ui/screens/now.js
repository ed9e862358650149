// Now: what needs attention, six figures, what falls due in the next minute, and the last 15 minutes.
import { h, fill, say, list } from '../lib/h.js';
import { lines, bars } from '../lib/chart.js';
import { samples, clock } from '../lib/events.js';
import { get } from '../lib/api.js';
import { live, missing } from '../lib/poll.js';
import { copier, show, text, url } from '../lib/bytes.js';
import { t, num, brief, size, micros, span, time, percent, has } from '../lib/i18n.js';

export const title = 'now.title';
export const topics = () => ['sample'];

/** The screen that lists all concerns of a kind. */
const SCREEN = new Map([
  ['dead', 'queues'],
  ['unattended', 'queues'],
  ['undelivered', 'queues'],
  ['throttled', 'limits'],
  ['lockwait', 'locks'],
  ['behind', 'streams'],
  ['rule', 'streams'],
]);

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const hand = h('div'),
    doubt = h('p', { class: 'faint', role: 'status', hidden: true }),
    first = h('div'),
    strip = h('div'),
    past = h('div'),
    late = h('div'),
    said = h('p', { class: 'faint' });
  const tile = (/** @type {string} */ name, /** @type {string} */ screen) => {
    const big = h('b', null, '–'),
      small = h('span', null, ' ');
    return { big, small, el: h('a', { class: 'tile', href: ctx.link(screen) }, h('span', null, t('now.' + name)), big, small) };
  };
  const keys = tile('keys', 'keys'),
    ops = tile('ops', 'performance'),
    mem = tile('mem', 'server'),
    lag = tile('lag', 'expiry'),
    clients = tile('clients', 'server'),
    role = tile('role', 'server');
  fill(
    root,
    h('h1', { class: 'sr' }, t('now.title')),
    hand,
    doubt,
    first,
    h(
      'div',
      { class: 'tiles' },
      [keys, ops, mem, lag, clients, role].map((x) => x.el),
    ),
    h('section', { class: 'card' }, h('h2', null, t('now.next')), said, strip),
    h(
      'div',
      { class: 'cols' },
      h('section', { class: 'card' }, h('h2', null, t('now.past.ops')), past),
      h('section', { class: 'card' }, h('h2', null, t('now.past.p99')), late),
    ),
  );

  /** What is wrong in the server as a whole, by the latest sample; and among its data. null: not known yet. @type {any[]|null} */
  let whole = null;
  /** @type {any} */ let data = null;
  /** Why the data could not be looked at; '': it was. */
  let unchecked = '';
  /** Where a concern leads to. @param {any} r */
  function place(r) {
    if (!r.k) return ctx.link(r.screen);
    const k = url(r.k);
    if (r.code === 'behind') return ctx.link('streams', { db: r.db, k, g: url(r.group) });
    if (r.code === 'throttled') return ctx.link('limits', { db: r.db, k });
    if (r.code === 'lockwait') return ctx.link('locks', { db: r.db, k });
    if (r.code === 'rule') return ctx.link('streams', { db: r.db });
    return ctx.link('queues', { db: r.db, k, s: r.code === 'dead' ? 'dead' : undefined });
  }
  function hands() {
    if (!whole || (!data && !unchecked)) {
      fill(hand, h('p', { class: 'faint' }, t('now.checking')));
      return;
    }
    fill(doubt, unchecked && [t('now.unchecked', { why: unchecked }), data?.rows.length > 0 && ' ' + t('now.before')]);
    doubt.hidden = !unchecked;
    /** The others of a kind stand behind the worst ones as one line. @type {any[]} */
    const found = (data ? data.rows : []).flatMap((/** @type {any} */ r, /** @type {number} */ i, /** @type {any[]} */ all) => {
      const n = data.more?.[r.code];
      return n && all[i + 1]?.code !== r.code ? [r, { code: r.code, level: r.level, others: n, screen: SCREEN.get(r.code) }] : [r];
    });
    const rows = [...whole, ...found].sort((a, b) => (a.level === b.level ? 0 : a.level === 'act' ? -1 : 1));
    if (!rows.length && unchecked) {
      fill(hand);
      return;
    }
    if (!rows.length) {
      const part = data.denied && data.denied.length;
      fill(
        hand,
        h('p', { class: 'calm' }, '✓ ' + t(part ? 'now.calm.part' : 'now.calm')),
        part && h('p', { class: 'faint' }, missing(data.denied, t)),
      );
      return;
    }
    let ul = hand.querySelector('ul');
    if (!ul) fill(hand, h('section', { class: 'card hand' }, h('h2', null, t('now.hand')), (ul = h('ul'))));
    ul.parentElement?.classList.toggle(
      'act',
      rows.some((r) => r.level === 'act'),
    );
    const words = (/** @type {any} */ r) =>
      r.others
        ? t('now.others', { n: r.others })
        : has('now.a.' + r.code)
          ? t('now.a.' + r.code, { n: r.n, span: span(r.ms), why: r.why, group: r.group ? text(r.group) : '' })
          : r.text;
    const fresh = (/** @type {any} */ r) =>
      h(
        'li',
        null,
        h('b', { class: r.level === 'act' ? 'bad' : 'look' }, t(r.level === 'act' ? 'now.act' : 'now.look')),
        h(
          'span',
          null,
          r.k && [h('a', { href: place(r) }, show(r.k, 60)), r.db !== ctx.db && h('small', null, ' db' + r.db), ': '],
          h('span', null, words(r)),
          !r.k && r.screen && [' ', h('a', { href: place(r) }, t('now.see'))],
        ),
      );
    list(
      ul,
      rows,
      (r) => r.code + (r.db ?? '') + JSON.stringify([r.k, r.group, !!r.others]) + r.text,
      fresh,
      (el, r) => say(el.lastElementChild.querySelector(':scope > span:not(.bytes)'), words(r)),
    );
  }
  live(ctx, 3000, async () => {
    try {
      data = await get('concerns', { db: ctx.db }, ctx.stop);
      unchecked = '';
    } catch (e) {
      if (/** @type {Error} */ (e).name === 'AbortError') throw e;
      unchecked = /** @type {Error} */ (e).message; // a script runs for long, say
    }
    hands();
  });

  /** @param {any} s */
  function draw(s) {
    whole = s.attention || [];
    hands();
    say(keys.big, brief(s.keys));
    say(keys.small, t('now.withttl', { n: brief(s.keysTTL) }));
    say(ops.big, brief(Math.round(s.ops)) + '/s');
    say(ops.small, 'p50 ' + micros(s.p50) + ' · p99 ' + micros(s.p99));
    say(mem.big, size(s.mem));
    say(
      mem.small,
      (s.memMax ? t('now.memof', { max: size(s.memMax), share: percent(s.mem / s.memMax) }) : t('now.memfree')) + ' · rss ' + size(s.rss),
    );
    say(lag.big, s.lag99 === null || s.lag99 === undefined ? '–' : span(s.lag99));
    say(lag.small, s.backlog > 0 ? t('now.backlog', { n: s.backlog }) : t('now.ontime'));
    say(clients.big, num(s.clients));
    say(clients.small, t('now.waiting', { n: s.waiting || 0 }));
    say(role.big, t('role.' + (s.role || 'master')));
    say(
      role.small,
      s.role === 'replica'
        ? s.link === 'up' || s.link === true
          ? t('now.heard', { lag: span((s.replLag || 0) * 1000) })
          : t('now.linkdown')
        : t('now.replicas', { n: s.replicas || 0 }) + (s.replicas ? ' · ' + span((s.replLag || 0) * 1000) : ''),
    );
    const due = s.due || [],
      total = due.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0);
    const storms = new Set(due.flatMap((/** @type {number} */ n, /** @type {number} */ i) => (s.keys > 100 && n > s.keys / 10 ? [i] : [])));
    const from = s.dueFrom || s.at || clock(),
      worst = [...storms][0];
    const left = (/** @type {number} */ i) => Math.max(1, Math.round((from + i * 1000 - (s.at || from)) / 1000));
    said.className = storms.size ? 'look' : 'faint';
    say(
      said,
      total === 0
        ? t('now.nothing')
        : worst !== undefined
          ? t('now.storm', { n: due[worst], in: left(worst), share: percent(due[worst] / s.keys) })
          : t('now.due', { n: total }),
    );
    bars(strip, [{ label: t('now.fall'), cls: 's-key', values: due }], {
      label: t('now.next'),
      x: (i) => (i ? t('now.in', { n: i }) : t('now.now')) + ' · ' + time(from + i * 1000),
      tick: (i) => (i ? '+' + i + ' s' : t('now.now')),
      marks: storms,
      height: 132,
      pick: () => ctx.go('expiry'),
    });
    fill(first);
    if (s.keys === 0) {
      const line = 'SET hello world PX 30000';
      fill(
        first,
        h(
          'section',
          { class: 'card' },
          h('h2', null, t('now.empty')),
          h('p', null, t('now.try')),
          h(
            'div',
            { class: 'row' },
            h('code', { class: 'command mono' }, line),
            copier(() => line),
            !ctx.me.readOnly && h('a', { href: ctx.link('shell', { line }) }, t('now.shell')),
          ),
        ),
      );
    }
    const all = samples(),
      times = all.map((p) => p.at);
    const series = (/** @type {string} */ name) => all.map((p) => p[name]);
    lines(past, times, [{ label: t('now.ops'), cls: 's-key', values: series('ops'), format: (n) => num(n) + '/s' }], {
      label: t('now.past.ops'),
      height: 132,
    });
    lines(
      late,
      times,
      [
        { label: 'p50', cls: 's-other', values: series('p50'), format: micros },
        { label: 'p99', cls: 's-member', values: series('p99'), format: micros },
      ],
      { label: t('now.past.p99'), unit: micros, height: 132 },
    );
  }
  const was = samples();
  if (was.length) draw(was[was.length - 1]);
  ctx.onNews('sample', (s, event) => {
    const all = samples();
    if (event === 'sample') draw(s);
    else if (all.length) draw(all[all.length - 1]);
  });
}

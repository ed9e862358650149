// Queues: delay queues with lateness and waiting consumers; one of them with its jobs by state.
import { h, fill, say } from '../lib/h.js';
import { get, run, runAll } from '../lib/api.js';
import { dialog, form } from '../lib/dialog.js';
import { table } from '../lib/table.js';
import { listed, live, missing, partly } from '../lib/poll.js';
import { ttl } from '../lib/countdown.js';
import { clock } from '../lib/events.js';
import { argv, copier, fromText, id, plain, show, text, url } from '../lib/bytes.js';
import { pretty } from '../lib/formats.js';
import { t, num, parseSpan, span } from '../lib/i18n.js';

export const title = 'queues.title';
const FIRST = 'DQ.ADD mail * hello DELAY 30000';

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const { db, params, button } = ctx,
    said = h('p', { class: 'faint' }),
    k = params.get('k') || '';
  if (params.has('k')) {
    detail();
    return;
  }
  const title_ = h('div', { class: 'titlebar' });
  /** The instant at which a queue was first seen with ready jobs and no consumer. @type {Map<string, number>} */
  const alone = new Map();
  const count = (/** @type {string} */ name) => ({
    id: name,
    label: t('queues.' + name),
    num: true,
    value: (/** @type {any} */ r) => r[name],
    cell: (/** @type {any} */ r) => num(r[name]),
  });
  const one = table({
    label: t('queues.title'),
    key: (r) => id(r.k),
    fade: false,
    sort: ['dead', -1],
    stack: true,
    sorted: (by) => all.sorted(by),
    open: (r) => ctx.go('queues', { db, k: url(r.k) }),
    columns: [
      {
        id: 'k',
        label: t('keys.name'),
        wide: true,
        value: (r) => text(r.k),
        cell: (r) => [
          h('a', { href: ctx.link('queues', { db, k: url(r.k) }) }, show(r.k, 100, true)),
          r.paused && [' ', h('span', { class: 'badge look' }, t('queues.paused'))],
          r.sources?.length > 0 && [' ', h('span', { class: 'badge' }, t('queues.deadof')), ' ', names(r.sources)],
          r.shared && [' ', h('span', { class: 'badge' }, t('queues.shared'))],
          r.stream && [
            ' ',
            h('span', { class: 'badge' }, t('queues.delivers')),
            ' ',
            h('a', { href: ctx.link('streams', { db, k: url(r.stream) }) }, show(r.stream, 60)),
          ],
          r.alone && !r.paused && [' ', h('span', { class: 'badge look' }, t('queues.unattended'))],
        ],
      },
      count('delayed'),
      count('ready'),
      { ...count('leased'), minor: true },
      {
        id: 'late',
        label: t('queues.late'),
        num: true,
        minor: true,
        value: (r) => r.late,
        cell: (r) => h('span', { class: r.late > 5000 ? 'look' : '' }, r.ready ? span(r.late) : '–'),
      },
      {
        id: 'next',
        label: t('queues.next'),
        num: true,
        minor: true,
        value: (r) => r.next ?? Infinity,
        cell: (r) => (r.next === null ? '–' : r.next > clock() ? span(r.next - clock()) : t('limits.now')),
      },
      { id: 'waiting', label: t('queues.consumers'), num: true, minor: true, value: (r) => r.waiting, cell: (r) => num(r.waiting) },
      {
        id: 'dead',
        label: t('queues.dead'),
        num: true,
        value: (r) => r.letters ?? -1,
        cell: (r) =>
          r.letters === null
            ? '–'
            : r.letters
              ? h('a', { class: 'look', href: ctx.link('queues', { db, k: url(r.k), s: 'dead' }) }, num(r.letters))
              : '0',
      },
      { ...count('dropped'), minor: true },
    ],
    empty: () =>
      params.get('match')
        ? t('keys.nomatch')
        : [
            t('queues.none'),
            h('pre', { class: 'command' }, FIRST),
            !ctx.me.readOnly && h('a', { href: ctx.link('shell', { line: FIRST }) }, t('now.shell')),
          ],
  });
  fill(root, title_, h('p', { class: 'faint' }, t('queues.about')), said, h('section', { class: 'card' }, one.el));
  const all = listed(ctx, 'queues', '-dead', (a) => {
    const now = clock();
    /** The queues of dead letters, and whose they are. @type {Map<string, any[]>} */
    const sources = new Map();
    for (const r of a.rows) if (r.to) sources.set(id(r.to), [...(sources.get(id(r.to)) || []), r.k]);
    for (const r of a.rows) {
      const k = id(r.k);
      r.sources = sources.get(k) || [];
      r.shared = r.to && (sources.get(id(r.to)) || []).length > 1;
      if (r.sources.length) {
        alone.delete(k);
        continue;
      }
      if (r.ready > 0 && r.waiting === 0 && r.leased === 0) {
        if (!alone.has(k)) alone.set(k, now);
      } else alone.delete(k);
      r.alone = alone.has(k) && now - /** @type {number} */ (alone.get(k)) > 10000;
    }
    one.set(a.rows);
    say(said, missing(a.denied, t) || partly(a));
  });
  fill(title_, h('h1', null, t('queues.title')), all.filter);

  function detail() {
    const state = params.get('s') || 'ready',
      dead = state === 'dead';
    const head = h('div', { class: 'titlebar' }),
      tabs = h('nav', { class: 'titlebar', 'aria-label': t('queues.states') }),
      facts = h('dl', { class: 'facts' }),
      about = h('p', { class: 'faint' }, t('queues.about.' + state)),
      more = h('p', { class: 'faint' });
    /** The id that the user looks for. */ let finding = '';
    const search = h('input', {
      type: 'search',
      placeholder: t('queues.find'),
      'aria-label': t('queues.find'),
      spellcheck: 'false',
      on: {
        change: () => {
          finding = search.value.trim();
          again();
        },
      },
    });
    const next = h(
      'button',
      {
        type: 'button',
        hidden: true,
        on: {
          click: () => {
            pages.push(last);
            again();
          },
        },
      },
      t('queues.further'),
    );
    const first = h(
      'button',
      {
        type: 'button',
        hidden: true,
        on: {
          click: () => {
            pages.length = 0;
            again();
          },
        },
      },
      t('queues.first'),
    );
    /** The ids behind which the pages before this one end. @type {string[]} */ const pages = [];
    let last = '',
      over = 0;
    /** The queue. @type {any} */ let row = null;
    /** The key of the queue whose jobs are shown. @type {any} */ let shown = null;
    const act = async (/** @type {any[]} */ words, /** @type {any} */ o) => {
      if (await run(db, words, o)) again();
    };
    const resume = button(
      'queues.pause',
      t('queues.resume'),
      () => act(['DQ.CONFIG', row.k, 'PAUSED', 'no'], { text: t('queues.resume.text') }),
      { small: true },
    );
    const pause = button(
      'queues.pause',
      t('queues.pause'),
      async () => {
        const key = row.k;
        const a = await form({
          title: t('queues.pause'),
          text: t('queues.pause.text'),
          fields: [{ name: 'for', label: t('queues.pause.for'), value: '' }],
          command: (v) => {
            const ms = v.for ? parseSpan(v.for) : 0;
            return Number.isNaN(ms) || (v.for && ms < 1) ? t('queues.pause.bad') : argv('DQ.CONFIG', key, 'PAUSED', ms > 0 ? ms : 'yes');
          },
        });
        if (a) act(a.argv, { quiet: true });
      },
      { small: true },
    );
    const add = button(
      'queues.add',
      t('queues.add'),
      async () => {
        const key = row.k;
        const a = await form({
          title: t('queues.add'),
          fields: [
            { name: 'payload', label: t('queues.payload'), type: 'area', rows: 4, value: '' },
            { name: 'delay', label: t('queues.add.delay'), value: '', hint: t('queues.add.delay.hint') },
            { name: 'id', label: t('queues.add.id'), value: '', hint: t('queues.add.id.hint') },
          ],
          command: (v) => {
            const ms = v.delay ? parseSpan(v.delay) : 0;
            if (Number.isNaN(ms)) return t('queues.pause.bad');
            return argv('DQ.ADD', key, fromText(v.id || '*'), fromText(v.payload), ...(ms ? ['DELAY', ms] : []));
          },
        });
        if (a) act(a.argv, { quiet: true, unchanged: t('queues.add.there') });
      },
      { small: true },
    );
    const ids = () => jobs.selected().map((r) => r.id);
    /** The other queues whose dead letters go to the same queue, and whether there may be more. */
    let sharing = /** @type {any[]} */ ([]),
      unsure = false,
      asked = -Infinity;
    const requeue = (/** @type {any[]} */ of) =>
      act(['DQ.MOVE', shown, row.k, 'IDS', of.length, ...of], {
        text: t('queues.requeue.text') + (sharing.length || unsure ? ' ' + t('queues.requeue.shared') : ''),
        unchanged: t('queues.unmoved'),
      });
    const cancel = (/** @type {any[]} */ of) =>
      act(['DQ.CANCEL', shown, ...of], { danger: true, text: t('queues.cancel.text', { n: of.length }), unchanged: t('queues.unmoved') });
    /** Makes jobs due now. A queue beside takes them for a moment, so that they keep their payloads and priorities. @param {any[]} of */
    async function runNow(of) {
      const key = row.k,
        beside = fromText(beside_(plain(key) ?? ''));
      const done = await runAll(
        db,
        [
          ['DQ.MOVE', key, beside, 'IDS', of.length, ...of, 'DELAY', 0],
          ['DQ.MOVE', beside, key, 'IDS', of.length, ...of],
        ],
        {
          text: t('queues.run.text'),
          done: (r) => (r[1].i === '0' ? [t('queues.unmoved'), 'bad'] : [t('queues.run.done', { n: Number(r[1].i) }), 'good']),
        },
      );
      if (done) again();
    }
    const due = state === 'delayed' && button('queues.run', t('queues.run'), () => runNow(ids()), { small: true }),
      back = dead && button('queues.move', t('queues.requeue'), () => requeue(ids()), { small: true }),
      drop = button('queues.cancel', t('queues.cancel'), () => cancel(ids()), { danger: true, small: true });
    const chosen = h('div', { class: 'row', hidden: true }, h('b', null), due, back, drop);
    const cells = [
      {
        id: 'id',
        label: t('queues.job'),
        wide: true,
        value: (/** @type {any} */ r) => text(r.id),
        cell: (/** @type {any} */ r) => show(r.id, 80),
      },
      {
        id: 'payload',
        label: t('queues.payload'),
        wide: true,
        minor: true,
        value: (/** @type {any} */ r) => text(r.payload),
        cell: (/** @type {any} */ r) => show(r.payload, 120),
      },
      {
        id: 'deliveries',
        label: t('queues.deliveries'),
        num: true,
        minor: true,
        value: (/** @type {any} */ r) => r.deliveries,
        cell: (/** @type {any} */ r) => num(r.deliveries),
      },
      {
        id: 'due',
        label: t('queues.due'),
        num: true,
        value: (/** @type {any} */ r) => r.due,
        cell: (/** @type {any} */ r) => {
          const at = clock();
          return r.due > at ? ttl(r.due - at, at, { done: t('limits.now') }) : t('queues.ago', { span: span(at - r.due) });
        },
      },
      ...(state === 'leased'
        ? [
            {
              id: 'until',
              label: t('locks.lease'),
              num: true,
              value: (/** @type {any} */ r) => r.until,
              cell: (/** @type {any} */ r) => {
                const at = clock();
                return ttl(Math.max(0, r.until - at), at);
              },
            },
            { id: 'token', label: t('locks.token'), num: true, minor: true, value: (/** @type {any} */ r) => r.token },
          ]
        : []),
    ];
    const jobs = table({
      label: t('queues.jobs'),
      key: (r) => id(r.id),
      fade: false,
      columns: cells,
      open: look,
      empty: () => (finding ? t('queues.notfound') : t('queues.nojobs.' + state)),
      select:
        due || back || drop
          ? (rows) => {
              chosen.hidden = !rows.length;
              say(/** @type {Element} */ (chosen.firstElementChild), t('keys.chosen', { n: rows.length }));
            }
          : undefined,
      actions: (now) => [
        dead && button('queues.move', t('queues.requeue'), () => requeue([now().id]), { small: true }),
        state === 'delayed' && row && row.runs && button('queues.run', t('queues.run'), () => runNow([now().id]), { small: true }),
        ' ',
        button('queues.cancel', t('queues.cancel'), () => cancel([now().id]), { danger: true, small: true }),
      ],
    });
    /** Shows a whole job. @param {any} r */
    function look(r) {
      const full = plain(r.payload) ?? text(r.payload);
      let nice = full;
      try {
        if (/^\s*[[{]/.test(full)) nice = pretty(full);
      } catch {
        nice = full;
      }
      dialog({
        title: t('queues.job') + ' ' + text(r.id),
        wide: true,
        body: [
          h('div', { class: 'row' }, h('b', null, t('queues.payload')), r.payload.t !== undefined && copier(() => full)),
          r.payload.n !== undefined && h('p', { class: 'look' }, t(ctx.me.values ? 'key.cut' : 'key.hidden')),
          h('pre', { class: 'value', tabIndex: 0 }, nice),
        ],
      });
    }
    const all =
      dead &&
      button('queues.move', t('queues.requeue.all'), async () => {
        const text = t('queues.requeue.text');
        // Another queue may have begun to share these dead letters a moment ago.
        await share();
        if (!sharing.length && !unsure) act(['DQ.MOVE', shown, row.k, 'COUNT', 10000], { text, unchanged: t('queues.unmoved') });
      });
    const shares = h('p', { class: 'look', hidden: true });
    async function share() {
      asked = performance.now();
      const a = await get('queue', { db, k, limit: 1, sharing: 1 }, ctx.stop);
      sharing = a.sharing || [];
      unsure = !!a.unsure;
      shares.hidden = !sharing.length && !unsure;
      fill(shares, sharing.length ? [t('queues.shared.with'), ' ', names(sharing), '. '] : '', t('queues.shared.text'));
    }
    const plans = schedules(act, () => row.k);
    fill(
      root,
      h('p', null, h('a', { href: ctx.link('queues', { db }) }, t('queues.others'))),
      head,
      h('section', { class: 'card' }, facts),
      tabs,
      said,
      h(
        'section',
        { class: 'card' },
        h('div', { class: 'titlebar' }, about, h('span', { class: 'grow' }), search, all),
        shares,
        chosen,
        jobs.el,
        more,
        h('p', null, first, ' ', next),
      ),
      plans.card,
    );
    const again = live(ctx, 1000, async () => {
      const a = await get('queue', { db, k, limit: 1 }, ctx.stop);
      row = a.row;
      if (row) row.runs = beside_(plain(row.k) ?? '');
      if (due) due.hidden = !row || !row.runs;
      fill(
        head,
        h('h1', null, row ? show(row.k, 120) : t('queues.gone')),
        row &&
          row.paused &&
          h(
            'span',
            { class: 'badge look' },
            row.until === null ? t('queues.paused') : t('queues.paused.until', { span: span(Math.max(0, row.until - clock())) }),
          ),
        h('span', { class: 'grow' }),
        row && [add, row.paused ? resume : pause],
      );
      const to = (/** @type {string} */ name, /** @type {any} */ key) =>
        h('a', { href: ctx.link(name, { db, k: url(key) }) }, show(key, 60, true));
      const fact = (/** @type {string} */ label, /** @type {any} */ v, /** @type {string} */ cls = '') =>
        h('div', null, h('dt', null, label), h('dd', { class: cls }, v));
      fill(
        facts,
        row && [
          fact(t('queues.consumers'), num(row.waiting)),
          fact(
            t('queues.next'),
            row.next === null ? '–' : row.next > clock() ? t('queues.in', { span: span(row.next - clock()) }) : t('limits.now'),
          ),
          fact(t('queues.late'), row.ready ? span(row.late) : '–', row.ready && row.late > 5000 ? 'look' : ''),
          fact(t('queues.deadto'), row.to ? to('queues', row.to) : t('queues.nodead')),
          row.stream && fact(t('queues.delivers'), to('streams', row.stream)),
          row.wrong && fact(t('queues.wrong'), row.wrong, 'look'),
          row.dropped > 0 && fact(t('queues.dropped'), num(row.dropped), 'look'),
          h('div', null, h('dt', null, t('key.title')), h('dd', null, h('a', { href: ctx.link('key', { db, k }) }, t('queues.raw')))),
        ],
      );
      plans.set(a.schedules);
      fill(
        tabs,
        ...['ready', 'delayed', 'leased', 'dead'].map((s) =>
          h(
            'a',
            {
              href: ctx.link('queues', { db, k, s }),
              class: 'badge',
              'aria-current': s === state ? 'page' : undefined,
            },
            t('queues.' + s) + (!row ? '' : ' ' + num(s === 'dead' ? (row.letters ?? 0) : row[s])),
          ),
        ),
      );
      shown = dead ? row && row.to : row && row.k;
      const from = pages[pages.length - 1];
      const b = shown
        ? await get(
            'queue',
            { db, k: url(shown), state: dead ? 'all' : state, ...(finding ? { id: url(fromText(finding)) } : { from }) },
            ctx.stop,
          )
        : { jobs: [], more: false };
      if (from !== undefined && !finding && !b.jobs.length && !over) {
        over = 1;
        pages.pop();
      } else over = 0; // the job has gone: the page before
      jobs.set(b.jobs);
      say(about, t(dead && row && !row.to ? 'queues.about.nodead' : 'queues.about.' + state));
      last = b.jobs.length ? url(b.jobs[b.jobs.length - 1].id) : '';
      next.hidden = !b.more;
      first.hidden = !pages.length;
      if (dead && row && row.to && performance.now() - asked > 10000) await share();
      if (all) all.hidden = !b.jobs.length || sharing.length > 0 || unsure;
      say(
        said,
        missing(
          [...(a.denied || []), ...(b.denied || [])].filter((x, i, l) => l.indexOf(x) === i),
          t,
        ),
      );
      say(more, b.more ? t('list.more', { n: b.jobs.length }) : '');
    });
  }

  /**
   * The card of a queue's schedules. It is hidden while there are none.
   * @param {(words: any[], o: any) => Promise<void>} act @param {() => any} key
   */
  function schedules(act, key) {
    const when = (/** @type {number|null} */ at) =>
      at === null
        ? '–'
        : at > clock()
          ? ttl(at - clock(), clock(), { done: t('limits.now') })
          : t('queues.ago', { span: span(clock() - at) });
    const count = (/** @type {string} */ name) => ({
      id: name,
      label: t('queues.' + name),
      num: true,
      value: (/** @type {any} */ r) => r[name],
      cell: (/** @type {any} */ r) => num(r[name]),
    });
    const list = table({
      label: t('queues.schedules'),
      key: (r) => id(r.name),
      fade: false,
      actions: (now) => [
        button(
          'queues.unschedule',
          t('queues.unschedule'),
          () => act(['DQ.UNSCHEDULE', key(), now().name], { danger: true, text: t('queues.unschedule.text') }),
          { danger: true, small: true },
        ),
      ],
      columns: [
        { id: 'name', label: t('keys.name'), wide: true, value: (r) => text(r.name), cell: (r) => show(r.name, 80) },
        {
          id: 'rule',
          label: t('queues.rule'),
          wide: true,
          value: (r) => r.rule,
          cell: (r) => h('span', { class: 'mono' }, r.rule + (r.zone ? ' ' + r.zone : '')),
        },
        { id: 'next', label: t('queues.next'), num: true, value: (r) => r.next, cell: (r) => when(r.next) },
        { id: 'last', label: t('queues.last'), num: true, minor: true, value: (r) => r.last ?? 0, cell: (r) => when(r.last) },
        count('runs'),
        count('skipped'),
        { ...count('late.runs'), value: (r) => r.late, cell: (r) => num(r.late), minor: true },
      ],
    });
    const card = h('section', { class: 'card', hidden: true }, h('h2', null, t('queues.schedules')), list.el);
    return {
      card,
      set: (/** @type {any[]} */ rows) => {
        card.hidden = !rows.length;
        list.set(rows);
      },
    };
  }
}

/** Names in a line, three of many. @param {any[]} keys */
const names = (keys) => [
  keys.slice(0, 3).map((k, i) => [i ? ', ' : '', show(k, 40)]),
  keys.length > 3 && ' ' + t('queues.andmore', { n: keys.length - 3 }),
];

/**
 * The name of a key in the hash slot of another one; '' if no name of our form has it.
 * @param {string} key
 */
function beside_(key) {
  const from = key.indexOf('{'),
    to = from < 0 ? -1 : key.indexOf('}', from + 1),
    tag = from >= 0 && to > from + 1 ? key.slice(from + 1, to) : key;
  return tag && !tag.includes('}') ? '{' + tag + '}:run-now-' + crypto.getRandomValues(new Uint32Array(1))[0].toString(36) : '';
}

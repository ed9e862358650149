// Expiry: what falls due and when, whether it went on time, and what went just now.
import { h, fill, say, list } from '../lib/h.js';
import { get, post, del, run } from '../lib/api.js';
import { bars, heat } from '../lib/chart.js';
import { table } from '../lib/table.js';
import { ttl } from '../lib/countdown.js';
import { clock } from '../lib/events.js';
import { refusal } from '../lib/poll.js';
import { form, toast } from '../lib/dialog.js';
import { bulk } from '../lib/bulk-actions.js';
import { argv, beginning, id, show, text, upToColon, url } from '../lib/bytes.js';
import { t, num, span, micros, time, date, tick, percent } from '../lib/i18n.js';

export const title = 'expiry.title';
export const topics = () => ['sample'];
const LEVELS = ['key', 'field', 'member', 'element', 'lease'],
  SPANS = ['minute', 'hour', 'day', 'month'];
const swatch = (/** @type {string} */ l) => h('span', { title: t('level.' + l) }, h('i', { class: 'level ' + l }), t('level.one.' + l));

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const p = ctx.params,
    match = p.get('match') || '',
    at = /** @type {any} */ (SPANS.includes(p.get('span') || '') ? p.get('span') : 'minute');
  const move = (/** @type {any} */ more) => ctx.go('expiry', { db: ctx.db, ...Object.fromEntries(p), ...more });
  const chart = h('div'),
    said = h('p', { class: 'faint' }),
    hint = h('p', { class: 'look', hidden: true }),
    legend = h('div', { class: 'legend' }),
    lag = h('div'),
    tail = h('tbody'),
    heatmap = h('div'),
    progress = h('p', { class: 'faint', role: 'status' });
  const pattern = h('input', {
    type: 'search',
    value: match,
    placeholder: t('keys.match'),
    'aria-label': t('keys.match'),
    spellcheck: 'false',
    on: { change: () => move({ match: pattern.value }) },
  });
  const when = at === 'month' || at === 'day' ? date : (/** @type {number} */ ms) => time(ms);
  const sum = (/** @type {any} */ b) => (b.keys || 0) + (b.containers || 0) + (b.n || 0);
  /** The interval that the reader has chosen. @type {any} */
  let chosen = null;

  async function forecast() {
    try {
      const f = await get('forecast', { db: ctx.db, match, span: at }, ctx.stop),
        bs = f.buckets;
      const byLevel = f.levels && f.levels.length;
      const series = byLevel
        ? LEVELS.map((l) => ({ label: t('level.' + l), cls: 's-' + l, values: f.levels.map((/** @type {any} */ x) => x[l] || 0) }))
        : [
            { label: t('level.key'), cls: 's-key', values: bs.map((/** @type {any} */ b) => b.keys || 0) },
            { label: t('expiry.containers'), cls: 's-field', values: bs.map((/** @type {any} */ b) => b.containers || 0) },
          ];
      fill(
        legend,
        (byLevel ? LEVELS : ['key', 'field']).map((l) =>
          h('span', null, h('i', { class: 'level ' + l }), byLevel || l === 'key' ? t('level.' + l) : t('expiry.containers')),
        ),
      );
      const steep = new Set(
        bs.flatMap((/** @type {any} */ b, /** @type {number} */ i) => {
          if (!i && at !== 'minute') return []; // what lives for seconds stands there, at every moment
          const near = ((i ? sum(bs[i - 1]) : 0) + (i + 1 < bs.length ? sum(bs[i + 1]) : 0)) / 2;
          return sum(b) >= 50 && sum(b) > 5 * Math.max(1, near) ? [i] : [];
        }),
      );
      const n = bs.reduce((/** @type {number} */ a, /** @type {any} */ b) => a + sum(b), 0),
        worst = [...steep].sort((a, b) => sum(bs[b]) - sum(bs[a]))[0];
      say(
        said,
        (n ? t('expiry.due', { n, span: t('expiry.in.' + at) }) : t('expiry.nothing', { span: t('expiry.in.' + at) })) +
          (f.later ? ' ' + t('expiry.later', { n: f.later }) : '') +
          ' ' +
          t(f.exact ? 'expiry.exact' : 'expiry.estimate'),
      );
      hint.hidden = worst === undefined;
      if (worst !== undefined)
        say(
          hint,
          at === 'minute'
            ? t('expiry.storm', { n: sum(bs[worst]), at: time(bs[worst].from), in: span(Math.max(0, bs[worst].from - clock())) })
            : t('expiry.peak', { n: sum(bs[worst]), from: when(bs[worst].from), to: when(bs[worst].to) }),
        );
      const x = (/** @type {number} */ i) => (bs[i] ? when(bs[i].from) + ' – ' + when(bs[i].to) : '');
      bars(chart, series, {
        label: t('expiry.forecast'),
        x,
        tick: (i) => (bs[i] ? tick(bs[i].from, at) : ''),
        marks: steep,
        height: 208,
        pick: (i) => {
          chosen = bs[i];
          soon();
        },
      });
    } catch (e) {
      const err = /** @type {any} */ (e);
      if (err.code === 'RESTING') say(said, err.message);
      else if (!err.passing) ctx.fail(e);
    } // it is asked again
  }
  /** @type {any} */ let heard = {};
  let asking = 0;
  /** The rows of What expires next. It has more than it shows: each that expires makes room for another. */
  const next = table({
    label: t('expiry.who'),
    most: 15,
    key: (r) => r.level + id(r.k) + '/' + id(r.item),
    open: (r) => ctx.go('key', { db: ctx.db, k: url(r.k) }),
    columns: [
      { id: 'level', label: t('expiry.level'), value: (r) => r.level, cell: (r) => swatch(r.level), minor: true },
      {
        id: 'k',
        label: t('key.title'),
        wide: true,
        value: (r) => text(r.k),
        cell: (r) => h('a', { href: ctx.link('key', { db: ctx.db, k: url(r.k) }) }, show(r.k, 120, true)),
      },
      { id: 'item', label: t('expiry.item'), value: (r) => text(r.item), cell: (r) => (r.item ? show(r.item, 80) : '') },
      { id: 'ttl', label: 'TTL', num: true, value: (r) => r.at, cell: (r) => ttl(Math.max(0, r.at - clock()), clock()) },
    ],
    empty: () => heard.why || t(heard.whole ? 'expiry.empty' : 'expiry.far'),
    alive: (r) => r.at > clock(),
    over: () => {
      if (heard.more && !asking) soon();
    },
  });
  const nextHead = h('h2'),
    nextText = h('p', { class: 'faint' });
  async function soon() {
    if (chosen && chosen.to <= clock()) chosen = null;
    const b = chosen,
      count = b ? 1000 : 200;
    asking++;
    const a = await get(
      'soon',
      { db: ctx.db, count, match, within: b ? Math.max(1, Math.ceil(b.to - clock())) : undefined },
      ctx.stop,
    ).catch((e) => ({ rows: [], whole: true, why: refusal(e) }));
    asking--;
    if (b !== chosen) return;
    const rows = a.rows.filter((/** @type {any} */ r) => !b || (r.at >= b.from && r.at < b.to)),
      last = a.rows[a.rows.length - 1],
      full = a.rows.length >= count;
    // A full list may end before the interval does, or begins.
    heard = { why: a.why, whole: a.whole && !(b && full && last.at < b.to), more: full };
    /** @type {Map<string, {k: any, n: number}>} */
    const prefixes = new Map();
    for (const r of rows) {
      const k = upToColon(r.k, 0) || r.k,
        p = prefixes.get(id(k));
      prefixes.set(id(k), { k, n: (p ? p.n : 0) + 1 });
    }
    const top = [...prefixes.values()].sort((x, y) => y.n - x.n).slice(0, 5);
    say(nextHead, b ? t('expiry.who.at', { from: when(b.from), to: when(b.to) }) : t('expiry.who'));
    nextText.hidden = rows.length < 2;
    fill(
      nextText,
      t('expiry.sample', { n: rows.length }),
      ' ',
      top.map(({ k, n }, i) => [
        i ? ', ' : '',
        h('a', { href: ctx.link('keys', { db: ctx.db, ...beginning(k) }) }, show(k, 40, true)),
        ' ' + percent(n / rows.length),
      ]),
    );
    next.set(rows);
  }
  async function onTime() {
    try {
      const { rows, backlog } = await get('lag', {}, ctx.stop);
      const cell = (/** @type {string} */ f) => ({
        id: f,
        label: f === 'p999' ? 'p99.9' : f === 'max' ? t('expiry.max') : f,
        num: true,
        minor: f === 'p50' || f === 'p999',
        value: (/** @type {any} */ x) => x[f],
        cell: (/** @type {any} */ x) => (x.count ? micros(x[f]) : '–'),
      });
      fill(
        lag,
        h('p', { class: backlog ? 'look' : 'faint' }, backlog ? t('now.backlog', { n: backlog }) : t('expiry.nobacklog')),
        table({
          label: t('expiry.ontime'),
          rows,
          key: (x) => x.name,
          fade: false,
          columns: [
            {
              id: 'name',
              label: t('expiry.level'),
              value: (x) => x.name,
              cell: (x) => (LEVELS.includes(x.name) ? swatch(x.name) : h('b', null, t('expiry.total'))),
            },
            { id: 'count', label: t('expiry.count'), num: true, value: (x) => x.count, cell: (x) => num(x.count) },
            cell('p50'),
            cell('p99'),
            cell('p999'),
            cell('max'),
          ],
        }).el,
      );
    } catch (e) {
      if (/** @type {Error} */ (e).name !== 'AbortError') fill(lag, h('p', { class: 'faint' }, refusal(e)));
    }
  }

  /** @type {any[]} */ let recent = [];
  let seq = 0;
  const level = h(
    'select',
    { 'aria-label': t('expiry.level'), on: { change: () => paintTail() } },
    h('option', { value: '' }, t('expiry.levels')),
    LEVELS.map((l) => h('option', { value: l }, t('level.' + l))),
  );
  const none = h('p', { class: 'empty' }, t('expiry.tail.none'));
  function paintTail() {
    const rows = recent
      .filter(
        (r) => (!level.value || r.level === level.value) && (!match || !match.endsWith('*') || text(r.k).startsWith(match.slice(0, -1))),
      )
      .slice(0, 100);
    none.hidden = rows.length > 0;
    list(
      tail,
      rows,
      (r) => String(r.seq),
      (r) =>
        h(
          'tr',
          null,
          h('td', null, time(r.at, true)),
          h('td', { class: 'minor' }, swatch(r.level)),
          h('td', { class: 'wide' }, show(r.k, 100), r.item && [' › ', show(r.item, 60)]),
          h('td', { class: 'num' }, '+' + span(r.lag || 0)),
        ),
    );
  }
  let painting = 0;
  ctx.onNews('expired:' + ctx.db, (e, event) => {
    if (event === 'resync' || e.skipped) return;
    recent = [{ ...e, seq: ++seq }, ...recent].slice(0, 500);
    if (!painting)
      painting = +setTimeout(() => {
        painting = 0;
        paintTail();
      }, 200);
  });

  let walk = '';
  const go = h(
    'button',
    {
      type: 'button',
      on: {
        click: async () => {
          if (walk) {
            await del('walk', { id: walk }).catch(() => {});
            walk = '';
            say(go, t('expiry.walk'));
            say(progress, t('bulk.stopped', { n: 0 }));
            return;
          }
          try {
            walk = (await post('walk', { db: ctx.db, kind: 'prefixes', sep: ':', depth: 1, match: match || '*' })).id;
            say(go, t('keys.stop'));
            look();
          } catch (e) {
            toast(/** @type {Error} */ (e).message, 'bad');
          }
        },
      },
    },
    t('expiry.walk'),
  );
  async function look() {
    const mine = walk,
      w = await get('walk', { id: mine }, ctx.stop).catch(() => null);
    if (!w || mine !== walk) return;
    say(progress, t('expiry.walked', { share: percent(w.done), n: w.looked }));
    heat(
      heatmap,
      w.rows.slice(0, 40).map((/** @type {any} */ r) => ({
        label: h('a', { href: ctx.link('keys', { db: ctx.db, ...beginning(r.p) }) }, r.p.t === '' ? t('prefix.none') : show(r.p, 60, true)),
        values: r.ttl,
      })),
      ['never', 'm', 'h', 'd', 'month', 'more'].map((n) => t('expiry.h.' + n)),
    );
    if (w.done < 1) setTimeout(look, 1000);
    else {
      walk = '';
      say(go, t('expiry.walk'));
    }
  }
  ctx.onClose(() => {
    if (walk) del('walk', { id: walk }).catch(() => {});
  });

  async function rule() {
    const a = await form({
      title: t('expiry.rule'),
      text: t('expiry.rule.text'),
      fields: [
        { name: 'name', label: t('expiry.rule.name'), value: '', required: true },
        { name: 'match', label: t('keys.match'), value: match || '*' },
        {
          name: 'level',
          label: t('expiry.level'),
          options: [['', t('expiry.levels')], ...[...LEVELS, 'fresh'].map((l) => /** @type {[string, string]} */ ([l, t('level.' + l)]))],
        },
        { name: 'to', label: t('expiry.rule.to'), value: 'expired' },
        { name: 'queue', label: t('expiry.rule.queue'), type: 'check' },
        { name: 'max', label: 'MAXLEN', type: 'number', min: 1, value: '100000' },
        { name: 'value', label: t('expiry.rule.value'), type: 'check' },
      ],
      command: (v) =>
        !v.name || !v.to
          ? t('expiry.rule.bad')
          : argv(
              'EXPIRY',
              'RULE',
              'SET',
              v.name,
              'MATCH',
              v.match || '*',
              ...(v.level ? ['LEVEL', v.level.toUpperCase()] : []),
              'TO',
              ...(v.queue ? ['QUEUE', v.to] : [v.to, ...(v.max ? ['MAXLEN', '~', v.max] : [])]),
              ...(v.value ? ['WITHVALUE'] : []),
            ),
    });
    if (a) run(ctx.db, a.argv, { quiet: true });
  }
  const many = (/** @type {string} */ verb) =>
    match &&
    ctx.button('expiry.' + verb, t('bulk.' + verb), async () => {
      if (await bulk({ db: ctx.db, verb, match })) forecast();
    });
  fill(
    root,
    h(
      'div',
      { class: 'titlebar' },
      h('h1', null, t('expiry.title')),
      h(
        'span',
        { class: 'segments' },
        SPANS.map((s) =>
          h('button', { type: 'button', 'aria-pressed': String(s === at), on: { click: () => move({ span: s }) } }, t('expiry.' + s)),
        ),
      ),
      pattern,
      many('prolong'),
      many('persist'),
      h('span', { class: 'grow' }),
      ctx.button('expiry.rule', t('expiry.rule'), rule),
    ),
    h('section', { class: 'card' }, h('h2', null, t('expiry.forecast')), said, hint, chart, legend),
    h('section', { class: 'card' }, nextHead, nextText, next.el),
    h(
      'div',
      { class: 'cols' },
      h('section', { class: 'card' }, h('h2', null, t('expiry.ontime')), lag),
      h(
        'section',
        { class: 'card' },
        h('div', { class: 'titlebar' }, h('h2', null, t('expiry.tail')), level),
        h('div', { class: 'table' }, h('table', { 'aria-label': t('expiry.tail') }, tail)),
        none,
      ),
    ),
    h(
      'section',
      { class: 'card' },
      h('div', { class: 'titlebar' }, h('h2', null, t('expiry.heat')), go, progress),
      h('p', { class: 'faint' }, t('expiry.heat.text')),
      heatmap,
    ),
  );
  forecast();
  soon();
  onTime();
  const every = setInterval(
    () => {
      if (document.hidden) return;
      forecast();
      soon();
      onTime();
    },
    at === 'minute' ? 5000 : 30000,
  );
  ctx.onClose(() => clearInterval(every));
}

// Keys: a list or a tree by prefix, looked at page by page. The page says how much of the keys it has looked at.
import { h, fill, say } from '../lib/h.js';
import { get, idle, run, runAll } from '../lib/api.js';
import { table } from '../lib/table.js';
import { ttl } from '../lib/countdown.js';
import { clock } from '../lib/events.js';
import { form } from '../lib/dialog.js';
import { bulk } from '../lib/bulk-actions.js';
import { argv, beginning, bytes, copier, fromText, fromUrl, id, show, text, upToColon, url } from '../lib/bytes.js';
import { t, num, size, percent, asSpan, parseSpan } from '../lib/i18n.js';

export const title = 'keys.title';
const TYPES = ['string', 'hash', 'list', 'set', 'zset', 'stream', 'limiter', 'lock', 'semaphore', 'delayqueue', 'bloom'];
/** The types that the dialog for a new key makes. */
const MAKES = ['string', 'hash', 'list', 'set', 'zset', 'stream'];
const KEEP = 2000;
/** The rows of a page of the list and of the tree; and how many keys a page that is not full yet looks at before it asks. */
const PAGE = 200,
  BRANCH = 1000,
  LOOK = 1e7;

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const p = ctx.params,
    prefix = p.get('prefix') ? fromUrl(p.get('prefix') || '') : null, // of bytes that a pattern cannot have
    match = prefix ? '' : p.get('match') || '',
    named = prefix ? text(prefix) + '*' : match,
    tree = p.get('view') === 'tree',
    page = tree ? BRANCH : PAGE;
  /** @type {any[]} */ let rows = [];
  /** @type {Map<string, {p: string, k: any, folder: boolean, n: number, bytes: number, forever: number, next: number}>} */
  const folders = new Map();
  let cursor = '0',
    looked = 0,
    shown = 0,
    want = page,
    rest = LOOK,
    total = 0,
    done = false,
    busy = false,
    all = false,
    marker = 0,
    drawn = 0;
  const base = match.endsWith('*') && !/[*?[\]\\]/.test(match.slice(0, -1)) ? match.slice(0, -1) : '';
  /** How many bytes of a name stand before the part that the tree shows. A pattern of escaped letters is one name. */
  const before = bytes(prefix || fromText(match.endsWith('*') ? match.slice(0, -1).replace(/\\(.)/g, '$1') : '')).length;
  const move = (/** @type {Record<string, any>} */ more) => ctx.go('keys', { db: ctx.db, ...Object.fromEntries(p), ...more });
  const pattern = h('input', {
    type: 'search',
    value: named,
    placeholder: t('keys.match'),
    'aria-label': t('keys.match'),
    spellcheck: 'false',
    on: { change: () => move({ match: pattern.value, prefix: '' }) },
  });
  /** @param {string} name @param {string[]} values @param {string} prefix */
  const choice = (name, values, prefix) =>
    h(
      'select',
      { 'aria-label': t('keys.' + name), on: { change: (/** @type {any} */ e) => move({ [name]: e.target.value }) } },
      h('option', { value: '' }, t('keys.' + name + '.any')),
      values.map((v) => h('option', { value: v, selected: p.get(name) === v }, prefix ? t(prefix + v) : v)),
    );
  const said = h('span', { class: 'faint', role: 'status' }),
    more = h(
      'button',
      {
        type: 'button',
        on: {
          click: () => {
            want = shown + page;
            rest = looked + LOOK;
            next();
          },
        },
      },
      t('keys.more'),
    ),
    every = h('button', {
      type: 'button',
      on: {
        click: () => {
          all = !all;
          if (all) next();
          else {
            draw();
            note();
          }
        },
      },
    });
  const picked = h('div', { class: 'row' });

  /** @param {any} row */
  async function setTTL(row) {
    const a = await form({
      title: t('keys.ttl.do'),
      fields: [{ name: 's', label: t('bulk.span'), value: asSpan(row.pttl - (clock() - row.at)), hint: t('bulk.span.hint') }],
      command: (v) => {
        const ms = parseSpan(v.s);
        return ms > 0 ? argv('PEXPIRE', row.k, ms) : t('bulk.span.bad');
      },
    });
    if (a && (await run(ctx.db, a.argv, { quiet: true }))) again();
  }
  async function make() {
    const a = await form({
      title: t('keys.new'),
      fields: [
        { name: 'k', label: t('keys.name'), value: base, required: true, hint: t('keys.new.name.hint') },
        { name: 'type', label: t('keys.type'), options: MAKES.map((x) => [x, x]), value: 'string' },
        { name: 'f', label: t('keys.new.field'), value: '', when: (v) => v.type === 'hash' || v.type === 'stream' },
        { name: 'n', label: t('key.score'), value: '0', when: (v) => v.type === 'zset' },
        { name: 'v', label: t('key.value'), type: 'area', rows: 3, value: '' },
        { name: 's', label: t('bulk.span'), value: '', hint: t('keys.new.span.hint') },
      ],
      command: (v) => {
        const ms = v.s ? parseSpan(v.s) : 0,
          k = fromText(v.k),
          x = fromText(v.v),
          f = fromText(v.type === 'zset' ? v.n : v.f);
        if (!v.k) return t('key.newname.bad');
        if (v.s && !(ms > 0)) return t('bulk.span.bad');
        if (v.type === 'string') return argv('SET', k, x, 'NX', ...(ms ? ['PX', ms] : []));
        if (!v.f && (v.type === 'hash' || v.type === 'stream')) return t('keys.new.field.bad.' + v.type);
        if (v.type === 'zset' && (!v.n || Number.isNaN(Number(v.n)))) return t('keys.new.field.bad.zset');
        const first =
          v.type === 'hash'
            ? argv('HSETNX', k, f, x)
            : v.type === 'list'
              ? argv('RPUSH', k, x)
              : v.type === 'set'
                ? argv('SADD', k, x)
                : v.type === 'zset'
                  ? argv('ZADD', k, 'NX', f, x)
                  : argv('XADD', k, '*', f, x);
        return ms ? [first, argv('PEXPIRE', k, ms)] : [first];
      },
    });
    if (!a) return;
    const taken = t('key.taken'),
      k = fromText(a.values.k);
    let made;
    if (a.values.type === 'string') {
      const r = await run(ctx.db, a.argv, { quiet: true, unchanged: taken });
      made = r && !idle(r.reply);
    } else made = await runAll(ctx.db, a.argv, { quiet: true, expect: [[['EXISTS', k], '']], changed: taken });
    if (made) ctx.go('key', { db: ctx.db, k: url(k) });
  }
  const one = table({
    label: t('keys.title'),
    key: (r) => id(r.k),
    open: (r) => ctx.go('key', { db: ctx.db, k: url(r.k) }),
    columns: [
      {
        id: 'k',
        label: t('keys.name'),
        wide: true,
        value: (r) => text(r.k),
        cell: (r) => h('a', { href: ctx.link('key', { db: ctx.db, k: url(r.k) }) }, show(r.k, 120, true)),
      },
      { id: 'type', label: t('keys.type'), value: (r) => r.type, minor: true },
      { id: 'ttl', label: 'TTL', num: true, value: (r) => (r.pttl < 0 ? Infinity : r.at + r.pttl), cell: (r) => ttl(r.pttl, r.at) },
      { id: 'bytes', label: t('keys.bytes'), num: true, value: (r) => r.bytes, cell: (r) => size(r.bytes), minor: true },
      {
        id: 'n',
        label: t('keys.items'),
        num: true,
        value: (r) => r.n,
        cell: (r) => (r.n === undefined || r.n === null ? '' : num(r.n)),
        minor: true,
      },
    ],
    select: ctx.me.readOnly
      ? undefined
      : (rs) => {
          fill(
            picked,
            rs.length > 0 && [
              h('b', null, t('keys.chosen', { n: rs.length })),
              many('del', 'keys.del', { keys: rs.map((r) => r.k) }),
              many('ttl', 'keys.ttl', { keys: rs.map((r) => r.k) }),
              many('persist', 'keys.ttl', { keys: rs.map((r) => r.k) }),
            ],
          );
        },
    actions: (now) => [
      copier(() => text(now().k)),
      ctx.button('keys.ttl', 'TTL', () => setTTL(now()), { small: true }),
      ctx.button(
        'keys.del',
        t('keys.delete'),
        async () => {
          if (await run(ctx.db, ['UNLINK', now().k], { danger: true, text: t('keys.delete.text') })) again();
        },
        { small: true },
      ),
    ],
    empty: () =>
      !done
        ? t('keys.looking')
        : named || p.get('type') || p.get('ttl')
          ? t('keys.nomatch')
          : [
              t('keys.none'),
              h('pre', { class: 'command' }, 'SET hello world PX 30000'),
              h('a', { href: ctx.link('shell', { line: 'SET hello world PX 30000' }) }, t('now.shell')),
            ],
  });
  /** The keys that the list shows: the pattern with all filters. */
  const shown_ = { match: named, prefix: p.get('prefix') || '', type: p.get('type') || '', ttl: p.get('ttl') || '' };
  const many = (/** @type {string} */ verb, /** @type {string} */ action, /** @type {any} */ o) =>
    ctx.button(
      action,
      t('bulk.' + verb),
      async () => {
        if (await bulk({ db: ctx.db, verb, ...o })) again();
      },
      { danger: verb === 'del' },
    );
  const group = table({
    label: t('keys.tree'),
    key: (r) => r.p,
    sort: ['n', -1],
    open: (r) => open_(r),
    columns: [
      { id: 'p', label: t('prefix'), wide: true, value: (r) => text(r.k), cell: (r) => h('span', null, r.folder ? '▸ ' : '', show(r.k)) },
      { id: 'n', label: t('keys.title'), num: true, value: (r) => r.n, cell: (r) => num(r.n) },
      { id: 'bytes', label: t('keys.bytes'), num: true, value: (r) => r.bytes, cell: (r) => size(r.bytes) },
      { id: 'forever', label: t('ttl.never'), num: true, value: (r) => r.forever, cell: (r) => num(r.forever), minor: true },
      {
        id: 'next',
        label: t('keys.nextdue'),
        num: true,
        value: (r) => r.next,
        cell: (r) => (isFinite(r.next) ? ttl(Math.max(0, r.next - clock()), clock()) : ''),
        minor: true,
      },
    ],
    fade: false,
    empty: () => t(done ? 'keys.none' : 'keys.looking'),
  });
  /** @param {any} r */
  function open_(r) {
    if (r.folder) move({ match: '', prefix: '', ...beginning(r.k) });
    else ctx.go('key', { db: ctx.db, k: url(r.k) });
  }

  function draw() {
    drawn = Date.now();
    if (tree)
      group.set(
        [...folders.values()]
          .sort((x, y) => y.n - x.n)
          .slice(0, 500)
          .map((f) => ({ ...f })),
      );
    else one.set([...one.rows(), ...rows].slice(-KEEP));
    rows = [];
  }
  function note() {
    say(
      said,
      t(done ? 'keys.all' : 'keys.share', { n: shown, share: percent(total ? Math.min(1, looked / total) : 1), total: num(total) }),
    );
    more.hidden = done || tree;
    every.hidden = done;
    say(every, t(all ? 'keys.stop' : 'keys.every'));
  }
  async function next() {
    if (busy || done) return;
    busy = true;
    const mine = marker;
    try {
      const a = await get(
        'keys',
        { db: ctx.db, cursor, match, prefix: p.get('prefix'), type: p.get('type'), ttl: p.get('ttl') || 'any', limit: all ? BRANCH : page },
        ctx.stop,
      );
      if (mine !== marker) return;
      cursor = a.cursor;
      done = a.done;
      looked += a.looked;
      total = a.total;
      shown += a.rows.length;
      const now = a.now || clock();
      for (const r of a.rows) r.at = now;
      if (tree) {
        for (const r of a.rows) {
          const at = upToColon(r.k, before),
            folder = !!at,
            k = at || r.k,
            name = (folder ? 'f' : 'k') + id(k);
          /** @type {any} */
          let f = folders.get(name);
          if (!f) folders.set(name, (f = { p: name, k, folder, n: 0, bytes: 0, forever: 0, next: Infinity }));
          f.n++;
          f.bytes += r.bytes || 0;
          if (r.pttl < 0) f.forever++;
          else f.next = Math.min(f.next, now + r.pttl);
        }
      } else rows = [...rows, ...a.rows].slice(-KEEP); // not drawn yet
      // A walk over all keys brings a page each few ms; to draw it takes longer.
      if (!all || done || (tree ? Date.now() - drawn > 2000 : one.rows().length < 500)) draw();
    } catch (e) {
      ctx.fail(e);
      return;
    } finally {
      busy = false;
    }
    note();
    if (!done && (all || (shown < want && looked < rest)) && !ctx.stop.aborted) next();
  }
  function again() {
    marker++;
    busy = done = false;
    cursor = '0';
    looked = shown = 0;
    want = page;
    rest = LOOK;
    folders.clear();
    rows = [];
    one.clear();
    one.set([]);
    next();
  }
  const crumbs = base
    .split(':')
    .slice(0, -1)
    .map((s, i, a) =>
      h('a', { href: ctx.link('keys', { ...Object.fromEntries(p), db: ctx.db, match: a.slice(0, i + 1).join(':') + ':*' }) }, s + ':'),
    );
  fill(
    root,
    h(
      'div',
      { class: 'titlebar' },
      h('h1', null, t('keys.title')),
      pattern,
      choice('type', TYPES, ''),
      choice('ttl', ['none', 'soon'], 'keys.ttl.'),
      h(
        'span',
        { class: 'segments' },
        ['list', 'tree'].map((v) =>
          h(
            'button',
            { type: 'button', 'aria-pressed': String(tree === (v === 'tree')), on: { click: () => move({ view: v }) } },
            t('keys.' + v),
          ),
        ),
      ),
      h('button', { type: 'button', on: { click: again } }, t('keys.refresh')),
      ctx.button('key.set', t('keys.new'), make, { primary: true }),
      named && [many('prolong', 'keys.ttl', shown_), many('persist', 'keys.ttl', shown_), many('del', 'keys.del', shown_)],
    ),
    tree && crumbs.length > 0 && h('p', null, h('a', { href: ctx.link('keys', { db: ctx.db, view: 'tree' }) }, t('keys.top')), ' ', crumbs),
    h('section', { class: 'card' }, picked, (tree ? group : one).el, h('div', { class: 'row' }, said, more, every)),
  );
  note();
  next();
}

// Key: one key with its deadline, its body by type, and a TTL for each item of it.
import { h, fill, say } from '../lib/h.js';
import { get, exec, idle, run, runAll, ApiError } from '../lib/api.js';
import { table } from '../lib/table.js';
import { ttl } from '../lib/countdown.js';
import { clock } from '../lib/events.js';
import { form, several, toast } from '../lib/dialog.js';
import { argv, bytes, copier, editor, fromBytes, fromText, fromUrl, id, line, plain, short, show, text, url } from '../lib/bytes.js';
import { bits, gunzip, hex, msgpack, pretty } from '../lib/formats.js';
import { t, has, num, size, span, time, date, asSpan, parseSpan } from '../lib/i18n.js';

export const title = 'key.title';
/** What each container calls its items, the name of an item in a row, and its commands. @type {Map<string, any>} */
const KINDS = new Map([
  ['hash', { level: 'field', item: 'f', expire: ['HPEXPIRE', 'FIELDS'], persist: ['HPERSIST', 'FIELDS'], remove: 'HDEL', add: 'HSETNX' }],
  ['set', { level: 'member', item: 'm', expire: ['SPEXPIRE', 'MEMBERS'], persist: ['SPERSIST', 'MEMBERS'], remove: 'SREM', add: 'SADD' }],
  ['zset', { level: 'member', item: 'm', expire: ['ZPEXPIRE', 'MEMBERS'], persist: ['ZPERSIST', 'MEMBERS'], remove: 'ZREM', add: 'ZADD' }],
  ['list', { level: 'element', item: 'i', expire: ['LPEXPIRE', 'INDEXES'], persist: ['LPERSIST', 'INDEXES'], add: 'RPUSH' }],
]);
const SCREENS = new Map([
  ['limiter', 'limits'],
  ['lock', 'locks'],
  ['semaphore', 'locks'],
  ['delayqueue', 'queues'],
  ['stream', 'streams'],
]);

/** @param {HTMLElement} root @param {import('../app.js').Ctx} ctx */
export function open(root, ctx) {
  const { params, db, button } = ctx;
  /** @type {import('../lib/bytes.js').B} */ let key;
  try {
    key = fromUrl(params.get('k') || '');
  } catch {
    key = fromText(params.get('k') || '');
  }
  const k = url(key),
    head = h('section', { class: 'card' }),
    body = h('div'),
    news = h('span', { class: 'look', role: 'status' });
  /** @type {any} */ let data = null;
  /** @type {any} */ let items = null;
  /** @type {any[]} */ let pages = ['0'];
  let finding = '',
    over = false,
    later = 0;

  const span_ = (/** @type {string} */ name, /** @type {string} */ value) => ({
    name,
    label: t('bulk.span'),
    value,
    hint: t('bulk.span.hint'),
  });
  /** @param {any} a @param {any} [o] */
  const doit = async (a, o) => {
    const r = await run(db, a, o);
    if (r) load();
    return r;
  };
  async function setTTL() {
    const a = await form({
      title: t('keys.ttl.do'),
      fields: [
        span_('s', asSpan(data.pttl - (clock() - (data.now || clock())))),
        { name: 'slide', label: t('key.slide.do'), type: 'check', value: !!data.slide },
      ],
      command: (v) => (parseSpan(v.s) > 0 ? argv('PEXPIRE', key, parseSpan(v.s), ...(v.slide ? ['SLIDE'] : [])) : t('bulk.span.bad')),
    });
    if (a) doit(a.argv, { quiet: true });
  }
  async function rename(/** @type {string} */ verb) {
    const a = await form({
      title: t('key.' + verb),
      fields: [{ name: 'to', label: t('key.newname'), value: key.b ? '' : text(key), required: true }],
      command: (v) =>
        v.to && v.to !== text(key)
          ? verb === 'copy'
            ? argv('COPY', key, fromText(v.to))
            : argv('RENAMENX', key, fromText(v.to))
          : t('key.newname.bad'),
    });
    if (!a) return;
    const r = await run(db, a.argv, { quiet: true, unchanged: t('key.taken') });
    if (r && !idle(r.reply)) ctx.go('key', { db, k: url(fromText(a.values.to)) });
  }
  async function dump() {
    try {
      const r = await exec(db, ['DUMP', key]);
      if (!r.reply || r.reply.e || r.reply.n !== undefined) throw new Error(r.reply && r.reply.e ? r.reply.e : t('key.toolarge'));
      const a = h('a', {
        href: URL.createObjectURL(new Blob([/** @type {any} */ (bytes(r.reply))], { type: 'application/octet-stream' })),
        download: 'ebb-key.dump',
      });
      a.click();
      setTimeout(() => URL.revokeObjectURL(a.href), 1000);
    } catch (e) {
      toast(/** @type {Error} */ (e).message, 'bad');
    }
  }
  function restore() {
    const file = h('input', {
      type: 'file',
      on: {
        change: async () => {
          if (!file.files || !file.files[0]) return;
          const whole = fromBytes(new Uint8Array(await file.files[0].arrayBuffer())),
            left = data.pttl - (clock() - (data.now || clock()));
          const a = await form({
            title: t('key.restore'),
            text: t('key.restore.text'),
            danger: true,
            fields: [{ name: 's', label: t('bulk.span'), value: left > 0 ? asSpan(left) : '', hint: t('keys.new.span.hint') }],
            command: (v) => {
              const ms = v.s.trim() ? parseSpan(v.s) : 0;
              return v.s.trim() && !(ms > 0) ? t('bulk.span.bad') : argv('RESTORE', key, ms, whole, 'REPLACE');
            },
          });
          if (a) doit(a.argv, { quiet: true });
        },
      },
    });
    file.click();
  }
  const fact = (/** @type {string} */ name, /** @type {any} */ v) =>
    v !== undefined && v !== null && v !== '' && h('div', null, h('dt', null, t('key.' + name)), h('dd', null, v));
  function paintHead() {
    const at = data.now || clock(),
      cell = ttl(data.pttl, at);
    cell.addEventListener('expired', () => gone(at + data.pttl));
    const elsewhere = SCREENS.get(data.type);
    fill(
      head,
      h(
        'div',
        { class: 'titlebar' },
        h('h1', null, show(key, 120)),
        copier(() => text(key)),
        news,
        h('span', { class: 'grow' }),
        button('keys.ttl', 'TTL', setTTL),
        data.pttl >= 0 && button('key.persist', t('bulk.persist'), () => doit(['PERSIST', key])),
        button('keys.rename', t('key.rename'), () => rename('rename')),
        button('keys.copy', t('key.copy'), () => rename('copy')),
        ctx.me.values && ctx.can('key.dump') && h('button', { type: 'button', on: { click: dump } }, t('key.dump')),
        button('key.restore', t('key.restore'), restore),
        button(
          'keys.del',
          t('keys.delete'),
          async () => {
            if (await run(db, ['UNLINK', key], { danger: true, text: t('keys.delete.text'), unchanged: t('key.missing') }))
              ctx.go('keys', { db });
          },
          { danger: true },
        ),
      ),
      h(
        'dl',
        { class: 'facts' },
        fact('type', data.type),
        fact('ttl', h('span', null, cell, data.pttl >= 0 && h('small', null, ' ' + date(at + data.pttl)))),
        data.slide > 0 && fact('slide', span(data.slide)),
        fact('items', data.n === undefined ? undefined : num(data.n)),
        fact('bytes', size(data.bytes)),
        fact('encoding', data.encoding),
        fact('idle', data.idle === undefined ? undefined : span(data.idle)),
        fact('freq', data.freq),
      ),
      elsewhere &&
        h(
          'p',
          null,
          h('a', { class: 'leads', href: ctx.link(elsewhere, { db, k }) }, t('key.elsewhere', { screen: t(elsewhere + '.title') })),
        ),
    );
  }
  /** @param {number} [at] @param {string} [why] */
  function gone(at, why = 'key.expired') {
    if (over) return;
    over = true;
    say(news, t(why, { at: time(at || clock(), true) }));
    body.classList.add('gone');
    fill(
      head,
      h('div', { class: 'titlebar' }, h('h1', null, show(key, 120)), news),
      h('a', { href: ctx.link('keys', { db }) }, t('key.others')),
    );
  }
  /** The key does not exist any longer: says whether it, or the last of its items, has expired. @param {number} [at] */
  function left(at) {
    const rows = data && KINDS.has(data.type) && !data.next && pages.length < 2 && !finding && data.body ? data.body.rows : [];
    const life =
      data && data.pttl >= 0
        ? data.pttl
        : rows.length
          ? Math.max(...rows.map((/** @type {any} */ r) => (r.pttl >= 0 ? r.pttl : Infinity)))
          : Infinity;
    if (data && data.now + life <= clock() + 1000) gone(data.now + life);
    else gone(at, data ? 'key.gone' : 'key.missing');
  }

  /** @param {any} v @param {boolean} [cut] */
  function viewer(v, cut) {
    const box = h('pre', { class: 'value', tabIndex: 0 }),
      pick = h('span', { class: 'segments' });
    const raw = () => bytes(v);
    /** @type {Array<[string, () => string|Promise<string>]>} */
    const ways = [
      ['text', () => plain(v) ?? text(v)],
      ['json', () => pretty(plain(v) ?? text(v))],
      ['hex', () => hex(raw())],
      ['msgpack', () => msgpack(raw())],
      ['gzip', async () => text(fromBytes(await gunzip(raw())))],
      ['bits', () => bits(raw().subarray(0, 8192))],
    ];
    /** @param {string} name */
    async function see(name) {
      const way = ways.find((w) => w[0] === name);
      for (const b of pick.children) b.setAttribute('aria-pressed', String(b.getAttribute('data-way') === name));
      try {
        say(box, way ? await way[1]() : '');
      } catch (e) {
        say(box, t('key.notthis', { way: t('key.way.' + name) }) + ' ' + /** @type {Error} */ (e).message);
      }
    }
    for (const [name] of ways)
      pick.append(h('button', { type: 'button', 'data-way': name, on: { click: () => see(name) } }, t('key.way.' + name)));
    const zipped = v.b !== undefined && raw()[0] === 0x1f && raw()[1] === 0x8b,
      start = zipped ? 'gzip' : /^\s*[[{]/.test(plain(v) ?? '') && !cut ? 'json' : 'text';
    see(start);
    return h(
      'div',
      null,
      h(
        'div',
        { class: 'row' },
        pick,
        copier(() => plain(v) ?? text(v)),
      ),
      cut && h('p', { class: 'look' }, t('key.cut')),
      box,
    );
  }
  async function edit() {
    // What the dialog shows stays as it is while the screen behind it follows the key.
    const { digest, body } = data,
      x = editor(body.v);
    if (!x) return;
    const a = await form({
      title: t('key.set'),
      text: t('key.set.text'),
      fields: [
        { name: 'v', label: t('key.value'), type: 'area', value: x.value, hint: x.hint, rows: 12 },
        { name: 'keep', label: t('key.keepttl'), type: 'check', value: true },
      ],
      command: (f) => {
        const v = x.read(f.v);
        if (typeof v === 'string') return v;
        return argv('SET', key, v, ...(digest ? ['IFDEQ', digest] : ['XX']), ...(f.keep ? ['KEEPTTL'] : []));
      },
    });
    if (!a) return;
    const o = { quiet: true, unchanged: t('key.changed.meanwhile') };
    if (await run(db, a.argv, digest ? o : { ...o, expect: [[['GET', key], body.seen || '']] })) load();
  }
  async function addItem() {
    const kind = data.type,
      K = KINDS.get(kind),
      f = [];
    if (kind === 'hash') f.push({ name: 'f', label: t('level.one.field') });
    if (kind === 'zset') f.push({ name: 's', label: t('key.score'), value: '0' });
    f.push({ name: 'v', label: kind === 'set' || kind === 'zset' ? t('level.one.member') : t('key.value') });
    const a = await form({
      title: t('key.add'),
      fields: f,
      command: (x) =>
        kind === 'hash'
          ? argv(K.add, key, fromText(x.f), fromText(x.v))
          : kind === 'zset'
            ? argv(K.add, key, 'NX', x.s, fromText(x.v))
            : argv(K.add, key, fromText(x.v)),
    });
    if (a) doit(a.argv, { quiet: true, unchanged: t('keys.new.there') });
  }
  function container() {
    const kind = data.type,
      K = KINDS.get(kind),
      it = (/** @type {any} */ r) => (kind === 'list' ? r.i : r[K.item]);
    async function itemTTL(/** @type {any} */ r) {
      const a = await form({
        title: t('key.itemttl', { item: kind === 'list' ? '#' + r.i : short(it(r), 60) }),
        fields: [span_('s', asSpan(r.pttl - (clock() - r.at)))],
        command: (v) => (parseSpan(v.s) > 0 ? argv(K.expire[0], key, parseSpan(v.s), K.expire[1], 1, it(r)) : t('bulk.span.bad')),
      });
      if (a) doit(a.argv, { quiet: true, ...(kind === 'list' ? { expect: still(r) } : {}) });
    }
    /** What must still be so when a command changes a row: the value that the page has shown of it. @param {any} r */
    const still = (r) =>
      /** @type {import('../lib/api.js').Expect[]} */ ([
        [kind === 'list' ? ['LINDEX', key, r.i] : kind === 'zset' ? ['ZSCORE', key, r.m] : ['HGET', key, r.f], r.seen],
      ]);
    async function setItem(/** @type {any} */ r) {
      const x = kind === 'zset' ? { value: r.score, hint: undefined, read: fromText } : editor(r.v);
      if (!x) return;
      const a = await form({
        title: t('key.set'),
        text: t('key.set.text'),
        fields: [
          {
            name: 'v',
            label: kind === 'zset' ? t('key.score') : t('key.value'),
            type: kind === 'zset' ? 'text' : 'area',
            value: x.value,
            hint: x.hint,
          },
        ],
        command: (f) => {
          const v = x.read(f.v);
          if (typeof v === 'string') return v;
          if (kind === 'hash') return argv('HSETEX', key, 'KEEPTTL', 'FIELDS', 1, it(r), v);
          if (kind === 'zset') return argv('ZADD', key, 'XX', v, it(r));
          const set = argv('LSET', key, r.i, v); // it removes the deadline
          return r.pttl < 0 ? set : [set, argv('LPEXPIREAT', key, Math.round(r.at + r.pttl), 'INDEXES', 1, r.i)];
        },
      });
      if (a && (await runAll(db, several(a.argv), { quiet: true, expect: still(r) }))) load();
    }
    /** Removes the deadline of an item. An index may lead to another element by now. @param {any} r */
    const persist = (r) => doit([K.persist[0], key, K.persist[1], 1, it(r)], kind === 'list' ? { expect: still(r) } : {});
    const whole = (/** @type {any} */ v) =>
      v &&
      (v.n !== undefined
        ? h('span', null, show({ ...v, n: undefined }, 120), ' ', h('small', null, t('bytes.cut', { n: v.n })))
        : show(v, 120));
    const columns = [
      kind === 'list' && { id: 'i', label: '#', num: true, value: (/** @type {any} */ r) => Number(r.i) },
      K.item !== 'i' && {
        id: 'it',
        label: t('level.one.' + K.level),
        wide: true,
        value: (/** @type {any} */ r) => text(r[K.item]),
        cell: (/** @type {any} */ r) => show(r[K.item], 100),
      },
      kind === 'zset' && {
        id: 's',
        label: t('key.score'),
        num: true,
        value: (/** @type {any} */ r) => Number(r.score),
        cell: (/** @type {any} */ r) => r.score,
      },
      (kind === 'hash' || kind === 'list') && {
        id: 'v',
        label: t('key.value'),
        wide: true,
        value: (/** @type {any} */ r) => text(r.v),
        cell: (/** @type {any} */ r) => whole(r.v),
      },
      {
        id: 'ttl',
        label: 'TTL',
        num: true,
        value: (/** @type {any} */ r) => (r.pttl < 0 ? Infinity : r.at + r.pttl),
        cell: (/** @type {any} */ r) => ttl(r.pttl, r.at),
      },
    ].filter(Boolean);
    items = table({
      label: t('key.items'),
      columns: /** @type {any} */ (columns),
      key: (r) => (kind === 'list' ? String(r.i) : id(it(r))),
      actions: (now) => [
        kind !== 'set' && (kind === 'zset' || editor(now().v)) && button('key.set', t('key.edit'), () => setItem(now()), { small: true }),
        button('key.itemttl', 'TTL', () => itemTTL(now()), { small: true }),
        now().pttl >= 0 && button('key.itemttl', t('bulk.persist'), () => persist(now()), { small: true }),
        K.remove && button('key.remove', t('key.remove'), () => doit([K.remove, key, it(now())], { danger: true }), { small: true }),
      ],
      shape: (r) => [r.pttl >= 0, !!editor(r.v)].join(),
      empty: () => t(finding ? 'keys.nomatch' : 'key.noitems'),
    });
    items.el.addEventListener('expired', () => {
      clearTimeout(later);
      later = +setTimeout(load, 800);
    });
    const search = h('input', {
      type: 'search',
      placeholder: t('key.find'),
      'aria-label': t('key.find'),
      spellcheck: 'false',
      value: finding,
      on: {
        change: () => {
          finding = search.value;
          pages = ['0'];
          load();
        },
      },
    });
    const back = h(
        'button',
        {
          type: 'button',
          on: {
            click: () => {
              pages.pop();
              load();
            },
          },
        },
        t('key.back'),
      ),
      on = h(
        'button',
        {
          type: 'button',
          on: {
            click: () => {
              pages.push(data.next);
              load();
            },
          },
        },
        t('key.next'),
      );
    fill(
      body,
      h(
        'section',
        { class: 'card' },
        h('div', { class: 'titlebar' }, kind !== 'list' && search, button('key.add', t('key.add'), addItem)),
        items.el,
        h('div', { class: 'row' }, back, on),
      ),
    );
    items.paint = () => {
      back.hidden = pages.length < 2;
      on.hidden = !data.next;
      items.set(data.body.rows.map((/** @type {any} */ r) => ({ ...r, at: data.now || clock() })));
    };
  }
  /** @param {any} x @returns {any} */
  const fact_ = (x) =>
    x === null || x === undefined
      ? '–'
      : Array.isArray(x)
        ? x.map((y, i) => [i ? ', ' : '', fact_(y)])
        : typeof x === 'object'
          ? 't' in x || 'b' in x
            ? show(x)
            : Object.entries(x).map(([a, b], i) => [i ? ', ' : '', a, ' ', fact_(b)])
          : String(x);
  /** @param {any} info */
  const facts = (info) =>
    h(
      'section',
      { class: 'card' },
      h('h2', null, t('key.raw')),
      h(
        'dl',
        { class: 'facts' },
        Object.entries(info)
          .filter(([n]) => n !== 'holders' && n !== 'line')
          .map(([n, v]) => h('div', null, h('dt', null, has('key.info.' + n) ? t('key.info.' + n) : n), h('dd', null, fact_(v)))),
      ),
    );
  function stream() {
    const b = data.body,
      groups = b.groups || [];
    const simple = (/** @type {string} */ label, /** @type {any[]} */ rows, /** @type {string[]} */ names) =>
      table({
        label,
        rows,
        key: (r) => id(r.name) + r.i,
        fade: false,
        columns: names.map((n) => ({
          id: n,
          label: t('key.g.' + n),
          num: n !== 'name',
          value: (/** @type {any} */ r) => (n === 'name' ? text(r.name) : r[n]),
          cell: (/** @type {any} */ r) =>
            n === 'name'
              ? show(r.name)
              : n === 'idle' || n === 'inactive'
                ? span(r[n])
                : typeof r[n] === 'number'
                  ? num(r[n])
                  : String(r[n] ?? '–'),
        })),
      }).el;
    const entries = table({
      label: t('key.entries'),
      rows: b.rows,
      key: (r) => r.id,
      fade: false,
      columns: [
        {
          id: 'id',
          label: 'ID',
          value: (r) => r.id,
          cell: (r) => h('span', { class: 'mono', title: date(Number(r.id.split('-')[0])) }, r.id),
        },
        {
          id: 'fields',
          label: t('level.field'),
          wide: true,
          sort: false,
          value: (r) => r.fields.map((/** @type {any} */ f) => text(f[0]) + '=' + text(f[1])).join(' '),
          cell: (r) => [
            r.fields.map((/** @type {any} */ f) => h('div', null, h('span', { class: 'faint' }, show(f[0], 60)), ' ', show(f[1], 200))),
            r.more > 0 &&
              h('a', { href: ctx.link('shell', { line: line(argv('XRANGE', key, r.id, r.id)) }) }, t('key.morefields', { n: r.more })),
          ],
        },
      ],
      empty: () => t('key.noitems'),
    });
    fill(
      body,
      facts(b.info || {}),
      groups.length > 0 &&
        h(
          'section',
          { class: 'card' },
          h('h2', null, t('key.groups')),
          simple(t('key.groups'), groups, ['name', 'consumers', 'pending', 'lag', 'last']),
          groups.map(
            (/** @type {any} */ g) =>
              g.consumersRows &&
              g.consumersRows.length > 0 && [
                h('h3', null, show(g.name, 60)),
                simple(text(g.name), g.consumersRows, ['name', 'pending', 'idle', 'inactive']),
              ],
          ),
        ),
      h(
        'section',
        { class: 'card' },
        h('h2', null, t('key.entries')),
        entries.el,
        h(
          'div',
          { class: 'row' },
          pages.length > 1 &&
            h(
              'button',
              {
                type: 'button',
                on: {
                  click: () => {
                    pages.pop();
                    load();
                  },
                },
              },
              t('key.back'),
            ),
          data.next &&
            h(
              'button',
              {
                type: 'button',
                on: {
                  click: () => {
                    pages.push(data.next);
                    load();
                  },
                },
              },
              t('key.next'),
            ),
        ),
      ),
    );
  }
  function paintBody(/** @type {boolean} */ same) {
    if (KINDS.has(data.type)) {
      if (!same || !items) container();
      items.paint();
    } else if (data.type === 'stream') stream();
    else if (data.type === 'string') {
      const v = data.body.v,
        cut = v.n !== undefined;
      fill(
        body,
        h(
          'section',
          { class: 'card' },
          h(
            'div',
            { class: 'titlebar' },
            h('h2', null, t('key.value'), ' ', h('small', null, t('key.len', { n: data.body.len ?? v.n ?? bytes(v).length }))),
            editor(v) && button('key.set', t('key.edit'), edit),
          ),
          v.t === undefined ? h('p', { class: 'faint' }, t('key.hidden')) : viewer(v, cut),
        ),
      );
    } else fill(body, facts((data.body && data.body.info) || {}));
  }
  /** The latest news of the key, which may come while an answer is on its way. @type {any} */
  let newest = null;
  function compare() {
    const x = newest;
    if (!data || !x || x.at < data.now) return;
    const moved = x.pttl >= 0 && Math.abs(x.at + x.pttl - data.now - data.pttl) > 1500;
    if (x.version !== data.version || (data.n !== undefined && x.n !== data.n) || x.pttl < 0 !== data.pttl < 0 || moved) load();
  }
  async function load() {
    if (over) return;
    try {
      const was = data;
      data = await get('key', { db, k, from: pages[pages.length - 1], count: 200, find: finding }, ctx.stop);
      say(news, '');
      paintHead();
      if (!was || was.version !== data.version || was.type !== data.type || items) paintBody(!!was && was.type === data.type);
      compare();
    } catch (e) {
      const err = /** @type {ApiError} */ (e);
      if (err.gone || err.status === 404) left();
      else ctx.fail(e);
    }
  }
  fill(root, head, body);
  load();
  ctx.onNews('key:' + db + ':' + k, (x, event) => {
    if (event === 'gone') left(x.at);
    else if (event === 'resync') load();
    else {
      newest = x;
      compare();
    }
  });
}

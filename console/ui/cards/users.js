// The cards of users on the screen Server: what each may do in words, what was refused, and what came by the console.
import { h, list } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { card, col } from './card.js';
import { form } from '../lib/dialog.js';
import { table } from '../lib/table.js';
import { clock } from '../lib/events.js';
import { argv, id, line, show, split, text } from '../lib/bytes.js';
import { t, num, span, time, date, has } from '../lib/i18n.js';

/** Names of a sentence: a, b, c. @param {any[]} names */
const names = (names) => names.map((n, i) => [i ? t('acl.comma') : '', n]);
const patterns = (/** @type {any[]} */ list) => names(list.map((p) => show(p, 60)));
const category = (/** @type {string} */ c) => (has('acl.cat.' + c) ? t('acl.cat.' + c) : '@' + c);

/** What a user's commands are, as a sentence. @param {any} c */
function commands(c) {
  if (!c.runs) return t('acl.nocommands');
  if (c.runs === c.of) return t('acl.allcommands');
  const parts = [
    ...c.whole.map(category),
    ...c.some.map((/** @type {string} */ s) => h('span', { class: 'mono' }, s)),
    ...(c.more ? [t('acl.more', { n: c.more })] : []),
  ];
  return [t(c.but ? 'acl.runs.but' : 'acl.runs', { n: c.runs, of: c.of }), ' ', names(parts), t('acl.stop')];
}

/** What a selector allows, as sentences. @param {any} g @param {boolean} other it is not the first */
function sentences(g, other) {
  const c = g.commands,
    out = [];
  if (other) out.push(h('li', null, t('acl.or')));
  if (c.runs === c.of && g.keys.all && g.channels.all) return [...out, h('li', { class: 'look' }, t('acl.everything'))];
  out.push(h('li', null, commands(c)));
  if (c.dangerous && c.runs < c.of) out.push(h('li', { class: 'look' }, t('acl.dangerous', { n: c.dangerous })));
  if (!c.runs) return out;
  const k = g.keys;
  if (k.all) out.push(h('li', null, t('acl.keys.all')));
  else if (!k.both.length && !k.read.length && !k.write.length) out.push(h('li', null, t('acl.keys.none')));
  if (k.both.length) out.push(h('li', null, t('acl.keys.both'), ' ', patterns(k.both), t('acl.stop')));
  if (k.read.length) out.push(h('li', null, t('acl.keys.read'), ' ', patterns(k.read), t('acl.stop')));
  if (k.write.length) out.push(h('li', null, t('acl.keys.write'), ' ', patterns(k.write), t('acl.stop')));
  if (!g.channels.all && g.channels.patterns.length)
    out.push(h('li', null, t('acl.channels'), ' ', patterns(g.channels.patterns), t('acl.stop')));
  else out.push(h('li', { class: 'faint' }, t(g.channels.all ? 'acl.channels.all' : 'acl.channels.none')));
  return out;
}

/** A password that is hard to guess: 24 letters of 32. */
function password() {
  const letters = 'abcdefghijkmnpqrstuvwxyz23456789',
    random = crypto.getRandomValues(new Uint8Array(24));
  return [...random].map((b) => letters[b % letters.length]).join('');
}

/** @param {import('../app.js').Ctx} ctx */
export function users(ctx) {
  const body = h('div', { class: 'users' });
  async function set(/** @type {any} */ u) {
    const fields = u
      ? [{ name: 'rules', label: t('acl.rules'), value: '', required: true, hint: t('acl.rules.hint') }]
      : [
          { name: 'name', label: t('keys.name'), required: true, value: '' },
          { name: 'password', label: t('acl.password'), value: password(), hint: t('acl.password.hint') },
          { name: 'rules', label: t('acl.rules'), value: '-@all +@read ~shop:*', hint: t('acl.rules.hint') },
        ];
    const a = await form({
      title: u ? t('acl.change.of', { name: text(u.name) }) : t('acl.new'),
      fields,
      command: (v) => {
        const rules = split(v.rules);
        if (!rules) return t('shell.quote');
        if (u ? !rules.length : !v.name.trim()) return t('acl.needs');
        return argv('ACL', 'SETUSER', u ? u.name : v.name.trim(), ...(u ? [] : ['on', v.password ? '>' + v.password : 'nopass']), ...rules);
      },
    });
    if (a && (await run(ctx.db, a.argv, { quiet: true }))) c.again();
  }
  /** The users of the server. @type {any[]} */ let all = [];
  /** What happens when a user is switched off or deleted. @param {any} u @param {'off'|'gone'} how */
  function ends(u, how) {
    const others = all.filter((x) => id(x.name) !== id(u.name) && x.on && (x.nopass || x.passwords));
    return [
      t(how === 'off' ? 'acl.off.text' : 'acl.delete.text'),
      u.mine && t('acl.mine.text'),
      text(u.name) === 'default' && t('acl.default.text'),
      !others.length && t('acl.last.text'),
    ]
      .filter(Boolean)
      .join(' ');
  }
  const login = (/** @type {any} */ u) =>
    !u.on
      ? [t('acl.off'), 'faint']
      : u.nopass
        ? [t('acl.nopass'), 'look']
        : u.passwords
          ? [t('acl.passwords', { n: u.passwords }), '']
          : [t('acl.nologin'), 'faint'];
  const row = (/** @type {any} */ u) =>
    h(
      'article',
      { class: 'user-row' },
      h(
        'div',
        { class: 'row' },
        h('b', null, show(u.name, 60)),
        u.mine && h('span', { class: 'badge' }, t('acl.you')),
        !u.on && h('span', { class: 'badge' }, t('acl.isoff')),
        h('span', { class: 'grow' }),
        ctx.button('server.acl', t('acl.change'), () => set(u), { small: true }),
        ctx.button(
          'server.acl',
          t(u.on ? 'acl.switchoff' : 'acl.switchon'),
          async () => {
            if (await run(ctx.db, ['ACL', 'SETUSER', u.name, u.on ? 'off' : 'on'], { danger: u.on, text: u.on ? ends(u, 'off') : '' }))
              c.again();
          },
          { small: true },
        ),
        text(u.name) !== 'default' &&
          ctx.button(
            'server.deluser',
            t('acl.delete'),
            async () => {
              if (await run(ctx.db, ['ACL', 'DELUSER', u.name], { danger: true, text: ends(u, 'gone') })) c.again();
            },
            { small: true, danger: true },
          ),
      ),
      h(
        'ul',
        null,
        h('li', { class: login(u)[1] }, login(u)[0]),
        u.may.map((/** @type {any} */ g, /** @type {number} */ i) => sentences(g, i > 0)),
      ),
      h('div', { class: 'faint rules' }, show(u.rules, 400)),
    );
  const c = card(ctx, {
    title: t('acl.title'),
    ms: 10000,
    tools: [h('span', { class: 'grow' }), ctx.button('server.acl', t('acl.new'), () => set(null), { small: true })],
    body,
    read: async () => {
      const a = await get('acl', {}, ctx.stop);
      all = a.users;
      list(
        body,
        a.users.map((/** @type {any} */ u) => ({ ...u, mine: id(u.name) === id(a.me) })),
        (u) => id(u.name) + JSON.stringify(u),
        row,
      );
      return a.denied;
    },
  });
  return c.el;
}

/** @param {import('../app.js').Ctx} ctx */
export function refusals(ctx) {
  const what = (/** @type {any} */ r) => (r.reason === 'auth' ? t('acllog.auth') : [t('acllog.' + r.reason), ' ', show(r.object, 80)]);
  let now = 0;
  const rows = table({
    label: t('acllog.title'),
    stack: true,
    key: (r) => String(r.id),
    fade: false,
    columns: [
      col('last', t('acllog.last'), (r) => r.last, {
        cell: (/** @type {any} */ r) => h('span', { title: date(r.last) }, t('queues.ago', { span: span(Math.max(0, now - r.last)) })),
      }),
      col('user', t('server.user'), (r) => text(r.user), { cell: (/** @type {any} */ r) => show(r.user, 40) }),
      col('what', t('acllog.what'), (r) => r.reason + ' ' + text(r.object), { wide: true, cell: what }),
      col('count', t('acllog.count'), (r) => r.count, { num: true, cell: (/** @type {any} */ r) => num(r.count) }),
      col('addr', t('server.addr'), (r) => r.addr, { minor: true, cell: (/** @type {any} */ r) => h('span', { class: 'mono' }, r.addr) }),
    ],
    empty: () => t('acllog.none'),
  });
  const reset = ctx.button(
    'server.aclreset',
    t('acllog.reset'),
    async () => {
      if (await run(ctx.db, ['ACL', 'LOG', 'RESET'], { danger: true })) c.again();
    },
    { small: true },
  );
  const c = card(ctx, {
    title: t('acllog.title'),
    text: t('acllog.text'),
    ms: 5000,
    tools: [h('span', { class: 'grow' }), reset],
    body: rows.el,
    read: async () => {
      const a = await get('acllog', {}, ctx.stop);
      now = clock();
      rows.el.hidden = !!a.denied;
      rows.set(a.rows);
      return a.denied;
    },
  });
  return c.el;
}

/** @param {import('../app.js').Ctx} ctx */
export function audit(ctx) {
  const rows = table({
    label: t('audit.title'),
    stack: true,
    key: (r) => r.at + r.addr + JSON.stringify(r.argv),
    fade: false,
    columns: [
      col('at', t('performance.at'), (r) => r.at, { cell: (/** @type {any} */ r) => h('span', { title: date(r.at) }, time(r.at)) }),
      col('user', t('server.user'), (r) => text(r.user), { cell: (/** @type {any} */ r) => show(r.user, 40) }),
      col('argv', t('performance.command'), (r) => line(r.argv), {
        wide: true,
        sort: false,
        cell: (/** @type {any} */ r) => r.argv.map((/** @type {any} */ a, /** @type {number} */ i) => [i ? ' ' : '', show(a, 60)]),
      }),
      col('result', t('audit.result'), (r) => r.result, {
        minor: true,
        wide: true,
        cell: (/** @type {any} */ r) => h('span', { class: r.refused ? 'look' : 'faint' }, r.result),
      }),
      col('addr', t('server.addr'), (r) => r.addr, { minor: true, cell: (/** @type {any} */ r) => h('span', { class: 'mono' }, r.addr) }),
    ],
    empty: () => t('audit.none'),
  });
  const c = card(ctx, {
    title: t('audit.title'),
    text: t('audit.text'),
    ms: 2000,
    body: rows.el,
    read: async () => {
      rows.el.hidden = !ctx.me.can['server.audit'];
      if (rows.el.hidden) return ['ACL LOG'];
      rows.set((await get('audit', {}, ctx.stop)).rows.slice(0, 100));
    },
  });
  return c.el;
}

// The card of users on the screen Server: it describes the rights of each user in words.
import { h, list } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { commandButton } from '../lib/command-button.js';
import { card } from './card.js';
import { form } from '../lib/dialog.js';
import { argv, id, show, split, text } from '../lib/bytes.js';
import { t, has } from '../lib/i18n.js';

/** @import { B, Child, CommandsRow, Ctx, GrantRow, UserRow } from '../lib/types.js' */
/** A user; isOwn: the user of this page. @typedef {UserRow & {isOwn: boolean}} Row */

/** Lists names in a sentence: a, b, c. @param {Child[]} names @returns {Child[]} */
const inSentence = (names) => names.map((n, i) => [i ? t('acl.comma') : '', n]);
/** @param {B[]} list */
const patterns = (list) => inSentence(list.map((p) => show(p, 60)));
/** @param {string} c */
const category = (c) => (has('acl.cat.' + c) ? t('acl.cat.' + c) : '@' + c);

/** Describes the commands that a user may run, in a sentence. @param {CommandsRow} c @returns {Child} */
function commands(c) {
  if (!c.runs) return t('acl.nocommands');
  if (c.runs === c.of) return t('acl.allcommands');
  const parts = [
    ...c.whole.map(category),
    ...c.some.map((s) => h('span', { class: 'mono' }, s)),
    ...(c.more ? [t('acl.more', { n: c.more })] : []),
  ];
  return [t(c.but ? 'acl.runs.but' : 'acl.runs', { n: c.runs, of: c.of }), ' ', inSentence(parts), t('acl.period')];
}

/** Describes the keys that a selector allows, in sentences. @param {GrantRow['keys']} k */
function keySentences(k) {
  if (k.all) return [h('li', null, t('acl.keys.all'))];
  if (!k.both.length && !k.read.length && !k.write.length) return [h('li', null, t('acl.keys.none'))];
  /** @param {string} key @param {B[]} list */
  const sentence = (key, list) => list.length > 0 && h('li', null, t(key), ' ', patterns(list), t('acl.period'));
  return [sentence('acl.keys.both', k.both), sentence('acl.keys.read', k.read), sentence('acl.keys.write', k.write)];
}

/** @param {GrantRow['channels']} c */
function channelSentence(c) {
  if (!c.all && c.patterns.length) return h('li', null, t('acl.channels'), ' ', patterns(c.patterns), t('acl.period'));
  return h('li', { class: 'faint' }, t(c.all ? 'acl.channels.all' : 'acl.channels.none'));
}

/**
 * Describes the rights that a selector gives, in sentences.
 * @param {GrantRow} g @param {boolean} other it is not the first @returns {Child[]}
 */
function sentences({ commands: c, keys, channels }, other) {
  const or = other && h('li', null, t('acl.or'));
  if (c.runs === c.of && keys.all && channels.all) return [or, h('li', { class: 'look' }, t('acl.everything'))];
  const dangerous = c.dangerous > 0 && c.runs < c.of && h('li', { class: 'look' }, t('acl.dangerous', { n: c.dangerous })),
    data = c.runs > 0 && [...keySentences(keys), channelSentence(channels)];
  return [or, h('li', null, commands(c)), dangerous, data];
}

/** Generates a password: 24 letters from an alphabet of 32. */
function password() {
  const letters = 'abcdefghijkmnpqrstuvwxyz23456789',
    random = crypto.getRandomValues(new Uint8Array(24));
  return [...random].map((b) => letters[b % letters.length]).join('');
}

/** The fields of a form about a user, or a new one. @param {Row|null} u */
const fields = (u) =>
  u
    ? [{ name: 'rules', label: t('acl.rules'), value: '', required: true, hint: t('acl.rules.hint') }]
    : [
        { name: 'name', label: t('keys.name'), required: true, value: '' },
        { name: 'password', label: t('acl.password'), value: password(), hint: t('acl.password.hint') },
        { name: 'rules', label: t('acl.rules'), value: '-@all +@read ~shop:*', hint: t('acl.rules.hint') },
      ];

/** Asks for the rules of a user, or for a new one, and sets them. Returns whether it succeeded. @param {number} db @param {Row|null} u */
async function setUser(db, u) {
  const a = await form({
    title: u ? t('acl.change.of', { name: text(u.name) }) : t('acl.new'),
    fields: fields(u),
    command: (v) => {
      const rules = split(v.rules);
      if (!rules) return t('shell.quote');
      if (u) return rules.length ? argv('ACL', 'SETUSER', u.name, ...rules) : t('acl.name.missing');
      const name = v.name.trim();
      return name ? argv('ACL', 'SETUSER', name, 'on', v.password ? '>' + v.password : 'nopass', ...rules) : t('acl.name.missing');
    },
  });
  return !!a && !!(await run(db, a.argv, { quiet: true }));
}

/** Describes the effects of disabling or deleting a user. @param {Row[]} all @param {Row} u @param {'off'|'gone'} how */
function consequences(all, u, how) {
  const others = all.filter((x) => id(x.name) !== id(u.name) && x.on && (x.nopass || x.passwords));
  return [
    t(how === 'off' ? 'acl.off.text' : 'acl.delete.text'),
    u.isOwn && t('acl.own.text'),
    text(u.name) === 'default' && t('acl.default.text'),
    !others.length && t('acl.last.text'),
  ]
    .filter(Boolean)
    .join(' ');
}

/** Describes how a user logs in. @param {Row} u */
function loginSentence(u) {
  if (!u.on) return h('li', { class: 'faint' }, t('acl.login.off'));
  if (u.nopass) return h('li', { class: 'look' }, t('acl.login.nopass'));
  if (u.passwords) return h('li', { class: '' }, t('acl.login.passwords', { n: u.passwords }));
  return h('li', { class: 'faint' }, t('acl.login.none'));
}

/** @param {Row} u @param {Child} buttons */
const userRow = (u, buttons) =>
  h(
    'article',
    { class: 'user-row' },
    h(
      'div',
      { class: 'row' },
      h('b', null, show(u.name, 60)),
      u.isOwn && h('span', { class: 'badge' }, t('acl.you')),
      !u.on && h('span', { class: 'badge' }, t('acl.off.badge')),
      h('span', { class: 'grow' }),
      buttons,
    ),
    h(
      'ul',
      null,
      loginSentence(u),
      u.may.map((g, i) => sentences(g, i > 0)),
    ),
    h('div', { class: 'faint rules' }, show(u.rules, 400)),
  );

/** @param {Ctx} ctx */
export function users(ctx) {
  const body = h('div', { class: 'users' });
  /** @type {Row[]} */
  let all = [];
  /** @param {Row|null} u */
  const change = async (u) => {
    if (await setUser(ctx.db, u)) again();
  };
  /** @param {Row} u */
  const buttons = (u) => [
    ctx.button('server.acl', t('acl.change'), () => change(u), { small: true }),
    commandButton(
      ctx,
      'server.acl',
      t(u.on ? 'acl.switchoff' : 'acl.switchon'),
      () => ['ACL', 'SETUSER', u.name, u.on ? 'off' : 'on'],
      () => again(),
      () => ({ danger: u.on, text: u.on ? consequences(all, u, 'off') : '' }),
    ),
    text(u.name) !== 'default' &&
      commandButton(
        ctx,
        'server.deluser',
        t('acl.delete'),
        () => ['ACL', 'DELUSER', u.name],
        () => again(),
        () => ({ danger: true, text: consequences(all, u, 'gone') }),
      ),
  ];
  const { el, again } = card(ctx, {
    title: t('acl.title'),
    ms: 10_000,
    tools: [h('span', { class: 'grow' }), ctx.button('server.acl', t('acl.new'), () => change(null), { small: true })],
    body,
    read: async () => {
      const a = await get('acl', {}, ctx.stop);
      all = a.users.map((u) => ({ ...u, isOwn: id(u.name) === id(a.me) }));
      list(
        body,
        all,
        (u) => id(u.name) + JSON.stringify(u),
        (u) => userRow(u, buttons(u)),
      );
      return a.denied;
    },
  });
  return el;
}

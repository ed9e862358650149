// The card of replication on the screen Server.
import { h, fill } from '../lib/h.js';
import { get } from '../lib/api.js';
import { commandButton } from '../lib/command-button.js';
import { card, property } from './card.js';
import { copier, show, text } from '../lib/bytes.js';
import { t, num, percent, size, span } from '../lib/i18n.js';

/** @import { Child, Ctx, MasterRow, ReplicaRow, ReplicationAnswer } from '../lib/types.js' */

/** A replica needs attention if its last acknowledgement is older than this, s. */
const SILENT_AFTER = 10;

/** @param {string} title @param {Child[]} lines @param {string} cls */
const node = (title, lines, cls) =>
  h(
    'div',
    { class: 'node ' + cls },
    h('b', null, title),
    lines.map((l) => l && h('div', null, l)),
  );
const arrow = () => h('div', { class: 'arrow', 'aria-hidden': 'true' }, '→');

/** @param {MasterRow} m */
function masterStep(m) {
  if (!m.up) return t('repl.step.' + m.step);
  return m.idle ? t('repl.up', { span: span(m.idle * 1000) }) : t('repl.up.now');
}

/** @param {MasterRow} m */
function masterNode(m) {
  return node(
    t('role.master'),
    [
      h('span', { class: 'mono' }, text(m.host) + ':' + m.port),
      h('span', { class: m.up ? '' : 'bad' }, masterStep(m)),
      !m.up && m.down > 0 && h('span', { class: 'bad' }, t('repl.down', { span: span(m.down * 1000) })),
      m.sync && t('repl.sync', { share: percent(m.sync.share), size: size(m.sync.read) }),
      text(m.error) && h('span', { class: 'bad' }, show(m.error, 200)),
      m.refused > 0 && h('span', { class: 'bad' }, t('repl.refused', { n: m.refused }), ' ', show(m.refusedLast, 200)),
    ],
    m.up ? '' : 'act',
  );
}

/** @param {ReplicaRow} r */
function replicaNode(r) {
  const online = r.state === 'online',
    silent = r.lag > SILENT_AFTER,
    behind = Number(r.behind) ? t('repl.behind', { size: size(Number(r.behind)) }) : t('repl.behind.none'),
    lag = r.lag ? t('repl.lag', { span: span(r.lag * 1000) }) : t('repl.lag.now');
  return node(
    t('role.replica'),
    [
      h('span', { class: 'mono' }, r.addr),
      online ? behind : t('repl.loads', { state: r.state }),
      online && h('span', { class: silent ? 'look' : 'faint' }, lag),
      online && h('span', { class: 'faint' }, t('repl.acked', { offset: num(r.offset) })),
    ],
    online && !silent ? '' : 'look',
  );
}

/** This server, between its master and its replicas. @param {ReplicationAnswer} a @returns {Child[]} */
function picture(a) {
  const own = node(
    t('repl.this'),
    [
      t('role.' + a.role),
      a.master && (a.master.readOnly ? t('repl.readonly') : h('span', { class: 'look' }, t('repl.writable'))),
      a.failover !== 'no-failover' && h('span', { class: 'look' }, t('repl.failover', { state: a.failover })),
    ],
    'this',
  );
  return [
    a.master && [masterNode(a.master), arrow()],
    own,
    a.replicas.length > 0 && [arrow(), h('div', { class: 'nodes' }, a.replicas.map(replicaNode))],
  ];
}

/**
 * The command that starts a replica. It names the host under which the browser reaches this server, and gives the replica the next port.
 * @param {string} hostname of the page
 * @param {number} port of this server
 */
export function replicaCommand(hostname, port) {
  const host = hostname.replace(/^\[|\]$/g, ''); // addresses of IPv6 have no brackets here
  return `ebb serve --port ${port < 65535 ? port + 1 : port - 1} --replicaof "${host} ${port}"`;
}

/** Explains how to start a replica. @param {Ctx} ctx @param {number|undefined} port of this server */
function firstReplica(ctx, port) {
  if (!port) return h('div', { class: 'note' }, t('repl.none.port'));
  const command = replicaCommand(location.hostname, port);
  return h(
    'div',
    { class: 'note' },
    t('repl.none'),
    h(
      'div',
      { class: 'row' },
      h('code', { class: 'command mono' }, command),
      copier(() => command),
    ),
    ctx.me.loginable && h('div', { class: 'faint' }, t('repl.none.auth')),
  );
}

/** @param {Ctx} ctx @param {ReplicationAnswer} a @returns {Child[]} */
function properties(ctx, a) {
  const { backlog: b, replicas } = a,
    online = replicas.filter((r) => r.state === 'online'),
    even = online.filter((r) => r.behind === '0');
  return [
    !a.grouped && !a.master && !replicas.length && firstReplica(ctx, a.port),
    property(t('repl.offset'), num(a.offset)),
    online.length > 0 && property(t('repl.wait'), num(even.length) + ' / ' + num(online.length)),
    b && property(t('repl.backlog'), b.on ? t('repl.backlog.of', { size: size(b.len), max: size(b.size) }) : t('server.off')),
    (a.full > 0 || a.partial > 0 || a.partialRefused > 0) && [
      property(t('repl.full'), num(a.full)),
      property(t('repl.partial'), num(a.partial)),
      property(t('repl.partial.refused'), num(a.partialRefused)),
    ],
  ];
}

/** A button for the failover to a replica. Members of a group reject that command. @param {Ctx} ctx @param {() => unknown} after */
const failover = (ctx, after) =>
  commandButton(ctx, 'server.failover', t('server.failover'), () => ['FAILOVER'], after, { danger: true, text: t('repl.failover.text') });

/** The button of the card. It stays as long as its action is available. @param {Ctx} ctx @param {() => unknown} after */
function changes(ctx, after) {
  const el = h('span', { class: 'row' });
  let shown = false;
  return {
    el,
    /** @param {ReplicationAnswer} a */
    set(a) {
      const offered = !a.grouped && a.replicas.some((r) => r.state === 'online');
      if (offered === shown) return;
      shown = offered;
      fill(el, offered && failover(ctx, after));
    },
  };
}

/** @param {Ctx} ctx */
export function replication(ctx) {
  const flow = h('div', { class: 'flow' }),
    facts = h('dl', { class: 'facts' }),
    tools = changes(ctx, () => again());
  const { el, again } = card(ctx, {
    title: t('repl.title'),
    ms: 2000,
    tools: tools.el,
    body: [flow, facts],
    read: async () => {
      const a = await get('replication', {}, ctx.stop);
      tools.set(a);
      fill(flow, a.role && picture(a));
      fill(facts, a.role && properties(ctx, a));
      return a.denied;
    },
  });
  return el;
}

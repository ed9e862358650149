// The cards of replication and of the files on the screen Server.
import { h, fill } from '../lib/h.js';
import { get, run } from '../lib/api.js';
import { card, fact } from './card.js';
import { show, text } from '../lib/bytes.js';
import { t, num, percent, size, span } from '../lib/i18n.js';

/** @param {any} title @param {any[]} lines @param {string} [cls] */
const node = (title, lines, cls = '') =>
  h(
    'div',
    { class: 'node ' + cls },
    h('b', null, title),
    lines.map((l) => l && h('div', null, l)),
  );
const arrow = () => h('div', { class: 'arrow', 'aria-hidden': 'true' }, '→');

/** @param {any} m the master */
function masterNode(m) {
  const [step, cls] = m.up
    ? [m.idle ? t('repl.up', { span: span(m.idle * 1000) }) : t('repl.up.now'), '']
    : [t('repl.step.' + m.step), 'bad'];
  return node(
    t('role.master'),
    [
      h('span', { class: 'mono' }, text(m.host) + ':' + m.port),
      h('span', { class: cls }, step),
      !m.up && m.down > 0 && h('span', { class: 'bad' }, t('repl.down', { span: span(m.down * 1000) })),
      m.sync && t('repl.sync', { share: percent(m.sync.share), size: size(m.sync.read) }),
      text(m.error) && h('span', { class: 'bad' }, show(m.error, 200)),
      m.refused > 0 && h('span', { class: 'bad' }, t('repl.refused', { n: m.refused }), ' ', show(m.refusedLast, 200)),
    ],
    m.up ? '' : 'act',
  );
}

/** @param {any} r a replica */
function replicaNode(r) {
  const online = r.state === 'online',
    behind = Number(r.behind);
  return node(
    t('role.replica'),
    [
      h('span', { class: 'mono' }, r.addr),
      online ? (behind ? t('repl.behind', { size: size(behind) }) : t('repl.even')) : t('repl.loads', { state: r.state }),
      online &&
        h('span', { class: r.lag > 10 ? 'look' : 'faint' }, r.lag ? t('repl.lag', { span: span(r.lag * 1000) }) : t('repl.lag.now')),
    ],
    online && r.lag <= 10 ? '' : 'look',
  );
}

/** @param {import('../app.js').Ctx} ctx */
export function replication(ctx) {
  const picture = h('div', { class: 'flow' }),
    facts = h('dl', { class: 'facts' }),
    tools = h('span');
  const failover = ctx.button(
    'server.failover',
    t('server.failover'),
    async () => {
      if (await run(ctx.db, ['FAILOVER'], { danger: true, text: t('repl.failover.text') })) c.again();
    },
    { small: true },
  );
  fill(tools, failover);
  const c = card(ctx, {
    title: t('repl.title'),
    ms: 2000,
    tools,
    body: [picture, facts],
    read: async () => {
      const a = await get('replication', {}, ctx.stop);
      tools.hidden = !a.replicas.some((/** @type {any} */ r) => r.state === 'online');
      if (!a.role) {
        fill(picture);
        fill(facts);
        return a.denied;
      }
      const me = node(
        t('repl.this'),
        [
          t('role.' + a.role),
          a.master && (a.master.readOnly ? t('repl.readonly') : h('span', { class: 'look' }, t('repl.writable'))),
          a.failover !== 'no-failover' && h('span', { class: 'look' }, t('repl.failover', { state: a.failover })),
        ],
        'this',
      );
      fill(
        picture,
        a.master && [masterNode(a.master), arrow()],
        me,
        a.replicas.length > 0 && [arrow(), h('div', { class: 'nodes' }, a.replicas.map(replicaNode))],
      );
      fill(
        facts,
        !a.master &&
          !a.replicas.length &&
          h(
            'div',
            { class: 'note' },
            t('repl.none'),
            h('pre', { class: 'command' }, 'ebb serve --replicaof ' + location.hostname + ' PORT'),
          ),
        fact(t('repl.offset'), num(a.offset)),
        fact(
          t('repl.backlog'),
          a.backlog.on ? t('repl.backlog.of', { size: size(a.backlog.len), max: size(a.backlog.size) }) : t('server.off'),
        ),
        (a.full > 0 || a.partial > 0 || a.partialRefused > 0) && [
          fact(t('repl.full'), num(a.full)),
          fact(t('repl.partial'), num(a.partial)),
          fact(t('repl.partial.refused'), num(a.partialRefused)),
        ],
      );
      return a.denied;
    },
  });
  return c.el;
}

/** The save points "3600 1 300 100" in words. @param {string} points */
function savePoints(points) {
  const n = points.split(' ').filter(Boolean).map(Number),
    out = [];
  for (let i = 0; i + 1 < n.length; i += 2) out.push(t('files.point', { span: span(n[i] * 1000), n: n[i + 1] }));
  return out.length ? out.join('; ') : t('files.nopoints');
}

/** @param {import('../app.js').Ctx} ctx */
export function files(ctx) {
  const body = h('div'),
    tools = h('span', { class: 'row' });
  const verb = (/** @type {string} */ action, /** @type {string[]} */ a) =>
    ctx.button(
      'server.' + action,
      t('server.' + action),
      async () => {
        if (await run(ctx.db, a)) c.again();
      },
      { small: true },
    );
  fill(tools, verb('bgsave', ['BGSAVE']), verb('bgrewrite', ['BGREWRITEAOF']));
  const c = card(ctx, {
    title: t('files.title'),
    ms: 2000,
    tools,
    body,
    read: async () => {
      const a = await get('files', {}, ctx.stop),
        s = a.snapshot,
        f = a.aof;
      tools.hidden = !s || a.memory;
      if (!s) {
        fill(body);
        return a.denied;
      }
      if (a.memory) {
        fill(body, h('p', { class: 'faint' }, t('files.memory')), h('pre', { class: 'command' }, 'ebb serve --dir data'));
        return a.denied;
      }
      const ok = (/** @type {boolean} */ good) => (good ? t('files.ok') : h('span', { class: 'bad' }, t('files.failed')));
      fill(
        body,
        a.dir && h('p', { class: 'mono bytes' }, a.dir),
        h('h3', null, t('files.snapshot')),
        h(
          'dl',
          { class: 'facts' },
          fact(t('files.last'), s.last ? t('queues.ago', { span: span(Math.max(0, a.now - s.last)) }) : t('files.never')),
          fact(t('files.result'), ok(s.ok)),
          s.took !== null && fact(t('performance.took'), span(s.took * 1000)),
          fact(t('server.changes'), num(s.changes)),
          s.saving && fact(t('files.running'), percent(s.progress)),
          s.scheduled && fact(t('files.running'), t('files.scheduled')),
          fact(t('files.points'), savePoints(s.points)),
        ),
        h('h3', null, t('server.aof')),
        !f.on
          ? h('p', { class: 'faint' }, t('files.aof.off'))
          : h(
              'dl',
              { class: 'facts' },
              fact(t('files.size'), size(f.size)),
              fact(t('files.base'), size(f.base)),
              fact(t('files.fsync'), t('files.fsync.' + f.fsync)),
              fact(t('files.write'), ok(f.writeOK)),
              f.buffered > 0 && fact(t('files.buffered'), size(f.buffered)),
              f.delayedSyncs > 0 && fact(t('files.delayed'), num(f.delayedSyncs), 'look'),
              f.rewrites > 0 && [
                fact(t('files.rewrite'), ok(f.rewriteOK)),
                f.rewriteTook !== null && fact(t('performance.took'), span(f.rewriteTook * 1000)),
              ],
              (f.rewriting || f.rewriteScheduled) && fact(t('files.running'), t(f.rewriting ? 'files.rewriting' : 'files.scheduled')),
            ),
        (a.loaded.keys > 0 || a.loaded.expired > 0) &&
          h('p', { class: 'faint' }, t('files.loaded', { n: a.loaded.keys, expired: a.loaded.expired })),
      );
      return a.denied;
    },
  });
  return c.el;
}

// The card of the files on the screen Server: the snapshot and the append-only file.
import { h, fill } from '../lib/h.js';
import { get } from '../lib/api.js';
import { commandButton } from '../lib/command-button.js';
import { card, property } from './card.js';
import { t, num, percent, size, span } from '../lib/i18n.js';

/** @import { AppendOnly, Ctx, FilesAnswer, Snapshot } from '../lib/types.js' */

/** The save points "3600 1 300 100" in words. @param {string} points */
function savePoints(points) {
  const n = points.split(' ').filter(Boolean).map(Number),
    out = [];
  for (let i = 0; i + 1 < n.length; i += 2) out.push(t('files.point', { span: span(n[i] * 1000), n: n[i + 1] }));
  return out.length ? out.join('; ') : t('files.nopoints');
}

/** @param {boolean} ok */
const outcome = (ok) => (ok ? t('files.ok') : h('span', { class: 'bad' }, t('files.failed')));
/** How long a job took. @param {number|null} seconds */
const took = (seconds) => seconds !== null && property(t('performance.took'), span(seconds * 1000));

/** @param {Snapshot} s @param {number} now */
const snapshotProperties = (s, now) =>
  h(
    'dl',
    { class: 'facts' },
    property(t('files.last'), s.last ? t('time.ago', { span: span(Math.max(0, now - s.last)) }) : t('files.never')),
    property(t('files.result'), outcome(s.ok)),
    took(s.took),
    property(t('server.changes'), num(s.changes)),
    s.saving && property(t('files.running'), percent(s.progress)),
    s.scheduled && property(t('files.running'), t('files.running.scheduled')),
    property(t('files.points'), savePoints(s.points)),
  );

/** @param {AppendOnly} f */
const appendOnlyProperties = (f) =>
  h(
    'dl',
    { class: 'facts' },
    property(t('files.size'), size(f.size)),
    property(t('files.base'), size(f.base)),
    property(t('files.fsync'), t('files.fsync.' + f.fsync)),
    property(t('files.write'), outcome(f.writeOK)),
    f.buffered > 0 && property(t('files.buffered'), size(f.buffered)),
    f.delayedSyncs > 0 && property(t('files.delayed'), num(f.delayedSyncs), 'look'),
    f.rewrites > 0 && [property(t('files.rewrite'), outcome(f.rewriteOK)), took(f.rewriteTook)],
    (f.rewriting || f.rewriteScheduled) &&
      property(t('files.running'), t(f.rewriting ? 'files.running.rewrite' : 'files.running.scheduled')),
  );

/** @param {FilesAnswer} a */
function content({ now, dir, memory, snapshot, aof, loaded }) {
  if (!snapshot || !aof) return [];
  if (memory) return [h('p', { class: 'faint' }, t('files.memory')), h('pre', { class: 'command' }, 'ebb serve --dir data')];
  return [
    dir && h('p', { class: 'mono bytes' }, dir),
    h('h3', null, t('files.snapshot')),
    snapshotProperties(snapshot, now),
    h('h3', null, t('server.aof')),
    aof.on ? appendOnlyProperties(aof) : h('p', { class: 'faint' }, t('files.aof.off')),
    loaded &&
      (loaded.keys > 0 || loaded.expired > 0) &&
      h('p', { class: 'faint' }, t('files.loaded', { n: loaded.keys, expired: loaded.expired })),
  ];
}

/** @param {Ctx} ctx */
export function files(ctx) {
  const body = h('div');
  /** @param {string} action @param {string} command */
  const job = (action, command) =>
    commandButton(
      ctx,
      'server.' + action,
      t('server.' + action),
      () => [command],
      () => again(),
    );
  const tools = h('span', { class: 'row' }, job('bgsave', 'BGSAVE'), job('bgrewrite', 'BGREWRITEAOF'));
  const { el, again } = card(ctx, {
    title: t('files.title'),
    ms: 2000,
    tools,
    body,
    read: async () => {
      const a = await get('files', {}, ctx.stop);
      tools.hidden = !a.snapshot || a.memory;
      fill(body, content(a));
      return a.denied;
    },
  });
  return el;
}

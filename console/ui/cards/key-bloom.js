// A Bloom filter on the screen Key: its fill level, its layers and its generations.
import { h, section } from '../lib/h.js';
import { t, num, percent, span } from '../lib/i18n.js';
import { property } from './card.js';

/** @import { Facts } from '../lib/types.js' */

/** @param {Facts} info */
export function bloomCard(info) {
  const of = (/** @type {string} */ name) => Number(info[name] ?? 0),
    share = of('items') / Math.max(1, of('capacity')),
    full = h('meter', { min: 0, max: 1, high: 0.9, value: Math.min(1, share), 'aria-hidden': 'true' }),
    windowed = of('window') > 0;
  return section(
    t('key.bloom'),
    h(
      'dl',
      { class: 'facts' },
      property(t('key.bloom.fill'), h('span', null, full, ' ', `${num(of('items'))} / ${num(of('capacity'))} (${percent(share)})`)),
      property(t('key.bloom.error'), percent(of('error'))),
      property(t('key.bloom.layers'), num(of('layers'))),
      property(t('key.bloom.expansion'), info.expansion === null ? t('key.bloom.fixed') : '× ' + num(of('expansion'))),
      windowed && property(t('key.bloom.window'), span(of('window'))),
      windowed && property(t('key.bloom.generations'), `${num(of('generations'))} × ${span(of('window') / of('generations'))}`),
    ),
  );
}

// The members of a sorted set as places on a map, if their scores are those of GEOADD.
import { text } from '../lib/bytes.js';
import { h, svg } from '../lib/h.js';
import { t, num } from '../lib/i18n.js';

/** @import { Item } from '../lib/types.js' */
/** A place in degrees. @typedef {{lon: number, lat: number}} Place */

/** The bits of each coordinate, and its range. Latitudes end at the edge of a square map of the world. */
const BITS = 26,
  LON = 180,
  LAT = 85.05112878;
/** The scores of places are integers in this range, except those of a corner in the south-west. */
const MIN_SCORE = 2 ** 40,
  MAX_SCORE = 2 ** (2 * BITS);
/** The size of the map, px, and its smallest extent in degrees. */
const WIDTH = 480,
  HEIGHT = 240,
  EDGE = 16,
  SPAN = 0.001;

/**
 * Decodes the place of a score: the even bits form the latitude, the odd ones the longitude.
 * @param {string} score
 * @returns {Place}
 */
export function placeOf(score) {
  const bits = BigInt(score);
  let lon = 0,
    lat = 0;
  for (let i = 0; i < BITS; i++) {
    lat += Number((bits >> BigInt(2 * i)) & 1n) * 2 ** i;
    lon += Number((bits >> BigInt(2 * i + 1)) & 1n) * 2 ** i;
  }
  /** @param {number} n @param {number} most */
  const degrees = (n, most) => ((n + 0.5) / 2 ** BITS) * 2 * most - most;
  return { lon: degrees(lon, LON), lat: degrees(lat, LAT) };
}

/** Whether the scores may encode places. A time in ms may look like a place, so the reader decides. @param {Item[]} rows */
export const arePlaces = (rows) =>
  rows.length > 0 && rows.every(({ score = '' }) => /^\d+$/.test(score) && Number(score) >= MIN_SCORE && Number(score) < MAX_SCORE);

/** A map with the places of the members. @param {Item[]} rows */
export function geoMap(rows) {
  const all = rows.map((r) => ({ name: text(r.m), ...placeOf(r.score || '0') })),
    lons = all.map((p) => p.lon),
    lats = all.map((p) => p.lat),
    west = Math.min(...lons),
    south = Math.min(...lats),
    wide = Math.max(SPAN, Math.max(...lons) - west),
    high = Math.max(SPAN, Math.max(...lats) - south),
    // A degree of longitude is shorter than a degree of latitude.
    narrow = Math.cos(((south + high / 2) * Math.PI) / 180),
    scale = Math.min((WIDTH - 2 * EDGE) / (wide * narrow), (HEIGHT - 2 * EDGE) / high);
  const dots = all.map((p) => {
    const words = `${p.name}: ${num(p.lat, 4)}°, ${num(p.lon, 4)}°`,
      at = { cx: EDGE + (p.lon - west) * narrow * scale, cy: HEIGHT - EDGE - (p.lat - south) * scale };
    return svg('circle', { class: 's-key', r: 4, ...at }, svg('title', null, words));
  });
  const label = t('key.geo', { n: all.length }),
    picture = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label }, dots);
  return h('div', { class: 'geo' }, picture, h('small', null, label));
}

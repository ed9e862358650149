import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
const { arePlaces, placeOf } = await import('../ui/cards/key-geo.js');

test('a score of GEOADD is a place', () => {
  for (const [score, lon, lat] of [
    ['3479099956230698', 13.361389, 38.115556],
    ['3479447370796909', 15.087269, 37.502669],
  ]) {
    const p = placeOf(score);
    assert.ok(Math.abs(p.lon - lon) < 1e-5 && Math.abs(p.lat - lat) < 1e-5, JSON.stringify(p));
  }
});

test('other scores are not places', () => {
  assert.equal(arePlaces([{ score: '3479099956230698' }]), true);
  for (const score of ['1.5', '7', '-3479099956230698', 'inf', '9007199254740992']) assert.equal(arePlaces([{ score }]), false, score);
  assert.equal(arePlaces([]), false);
});

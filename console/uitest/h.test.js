import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
const { fill, h, list, setText } = await import('../ui/lib/h.js');

test('children are nodes and text, and nothing else', () => {
  const el = h(
    'p',
    { class: ['a', false, 'b'], title: null, 'data-x': 1, hidden: true },
    'a',
    1,
    [null, ['<b>', h('i')]],
    false,
    true,
    undefined,
  );
  assert.equal(el.textContent, 'a1<b>');
  assert.equal(el.children.length, 1);
  assert.equal(el.getAttribute('class'), 'a b');
  assert.equal(el.getAttribute('title'), null);
  assert.equal(el.hidden, true);
  fill(el, 'new');
  assert.equal(el.textContent, 'new');
  setText(el, 'words');
  assert.equal(el.textContent, 'words');
});

test('a list keeps the element of a row while its key stays', () => {
  const ul = h('ul');
  const changes = [];
  const show = (rows) => {
    list(
      ul,
      rows,
      (r) => r.k,
      (r) => h('li', null, r.k),
      (el, r, before) => changes.push([el.textContent, before.v, r.v]),
    );
    return ul.children.map((c) => c.textContent).join('');
  };
  assert.equal(show([{ k: 'a', v: 1 }, { k: 'b' }, { k: 'c' }]), 'abc');
  const [a, , c] = ul.children;
  assert.equal(show([{ k: 'c' }, { k: 'd' }, { k: 'a', v: 2 }]), 'cda');
  assert.equal(ul.children[0], c);
  assert.equal(ul.children[2], a);
  assert.deepEqual(
    changes.find(([k]) => k === 'a'),
    ['a', 1, 2],
  );
  assert.equal(show([{ k: 'x' }, { k: 'x' }]), 'x'); // one row for a key
  assert.equal(show([]), '');
});

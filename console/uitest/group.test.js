import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { install } from './dom.js';

install();
Object.defineProperty(globalThis, 'localStorage', { value: { getItem: () => null, setItem() {} } });
const en = JSON.parse(readFileSync(new URL('../ui/i18n/en.json', import.meta.url), 'utf8'));
let answer = {};
globalThis.fetch = async (url) => {
  const body = String(url).includes('i18n') ? en : answer;
  return new Response(JSON.stringify(body), { headers: { 'Content-Type': 'application/json' } });
};
const { setLang } = await import('../ui/lib/i18n.js');
const { group } = await import('../ui/cards/group.js');
await setLang('en');

const node = (n, more) => ({
  node: n,
  addr: 'h:' + n,
  isPort: false,
  isThis: false,
  role: 'insync',
  silent: -1,
  incarnation: 1,
  link: '',
  offset: '70',
  behind: -1,
  since: -1,
  share: 0,
  next: false,
  ...more,
});
const state = { state: 'leading', node: 1, isIn: true, epoch: 4, version: 9, master: 1, inSync: 2, k: 1, leader: 1, voters: 3, losses: 0 };
const leading = { ...state, writable: true, lease: true };
const tags = (el, name) => [...(el.localName === name ? [el] : []), ...el.children.flatMap((x) => tags(x, name))];
const classes = (el) => el.getAttribute('class') || '';

/** Shows an answer of the API in a card. */
async function show(a) {
  answer = a;
  const closed = [],
    button = (_, label) => Object.assign(document.createElement('button'), { textContent: label }),
    el = group({ onClose: (fn) => closed.push(fn), fail: assert.fail, button });
  await new Promise((resolve) => el.addEventListener('refused', resolve)); // a card reports the end of each read
  for (const fn of closed) fn();
  const rows = tags(el, 'tbody')[0].children;
  return { el, rows, facts: tags(el, 'dl')[0].textContent, note: tags(el, 'p').at(-1).textContent };
}

test('the master shows how far each node is', async () => {
  const { el, rows, facts, note } = await show({
    group: leading,
    listed: true,
    nodes: [
      node(1, { isThis: true, role: 'master' }),
      node(2, { link: 'up', behind: 0, since: 0, next: true }),
      node(3, { role: 'catching', link: 'up', offset: '30', behind: 524288, since: 1200, share: 0.5 }),
      node(4, { role: 'witness', isPort: true, offset: '' }),
      node(5, { role: 'out', silent: 3000, link: 'down' }),
    ],
  });
  assert.match(facts, /Epoch4Group version9/);
  assert.match(facts, /Losses accepted by an operator0/);
  assert.deepEqual(
    rows.map((tr) => tr.children.map((td) => td.textContent).join('|')),
    [
      '1h:1This server|master |1|–|70|–|',
      '2h:2|in sync |1|up|70| up to date|Make node 2 the master',
      '3h:3|catching up |1|up|30| 512 KiB, 1.2 s|',
      '4h:4group-port|witness |1|–|–|–|',
      '5h:5|not in sync silent for 3.0 s|1|down|70|–|',
    ],
  );
  assert.deepEqual(
    tags(el, 'meter').map((m) => [m.value, m.getAttribute('aria-hidden')]),
    [
      [0, 'true'],
      [0.5, 'true'],
    ],
  );
  assert.match(note, /^A bar is full/);
});

test('a node that is behind by little has a bar that a reader sees', async () => {
  const { el } = await show({ group: leading, listed: true, nodes: [node(2, { link: 'up', behind: 9, since: 12, share: 0.00001 })] });
  assert.ok(tags(el, 'meter')[0].value >= 0.04);
});

test('a member says what it does not know, and that the master is silent', async () => {
  const { rows, note } = await show({
    group: { ...state, state: 'searching', node: 2 },
    listed: true,
    nodes: [node(1, { role: 'master', silent: 900 }), node(2, { isThis: true, link: 'down', next: true })],
  });
  const silent = tags(rows[0], 'span').find((s) => /silent/.test(s.textContent) && /bad/.test(classes(s)));
  assert.equal(silent.textContent, 'silent for 900 ms');
  assert.match(note, /The master, node 1, is silent.*Only the master knows/);
});

test('the card names what the user may not see', async () => {
  const some = await show({ group: leading, listed: false, nodes: [node(1, { isThis: true, role: 'master', addr: '' })] });
  assert.match(some.note, /^You do not have permission for GROUP STATUS/);
  assert.equal(some.el.hidden, false);
  const none = await show({ group: null, listed: false, nodes: [], denied: ['GROUP STATUS', 'INFO'] });
  assert.equal(none.el.hidden, true);
});

test('a group that has not begun, and a node that loads its data', async () => {
  const { el, note } = await show({ group: { ...state, state: 'starting', node: 0, master: 0 }, listed: true, nodes: [] });
  assert.match(note, /no master yet/);
  assert.match(el.textContent, /This node has no list of the group yet/);
});

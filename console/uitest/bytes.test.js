import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
const {
  argv,
  beginning,
  bytes,
  editor,
  escaped,
  exactly,
  fromBytes,
  fromText,
  fromUrl,
  glob,
  id,
  line,
  plain,
  query,
  quote,
  show,
  split,
  unescaped,
  upToColon,
  url,
} = await import('../ui/lib/bytes.js');
const all = Uint8Array.from({ length: 256 }, (_, i) => i);

test('any bytes come back from an address', () => {
  for (const a of [all, new Uint8Array(0), Uint8Array.of(255, 254), new TextEncoder().encode('käse 中文')])
    assert.deepEqual(bytes(fromUrl(url(fromBytes(a)))), a);
  assert.match(url(fromBytes(all)), /^[\w-]+$/);
});

test('text is shown as it is only where a reader sees all of it', () => {
  assert.deepEqual(fromText('plain 中文'), { t: 'plain 中文' });
  assert.deepEqual(fromText('I \u2764\ufe0f'), { t: 'I \u2764\ufe0f' });
  const unseen = ['pay\ufe0f', 'pay\u034f', '\u3164', '\u115f', '\u2800', '\u00a0', '\u0600'];
  for (const s of ['a\nb', 'a\u202eb', 'a\u200bb', '\ud800', ...unseen]) assert.notEqual(fromText(s).b, undefined, JSON.stringify(s));
  assert.equal(fromBytes(Uint8Array.of(0xff)).t, '\\xff');
});

test('a quoted command is split into its arguments', () => {
  const args = argv('SET', 'a key', '', 'say "hi"', "it's", 'back\\slash', 'line\nend', 12);
  assert.deepEqual(split(line(args))?.map(bytes), args.map(bytes));
  assert.deepEqual(split(quote(fromBytes(all)))?.map(bytes), [all]);
});

test('a line is split as redis-cli does', () => {
  const words = (s) => split(s)?.map((x) => new TextDecoder().decode(bytes(x)));
  assert.deepEqual(words('  GET  "a b" \'c d\' e\\f '), ['GET', 'a b', 'c d', 'e\\f']);
  assert.deepEqual(words('"\\x41\\n\\"" \'\\\'\''), ['A\n"', "'"]);
  assert.deepEqual(words(''), []);
  assert.equal(split('GET "open'), null);
});

test('escapes are read as they are written', () => {
  assert.deepEqual(bytes(unescaped(escaped(all))), all);
  assert.equal(typeof unescaped('\\q'), 'string');
});

test('a form edits a value without changing other bytes', () => {
  for (const a of [all, new TextEncoder().encode('two\nlines\t')]) {
    const x = fromBytes(a),
      e = editor(x);
    assert.ok(e);
    assert.deepEqual(bytes(e.read(e.value)), a);
  }
  assert.equal(editor({ t: 'beginning', n: 1e6 }), null);
  assert.equal(plain(fromText('\u3000\u6f22\u5b57\n')), '\u3000\u6f22\u5b57\n');
  assert.equal(plain(fromText('a\r\nb')), undefined); // a text area would change it
});

test('a name has one key for a map, and others have other keys', () => {
  assert.equal(id({ t: 'a' }), id(fromText('a')));
  assert.equal(new Set([{ t: 'a' }, fromText('a\n'), { t: 'a', n: 5 }, null].map(id)).size, 4);
});

test('the empty name is a parameter, an empty filter is none', () => {
  assert.equal(String(query({ k: '', match: '', db: 0, from: undefined, g: null })), 'k=&db=0');
  assert.equal(String(query({ from: '', id: '' })), 'from=');
});

test('prefixes', () => {
  assert.equal(glob('a*[b]?\\'), 'a\\*\\[b\\]\\?\\\\');
  assert.deepEqual(beginning({ t: 'a*' }), { match: 'a\\**' });
  assert.deepEqual(Object.keys(beginning(fromBytes(all))), ['prefix']);
  assert.deepEqual(upToColon({ t: 'user:1:x' }, 0), { t: 'user:' });
  assert.deepEqual(upToColon({ t: 'user:1:x' }, 5), { t: 'user:1:' });
  assert.equal(upToColon({ t: 'user' }, 0), null);
});

test('the pattern of a name matches that name alone', () => {
  assert.equal(exactly({ t: 'lim:1' }), '\\lim:1');
  assert.equal(exactly({ t: '*a[b]?\\' }), '\\*a\\[b\\]\\?\\\\');
  assert.equal(exactly({ b: '/w==', t: '\\xff' }), '');
});

test('a reader sees the spaces at the ends of a name', () => {
  /** What an element shows, with an underscore for a space in a box. */
  const seen = (el) => {
    if (!el.localName) return el.textContent;
    return el.getAttribute('class') === 'blank' ? '_' : el.childNodes.map(seen).join('');
  };
  const shown = (s) => seen(show(fromText(s)));
  assert.equal(shown('  '), '__ bytes.blank');
  assert.equal(shown('trailing '), 'trailing_');
  assert.equal(shown(' a  b '), '_a  b_');
  assert.equal(shown('plain'), 'plain');
  assert.equal(shown(' \n '), '_\\n_');
  assert.equal(show(fromText(' a')).textContent, ' a');
});

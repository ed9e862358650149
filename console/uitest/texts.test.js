import test from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';

const ui = new URL('../ui/', import.meta.url);
const keys = Object.keys(JSON.parse(readFileSync(new URL('i18n/en.json', ui), 'utf8')));
const source = readdirSync(ui, { recursive: true })
  .filter((f) => String(f).endsWith('.js'))
  .map((f) => readFileSync(new URL(String(f), ui), 'utf8'))
  .join('\n');
const literals = new Set([...source.matchAll(/'([\w.@-]*)'/g)].map((m) => m[1]));
/** Texts whose key is made of parts: t('level.' + name). */
const parts = [...literals].filter((s) => /\w\.$/.test(s));

test('the pages ask for no text that does not exist', () => {
  for (const [, key] of source.matchAll(/\bt\('([\w.-]+)'[),]/g)) assert.ok(keys.includes(key), key);
});

test('each text is used', () => {
  for (const key of keys) assert.ok(literals.has(key) || parts.some((p) => key.startsWith(p)), key);
});

const modules = readdirSync(ui, { recursive: true })
  .map(String)
  .filter((f) => f.endsWith('.js'));

test('each export has a user', () => {
  const tests = readdirSync(new URL('.', import.meta.url)).filter((f) => f.endsWith('.test.js')),
    text = new Map(modules.map((f) => [f, readFileSync(new URL(f, ui), 'utf8')]));
  for (const f of tests) text.set('test ' + f, readFileSync(new URL(f, import.meta.url), 'utf8'));
  for (const f of modules.filter((x) => !x.startsWith('screens')))
    for (const [, name] of text.get(f).matchAll(/^export (?:async )?(?:const|function|class|let) (\w+)/gm))
      assert.ok(
        [...text].some(([other, s]) => other !== f && new RegExp('\\b' + name + '\\b').test(s)),
        f + ' ' + name,
      );
});

test('each class of the styles is used', () => {
  const css = readFileSync(new URL('app.css', ui), 'utf8').replace(/\.?\d[\d.]*(?:s|px|em|fr|ch|%)|\/\*.*?\*\//gs, ''),
    page = source + readFileSync(new URL('index.html', ui), 'utf8');
  for (const [, name] of css.matchAll(/\.([a-z][a-z0-9-]*)/g)) assert.ok(new RegExp('\\b' + name + '\\b').test(page), name);
});

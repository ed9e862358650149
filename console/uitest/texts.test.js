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

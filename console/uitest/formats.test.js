import test from 'node:test';
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { bits, gunzip, hex, msgpack, pretty } from '../ui/lib/formats.js';

const read = (...a) => msgpack(Uint8Array.from(a)).replace(/\s+/g, ' ');

test('MessagePack', () => {
  assert.equal(read(0x7f), '127');
  assert.equal(read(0xff), '-1');
  assert.equal(read(0xcd, 1, 0), '256');
  assert.equal(read(0xd3, 255, 255, 255, 255, 255, 255, 255, 254), '-2');
  assert.equal(read(0xcf, 255, 255, 255, 255, 255, 255, 255, 255), '18446744073709551615');
  assert.equal(read(0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0), '1.5');
  assert.equal(read(0x82, 0xa1, 0x61, 0xc0, 0xa1, 0x62, 0x92, 0xc2, 0xc3), '{ "a": null, "b": [ false, true ] }');
  assert.equal(read(0xd9, 2, 0x68, 0x69), '"hi"');
  assert.equal(read(0xc4, 2, 0xff, 0), 'bin(ff00)');
  assert.equal(read(0xd4, 5, 0xaa), 'ext 5 bin(aa)');
  assert.equal(read(0xdc, 0, 0), '[]');
  assert.throws(() => read(0xa5, 0x61), /ends too early/);
  assert.throws(() => read(1, 2), /more bytes/);
  assert.throws(() => msgpack(new Uint8Array(100).fill(0x91)), /nested too deeply/);
});

test('JSON keeps numbers and names as they are written', () => {
  assert.equal(
    pretty('{"n":9223372036854775807,"n":[1.0,{}],"s":"a,{b\\"}"}'),
    '{\n  "n": 9223372036854775807,\n  "n": [\n    1.0,\n    {}\n  ],\n  "s": "a,{b\\"}"\n}',
  );
  assert.throws(() => pretty('{'));
});

test('bytes', async () => {
  assert.equal(hex(new TextEncoder().encode('ebb\n')), '00000000  65 62 62 0a' + ' '.repeat(37) + ' ebb.');
  assert.equal(bits(Uint8Array.of(1, 128)), '       0  00000001 10000000');
  assert.deepEqual(await gunzip(gzipSync('hello')), new TextEncoder().encode('hello'));
});

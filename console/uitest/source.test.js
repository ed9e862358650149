import test from 'node:test';
import assert from 'node:assert/strict';
import { PostSource } from '../ui/lib/source.js';

test('a stream that comes in pieces has its events', async () => {
  const text = 'id: 1-1\nevent: sample\ndata: {"n":"ä"}\n\nid: \nevent: bye\ndata: {}\n\n',
    raw = new TextEncoder().encode(text);
  let asked;
  globalThis.fetch = async (path, o) => {
    asked = [path, o.method, o.body];
    return new Response(
      new ReadableStream({
        start(c) {
          for (const b of raw) c.enqueue(Uint8Array.of(b));
          c.close();
        },
      }),
    );
  };
  const source = new PostSource('api/feed', { topics: 'sample' }),
    got = [];
  for (const name of ['sample', 'bye']) source.addEventListener(name, (e) => got.push([name, e.data, e.lastEventId]));
  await new Promise((end) => source.addEventListener('error', end)); // the end of a stream is an error, as of an EventSource
  assert.deepEqual(asked, ['api/feed', 'POST', '{"topics":"sample"}']);
  assert.deepEqual(got, [
    ['sample', '{"n":"ä"}', '1-1'],
    ['bye', '{}', ''],
  ]);
});

test('a stream that is closed tells nothing more', async () => {
  globalThis.fetch = async () => new Response('event: sample\ndata: {}\n\n');
  const source = new PostSource('api/feed', {});
  source.addEventListener('sample', () => assert.fail('an event'));
  source.addEventListener('error', () => assert.fail('an error'));
  source.close();
  await new Promise((end) => setTimeout(end, 10));
});

import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
document.addEventListener = () => {};
/** The streams that the page has opened. */
const streams = [];
Object.assign(globalThis, {
  setInterval: () => 0,
  BroadcastChannel: class {
    postMessage() {}
  },
  EventSource: class extends EventTarget {
    constructor(url) {
      super();
      this.url = url;
      streams.push(this);
    }
    close() {
      this.isClosed = true;
    }
    send(event, data, lastEventId = '') {
      this.dispatchEvent(new MessageEvent(event, { data: JSON.stringify(data), lastEventId }));
    }
  },
});
const events = await import('../ui/lib/events.js');
events.start();
const k = { t: 'a' },
  soon = () => new Promise((end) => setTimeout(end, 50));

test('a listener gets the events of its topic', () => {
  const gets = (topic, event, data) => events.concerns(topic, event, data);
  assert.ok(gets('sample', 'sample', {}));
  assert.ok(gets('sample', 'hello', {}));
  assert.ok(!gets('expired:0', 'hello', {}));
  assert.ok(gets('expired:0', 'expired', { db: 0 }));
  assert.ok(!gets('expired:0', 'expired', { db: 1 }));
  assert.ok(gets('key:0:YQ', 'key', { db: 0, k }));
  assert.ok(gets('key:0:YQ', 'gone', { db: 0, k }));
  assert.ok(!gets('key:0:Yg', 'key', { db: 0, k }));
  assert.ok(gets('limits:0:YSo:left', 'limits', { db: 0, match: 'a*' }));
  assert.ok(!gets('limits:0::left', 'limits', { db: 0, match: 'a*' }));
  assert.ok(gets('expired:0', 'resync', 'expired:0,sample'));
  assert.ok(!gets('key:0:YQ', 'resync', 'expired:0,sample'));
});

test('topics that come together are one stream, and a new stream goes on where the one before has ended', async () => {
  const got = [];
  const end = events.subscribe('expired', '0', (data, event) => got.push([event, data.lag]));
  events.subscribe('sample', '', () => {});
  await soon();
  assert.deepEqual(
    streams.map((s) => s.url),
    ['api/feed?topics=expired%3A0%2Csample'],
  );
  streams[0].send('expired', { db: 0, lag: 3 }, '7-1');
  streams[0].send('sample', { at: 1 });
  assert.deepEqual(got, [['expired', 3]]);
  assert.equal(events.status().live, true);
  assert.equal(events.samples().length, 1);
  end();
  await soon();
  assert.equal(streams[1].url, 'api/feed?topics=sample&last=7-1');
  assert.equal(streams[0].isClosed, true);
  streams[0].send('expired', { db: 0, lag: 4 }); // of a stream that is closed
  assert.equal(got.length, 1);
});

test('a stream that says bye is lost, and pause ends it', () => {
  const stream = streams[streams.length - 1];
  stream.send('bye', { why: 'the login has ended' });
  assert.deepEqual([events.status().live, events.status().why], [false, 'the login has ended']);
  assert.equal(stream.isClosed, true);
  events.pause(true);
  assert.equal(events.status().paused, true);
  events.stop();
});

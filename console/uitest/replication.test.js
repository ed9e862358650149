import test from 'node:test';
import assert from 'node:assert/strict';
import { install } from './dom.js';

install();
Object.defineProperty(globalThis, 'localStorage', { value: { getItem: () => null, setItem() {} } });
const { replicaCommand } = await import('../ui/cards/replication.js');

test('the command that starts a replica can be run as it stands', () => {
  assert.equal(replicaCommand('127.0.0.1', 6379), 'ebb serve --port 6380 --replicaof "127.0.0.1 6379"');
  assert.equal(replicaCommand('[::1]', 65535), 'ebb serve --port 65534 --replicaof "::1 65535"');
});

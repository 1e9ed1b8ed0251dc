'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');
const Redis = require('ioredis');
const { Server, complaints } = require('./serving');

function connect(t, server, options = {}) {
  const client = new Redis({ host: '127.0.0.1', port: server.ports.resp, ...options });
  t.after(() => client.disconnect());
  return client;
}

const becomes = (client, event) => new Promise((resolve) => client.once(event, resolve));

test('ioredis connects without a warning', async (t) => {
  const server = await Server.start(t);
  const seen = complaints(t);
  const client = connect(t, server, { connectionName: 'weir-test', db: 0 });
  client.on('error', (error) => seen.push(String(error)));
  await becomes(client, 'ready');
  assert.equal(await client.ping(), 'PONG');
  assert.equal(await client.client('GETNAME'), 'weir-test');
  assert.match(await client.info(), /redis_version:7\./);
  assert.equal(await client.quit(), 'OK');
  assert.deepEqual(seen, []);
});

test('ioredis gets the answer of redis-cell', async (t) => {
  const client = connect(t, await Server.start(t));
  assert.deepEqual(await client.call('CL.THROTTLE', 'user123', 15, 30, 60), [0, 16, 15, -1, 2]);
});

test('ioredis pipelines a thousand commands and gets their answers in order', async (t) => {
  const client = connect(t, await Server.start(t));
  const throttles = client.pipeline();
  for (let i = 0; i < 1000; i++) throttles.call('CL.THROTTLE', `key:${i}`, i, 1, 3600);
  // Only the i-th command has a bucket of i + 1.
  assert.deepEqual(await throttles.exec(), Array.from({ length: 1000 }, (_, i) => [null, [0, i + 1, i, -1, 3600]]));
  const checks = client.pipeline();
  for (let i = 0; i < 1000; i++) checks.call('WEIR.CHECK', 'orders', 'alice');
  const answers = await checks.exec();
  assert.deepEqual(answers.map(([, [allowed, , remaining]]) => [allowed, remaining]),
    Array.from({ length: 1000 }, (_, i) => [1, 999 - i]));
  assert.equal((await client.call('WEIR.CHECK', 'orders', 'alice'))[0], 0);
});

test('ioredis pipelines by itself what one tick asks', async (t) => {
  const client = connect(t, await Server.start(t), { enableAutoPipelining: true });
  const asked = Array.from({ length: 1000 }, (_, i) => client.call('CL.THROTTLE', `key:${i}`, i, 1, 3600));
  const answers = await Promise.all(asked);
  assert.deepEqual(answers.map((answer) => answer[1]), Array.from({ length: 1000 }, (_, i) => i + 1));
});

test('ioredis runs a transaction', async (t) => {
  const client = connect(t, await Server.start(t));
  const throttle = ['CL.THROTTLE', 'a', 15, 30, 60];
  const answers = await client.multi().call(...throttle).ping().call(...throttle).exec();
  assert.deepEqual(answers, [[null, [0, 16, 15, -1, 2]], [null, 'PONG'], [null, [0, 16, 14, -1, 4]]]);
});

test('errors are errors of ioredis, and only of the command that made them', async (t) => {
  const client = connect(t, await Server.start(t));
  for (const [words, message] of [
    [['CL.THROTTLE', 'a'], /^ERR wrong number of arguments for 'cl.throttle' command$/],
    [['CL.THROTTLE', 'a', 'x', 1, 1], /^ERR value is not an integer or out of range$/],
    [['CL.THROTTLE', 'a', 1, 0, 1], /^ERR rate must be positive$/],
    [['WEIR.CHECK', 'nobody', '1'], /^ERR .*nobody/],
    [['GET', 'a'], /^ERR unknown command/],
  ]) {
    await assert.rejects(client.call(...words), { name: 'ReplyError', message });
  }
  const answers = await client.pipeline().ping().call('CL.THROTTLE', 'a').ping().exec();
  assert.deepEqual(answers.map(([error, answer]) => error?.name ?? answer), ['PONG', 'ReplyError', 'PONG']);
});

test('ioredis gets in with the password and not without it', async (t) => {
  const server = await Server.start(t, { password: 'open-sesame' });
  const throttle = ['CL.THROTTLE', 'a', 15, 30, 60];
  const named = { username: 'default', password: 'open-sesame' };
  for (const options of [{ password: 'open-sesame' }, named]) {
    assert.deepEqual(await connect(t, server, options).call(...throttle).then((answer) => answer[0]), 0);
  }
  const seen = complaints(t);
  for (const [options, code] of [[{}, /NOAUTH/], [{ password: 'wrong' }, /WRONGPASS/]]) {
    const client = connect(t, server, { ...options, retryStrategy: null, maxRetriesPerRequest: 0 });
    const errors = [];
    client.on('error', (error) => errors.push(error.message));
    await assert.rejects(client.call(...throttle));
    client.disconnect();
    assert.match(errors.join('\n') + seen.join('\n'), code);
  }
});

test('ioredis finds the server again after it was killed and started anew', async (t) => {
  const server = await Server.start(t);
  const client = connect(t, server);
  client.on('error', () => {}); // refused while nobody listens
  assert.equal((await client.call('CL.THROTTLE', 'a', 15, 30, 60))[0], 0);
  await server.restart();
  assert.equal((await client.call('CL.THROTTLE', 'a', 15, 30, 60))[0], 0);
});

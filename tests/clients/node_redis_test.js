'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');
const { createClient, createClientPool, ErrorReply } = require('redis');
const { Server, complaints } = require('./serving');

const VERSIONS = [2, 3];

async function connect(t, server, options = {}) {
  const errors = [];
  const socket = { host: '127.0.0.1', port: server.ports.resp, reconnectStrategy: 50 };
  const client = createClient({ socket, ...options });
  client.on('error', (error) => errors.push(error));
  t.after(() => { if (client.isOpen) client.destroy(); });
  await client.connect();
  client.errors = errors;
  return client;
}

const throttle = (key, ...numbers) => ['CL.THROTTLE', key, ...numbers.map(String)];

for (const RESP of VERSIONS) {
  test(`node-redis connects without a warning over RESP${RESP}`, async (t) => {
    const server = await Server.start(t);
    const seen = complaints(t);
    const client = await connect(t, server, { RESP, name: 'weir-test', database: 0 });
    assert.equal(await client.ping(), 'PONG');
    assert.equal(await client.clientGetName(), 'weir-test');
    assert.match(await client.sendCommand(['CLIENT', 'INFO']), new RegExp(`resp=${RESP} lib-name=node-redis`));
    await client.close();
    assert.deepEqual([seen, client.errors], [[], []]);
  });

  test(`node-redis gets the answer of redis-cell over RESP${RESP}`, async (t) => {
    const client = await connect(t, await Server.start(t), { RESP });
    assert.deepEqual(await client.sendCommand(throttle('user123', 15, 30, 60)), [0, 16, 15, -1, 2]);
  });

  test(`node-redis pipelines a thousand commands over RESP${RESP} and gets their answers in order`, async (t) => {
    const client = await connect(t, await Server.start(t), { RESP });
    // What one tick asks is one write.
    const throttles = Array.from({ length: 1000 }, (_, i) => client.sendCommand(throttle(`key:${i}`, i, 1, 3600)));
    assert.deepEqual(await Promise.all(throttles), Array.from({ length: 1000 }, (_, i) => [0, i + 1, i, -1, 3600]));
    const checks = Array.from({ length: 1000 }, () => client.sendCommand(['WEIR.CHECK', 'orders', 'alice']));
    assert.deepEqual((await Promise.all(checks)).map(([allowed, , remaining]) => [allowed, remaining]),
      Array.from({ length: 1000 }, (_, i) => [1, 999 - i]));
    assert.equal((await client.sendCommand(['WEIR.CHECK', 'orders', 'alice']))[0], 0);
  });

  test(`node-redis runs a transaction over RESP${RESP}`, async (t) => {
    const client = await connect(t, await Server.start(t), { RESP });
    const answers = await client.multi().addCommand(['CL.THROTTLE', 'a', '15', '30', '60']).ping().exec();
    assert.deepEqual(answers, [[0, 16, 15, -1, 2], 'PONG']);
  });

  test(`errors are errors of node-redis over RESP${RESP}, and only of the command that made them`, async (t) => {
    const client = await connect(t, await Server.start(t), { RESP });
    for (const [words, message] of [
      [['CL.THROTTLE', 'a'], /^ERR wrong number of arguments for 'cl.throttle' command$/],
      [['CL.THROTTLE', 'a', 'x', '1', '1'], /^ERR value is not an integer or out of range$/],
      [['CL.THROTTLE', 'a', '1', '0', '1'], /^ERR rate must be positive$/],
      [['WEIR.CHECK', 'nobody', '1'], /^ERR .*nobody/],
      [['GET', 'a'], /^ERR unknown command/],
    ]) {
      const asked = [client.ping(), client.sendCommand(words), client.ping()];
      const [before, failed, after] = await Promise.allSettled(asked);
      assert.deepEqual([before.value, after.value], ['PONG', 'PONG']);
      assert.ok(failed.reason instanceof ErrorReply, String(failed.reason));
      assert.match(failed.reason.message, message);
    }
  });

  test(`node-redis gets in with the password over RESP${RESP} and not without it`, async (t) => {
    const server = await Server.start(t, { password: 'open-sesame' });
    for (const options of [{ password: 'open-sesame' }, { username: 'default', password: 'open-sesame' }]) {
      const client = await connect(t, server, { RESP, ...options });
      assert.equal((await client.sendCommand(throttle('a', 15, 30, 60)))[0], 0);
    }
    const socket = { host: '127.0.0.1', port: server.ports.resp, reconnectStrategy: false };
    await assert.rejects(connect(t, server, { RESP, socket, password: 'wrong' }), /WRONGPASS/);
    // Without a password RESP2 says nothing that could fail before the first command.
    const asked = connect(t, server, { RESP, socket }).then((client) => client.sendCommand(throttle('a', 15, 30, 60)));
    await assert.rejects(asked, /NOAUTH/);
  });

  test(`node-redis finds the server again over RESP${RESP} after it was killed and started anew`, async (t) => {
    const server = await Server.start(t);
    const client = await connect(t, server, { RESP });
    assert.equal((await client.sendCommand(throttle('a', 15, 30, 60)))[0], 0);
    const lost = new Promise((resolve) => client.once('reconnecting', resolve));
    await server.restart();
    await lost;
    assert.equal((await client.sendCommand(throttle('a', 15, 30, 60)))[0], 0);
  });
}

test('a pool of node-redis shares one bucket', async (t) => {
  const server = await Server.start(t);
  const pool = createClientPool({ socket: { host: '127.0.0.1', port: server.ports.resp } }, { minimum: 4, maximum: 8 });
  pool.on('error', (error) => assert.fail(error));
  await pool.connect();
  const asked = Array.from({ length: 200 }, () => pool.sendCommand(throttle('shared', 49, 1, 3600)));
  const answers = await Promise.all(asked);
  await pool.close();
  assert.equal(answers.filter(([limited]) => limited === 0).length, 50);
});

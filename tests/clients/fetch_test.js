// Node's own fetch (undici) as a client of the decision API.
'use strict';

const assert = require('node:assert/strict');
const diagnostics = require('node:diagnostics_channel');
const test = require('node:test');
const { Server, complaints } = require('./serving');

async function post(server, target, body, headers = {}) {
  const answer = await fetch(server.url(target), {
    method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', ...headers },
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, json: text === '' ? null : JSON.parse(text) };
}

test('fetch checks a configured limit and is told when to come back', async (t) => {
  const server = await Server.start(t);
  const seen = complaints(t);
  const check = { limit: 'per-ip', id: '203.0.113.9' };
  for (const remaining of [2, 1, 0]) {
    const { status, headers, json } = await post(server, '/v1/check', check);
    assert.deepEqual([status, json.allowed, json.remaining], [200, true, remaining]);
    assert.equal(headers.get('x-ratelimit-remaining'), String(remaining));
    assert.equal(headers.get('content-type'), 'application/json');
  }
  const { status, headers, json } = await post(server, '/v1/check', check);
  assert.deepEqual([status, json.allowed, json.error], [429, false, 'rate limit exceeded']);
  assert.equal(json.identifier, 'ip:203.0.113.9');
  assert.ok(Number(headers.get('retry-after')) >= json.retry_after);
  assert.equal(headers.get('x-ratelimit-limit'), '3');
  assert.ok(Number(headers.get('x-ratelimit-reset')) > Date.now() / 1000);
  assert.equal(headers.get('ratelimit-policy'), '"per-ip";q=3;w=3600');
  assert.match(headers.get('ratelimit'), /^"per-ip";r=0;t=\d+$/);
  assert.deepEqual(seen, []);
});

test('fetch sees the date on every answer', async (t) => {
  const server = await Server.start(t);
  for (const asked of ['GET /healthz', 'GET /nowhere', 'HEAD /healthz', 'OPTIONS /v1/check']) {
    const [method, target] = asked.split(' ');
    const before = Math.floor(Date.now() / 1000) - 1;
    const answer = await fetch(server.url(target), { method });
    await answer.text();
    const date = answer.headers.get('date');
    assert.equal(new Date(date).toUTCString(), date);
    assert.ok(Date.parse(date) / 1000 >= before && Date.parse(date) <= Date.now(), date);
  }
});

test('fetch throttles with numbers of its own', async (t) => {
  const server = await Server.start(t);
  const body = { key: 'user:42', burst: 2, count: 1, period: '1h' };
  const answers = [];
  for (let i = 0; i < 3; i++) answers.push((await post(server, '/v1/throttle', body)).status);
  assert.deepEqual(answers, [200, 200, 429]);
  const problem = await post(server, '/v1/throttle', body, { Accept: 'application/problem+json' });
  assert.equal(problem.headers.get('content-type'), 'application/problem+json');
  assert.equal(problem.json.status, 429);
});

test('fetch sends a thousand checks at once and gets their answers in order', async (t) => {
  const server = await Server.start(t);
  const { status, json } = await post(server, '/v1/throttle',
    Array.from({ length: 1000 }, (_, i) => ({ key: `key:${i}`, burst: i + 1, count: 1, period: '1h' })));
  assert.equal(status, 200);
  assert.deepEqual(json.map((answer) => [answer.allowed, answer.burst]),
    Array.from({ length: 1000 }, (_, i) => [true, i + 1]));
});

test('fetch sends content of unknown length, in chunks', async (t) => {
  const server = await Server.start(t);
  const pieces = ['{"limit": "ord', 'ers", "id"', ': "alice"}'].map((piece) => Buffer.from(piece));
  const answer = await fetch(server.url('/v1/check'), {
    method: 'POST', body: new ReadableStream({
      pull(controller) {
        const piece = pieces.shift();
        if (piece) controller.enqueue(piece);
        else controller.close();
      },
    }), duplex: 'half', headers: { 'Content-Type': 'application/json' },
  });
  assert.equal((await answer.json()).remaining, 999);
});

test('fetch keeps its connection', async (t) => {
  const server = await Server.start(t);
  let connected = 0;
  const count = () => { connected++; };
  diagnostics.subscribe('undici:client:connected', count);
  t.after(() => diagnostics.unsubscribe('undici:client:connected', count));
  for (let i = 0; i < 100; i++) {
    const { status } = await post(server, '/v1/throttle', { key: 'a', burst: 50, count: 1, period: '1h' });
    assert.equal(status, i < 50 ? 200 : 429); // neither denials nor errors end it
    assert.equal((await fetch(server.url('/nowhere'))).status, 404);
  }
  assert.ok(connected >= 1 && connected <= 2, `${connected} connections for 200 requests`);
});

test('two hundred fetches at once are admitted exactly as often as the burst says', async (t) => {
  const server = await Server.start(t);
  const body = { key: 'a', burst: 50, count: 1, period: '1h' };
  const asked = Array.from({ length: 200 }, () => post(server, '/v1/throttle', body));
  const statuses = (await Promise.all(asked)).map(({ status }) => status);
  assert.equal(statuses.filter((status) => status === 200).length, 50);
  assert.equal(statuses.filter((status) => status === 429).length, 150);
});

test('fetch finds the server again after it was killed and started anew', async (t) => {
  const server = await Server.start(t);
  const body = { limit: 'orders', id: 'alice' };
  assert.equal((await post(server, '/v1/check', body)).status, 200);
  await server.restart();
  // A connection that died while it was idle may cost one request; the next has a new one.
  const first = await post(server, '/v1/check', body).catch((error) => error);
  assert.ok(first.status === 200 || first instanceof TypeError, String(first));
  assert.equal((await post(server, '/v1/check', body)).status, 200);
});

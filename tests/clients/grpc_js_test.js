// Envoy's rate limit service as @grpc/grpc-js sees it.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const { Server } = require('./serving');

const PROTO = path.join(__dirname, '..', '..', 'proto');
const definition = loader.loadSync(['envoy/service/ratelimit/v3/rls.proto', 'grpc/health/v1/health.proto'], {
  includeDirs: [PROTO],
  keepCase: true,
  longs: Number,
  enums: String,
  defaults: true,
});
const {
  envoy,
  grpc: { health },
} = grpc.loadPackageDefinition(definition);

const RULES = `
domain: edge
descriptors:
  - {key: two, rate_limit: {unit: hour, requests_per_unit: 2, name: pair}}
  - {key: ten, rate_limit: {unit: hour, requests_per_unit: 10}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: tried, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: vip, rate_limit: {unit: hour, requests_per_unit: 100, replaces: [{name: pair}]}}
  - {key: a, value: b_c, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: a_b, value: c, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: gold, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: silver, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 2}}
  - key: path
    descriptors:
      - {key: method, value: GET, rate_limit: {unit: day, requests_per_unit: 3}}
      - {key: method, value: HEAD}
`;

async function connect(t, options = {}) {
  const server = await Server.start(t, {
    config: 'threads: 2\nenvoy: [rules.yaml]\n',
    files: { 'rules.yaml': RULES },
    ...options,
  });
  const address = `127.0.0.1:${server.ports.http}`;
  const insecure = grpc.credentials.createInsecure();
  const client = new envoy.service.ratelimit.v3.RateLimitService(address, insecure);
  const probe = new health.v1.Health(address, insecure);
  t.after(() => {
    client.close();
    probe.close();
  });
  return { server, client, probe };
}

function call(client, method, request, metadata = new grpc.Metadata(), options = {}) {
  return new Promise((resolve, reject) => {
    client[method](request, metadata, options, (error, response) => (error ? reject(error) : resolve(response)));
  });
}

// Each descriptor is a list of [key, value], and what else it has.
function request(descriptors, hits = 0) {
  return {
    domain: 'edge',
    hits_addend: hits,
    descriptors: descriptors.map(([entries, more]) => ({
      entries: entries.map(([key, value]) => ({ key, value })),
      ...more,
    })),
  };
}

const ask = (client, descriptors, hits) => call(client, 'ShouldRateLimit', request(descriptors, hits));
const code = async (...given) => (await ask(...given)).overall_code;
const one = (key, value = 'x', more = {}) => [[[key, value]], more];

test('every descriptor has its status', async (t) => {
  const { client } = await connect(t);
  const response = await ask(client, [one('two'), one('unknown'), one('free')]);
  assert.equal(response.overall_code, 'OK');
  const [two, unknown, free] = response.statuses;
  assert.deepEqual(
    [
      two.code,
      two.limit_remaining,
      two.current_limit.requests_per_unit,
      two.current_limit.unit,
      two.current_limit.name,
    ],
    ['OK', 1, 2, 'HOUR', 'pair'],
  );
  assert.equal(Number(two.duration_until_reset.seconds), 1800);
  assert.deepEqual([unknown.code, unknown.current_limit], ['OK', null]);
  assert.deepEqual([free.code, free.limit_remaining], ['OK', 4294967295]);
  await ask(client, [one('two')]);
  const denied = await ask(client, [one('two'), one('ten')]);
  assert.equal(denied.overall_code, 'OVER_LIMIT');
  assert.equal(denied.response_headers_to_add[0].key, 'Retry-After');
  assert.ok(Number(denied.response_headers_to_add[0].value) > 1700);
  assert.equal(denied.statuses[1].limit_remaining, 10, 'a denied request takes nothing');
});

test('a denial burns no quota', async (t) => {
  const { client } = await connect(t);
  assert.equal(await code(client, [one('ten')], 8), 'OK');
  assert.equal(await code(client, [one('ten')], 5), 'OVER_LIMIT');
  assert.equal(await code(client, [one('ten')], 2), 'OK');
});

test('keys and values do not run together', async (t) => {
  const { client } = await connect(t);
  assert.equal(await code(client, [one('a', 'b_c')]), 'OK');
  assert.equal(await code(client, [one('a_b', 'c')]), 'OK');
  assert.equal(await code(client, [one('a', 'b_c')]), 'OVER_LIMIT');
});

test('depth, shadow, replaces, quota mode, own hits and own limits', async (t) => {
  const { client } = await connect(t);
  const deep = await ask(client, [
    [
      [
        ['path', '/x'],
        ['method', 'GET'],
      ],
    ],
    [[['path', '/x']]],
    [
      [
        ['path', '/x'],
        ['method', 'HEAD'],
      ],
    ],
  ]);
  assert.equal(deep.statuses[0].limit_remaining, 2);
  assert.deepEqual(
    deep.statuses.slice(1).map((status) => status.current_limit),
    [null, null],
  );
  for (let i = 0; i < 3; ++i) assert.equal(await code(client, [one('tried')]), 'OK');

  const replaced = await ask(client, [one('two'), one('vip')]);
  assert.equal(replaced.statuses[0].current_limit, null);
  assert.equal(
    (await ask(client, [one('two')])).statuses[0].limit_remaining,
    1,
    'the replaced counter was not touched',
  );

  const quotas = [one('gold'), one('silver')];
  assert.deepEqual(
    [await code(client, quotas), await code(client, quotas), await code(client, quotas)],
    ['OK', 'OK', 'OVER_LIMIT'],
  );

  const hits = await ask(client, [
    one('ten', 'y', { hits_addend: { value: 4 } }),
    one('ten', 'z', { hits_addend: { value: 0 } }),
  ]);
  assert.deepEqual(
    hits.statuses.map((status) => status.limit_remaining),
    [6, 10],
  );

  const own = one('ten', 'own', { limit: { requests_per_unit: 1, unit: 'MINUTE' } });
  assert.deepEqual([await code(client, [own]), await code(client, [own])], ['OK', 'OVER_LIMIT']);
});

test('what cannot be answered has a status and a message', async (t) => {
  const { client } = await connect(t);
  const fails = async (given) =>
    call(client, 'ShouldRateLimit', given).then(
      () => assert.fail('it should fail'),
      (error) => error,
    );
  const domain = await fails({ descriptors: request([one('two')]).descriptors });
  assert.deepEqual([domain.code, domain.details], [grpc.status.UNKNOWN, 'rate limit domain must not be empty']);
  const none = await fails({ domain: 'edge' });
  assert.deepEqual([none.code, none.details], [grpc.status.UNKNOWN, 'rate limit descriptor list must not be empty']);
  const large = await fails(request([one('two', 'v'.repeat(300000))]));
  assert.equal(large.code, grpc.status.RESOURCE_EXHAUSTED);
});

test('compressed messages are refused politely', async (t) => {
  const { server } = await connect(t);
  const client = new envoy.service.ratelimit.v3.RateLimitService(
    `127.0.0.1:${server.ports.http}`,
    grpc.credentials.createInsecure(),
    { 'grpc.default_compression_algorithm': grpc.compressionAlgorithms.gzip },
  );
  t.after(() => client.close());
  await assert.rejects(ask(client, [one('two')]), { code: grpc.status.UNIMPLEMENTED });
});

test('health is told and watched', async (t) => {
  const { probe } = await connect(t);
  for (const service of ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService']) {
    assert.equal((await call(probe, 'Check', { service })).status, 'SERVING');
  }
  await assert.rejects(call(probe, 'Check', { service: 'other' }), { code: grpc.status.NOT_FOUND });
  const watch = probe.Watch({ service: '' });
  watch.on('error', () => {});
  assert.equal((await new Promise((resolve) => watch.once('data', resolve))).status, 'SERVING');
  watch.cancel();
});

test('a changed file of rules is in force at once, a bad one is not', async (t) => {
  const { server, client } = await connect(t);
  const rules = path.join(server.directory, 'rules.yaml');
  const limit = async () => (await ask(client, [one('ten')])).statuses[0].current_limit.requests_per_unit;
  fs.writeFileSync(rules, RULES.replace('requests_per_unit: 10', 'requests_per_unit: 11'));
  while ((await limit()) !== 11);
  const before = await fetch(server.url('/metrics', 'admin')).then((answer) => answer.text());
  const failed = (text) => Number(/weir_config_reloads_total\{result="failed"\} (\d+)/.exec(text)?.[1] ?? 0);
  fs.writeFileSync(rules, 'domain: edge\ndescriptors: [{ket: a}]\n');
  for (let text = before; failed(text) === failed(before);) {
    text = await fetch(server.url('/metrics', 'admin')).then((answer) => answer.text());
  }
  assert.equal(await limit(), 11);
});

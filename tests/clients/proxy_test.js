// Real peers on both sides of the edge proxy: Express, ws, EventSource-like streams, gRPC, and Node's HTTP/2 client.
'use strict';

const assert = require('node:assert/strict');
const http = require('node:http');
const http2 = require('node:http2');
const test = require('node:test');
const express = require('express');
const grpc = require('@grpc/grpc-js');
const { WebSocket, WebSocketServer } = require('ws');
const { Server } = require('./serving');

const listening = (server) => new Promise((resolve) => {
  server.listen(0, '127.0.0.1', () => resolve(server.address().port));
});

async function proxy(t, config) {
  return Server.start(t, { config: `threads: 2\n${config}`, speak: ['proxy', 'admin'] });
}

function backend(t, handler) {
  const server = http.createServer(handler);
  t.after(() => { server.closeAllConnections(); server.close(); });
  return server;
}

// A request as written: fetch() would normalize the path.
function raw(port, method, path, headers = {}, body = '') {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers }));
      answer.on('error', reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

test('no spelling of a path reaches an Express handler uncounted', async (t) => {
  const app = express();
  let reached = 0;
  app.use(express.urlencoded({ extended: false }));
  app.all('/signin', (request, response) => { reached += 1; response.send('in'); });
  const server = backend(t, app);
  const port = await listening(server);
  const weir = await proxy(t, `
limits:
  sign-in: {key: ip, burst: 1000, count: 1, period: 1h}
routes:
  - {name: signin, match: {path: /signin, ignore_case: true}, limits: [sign-in], backend: "http://127.0.0.1:${port}"}
  - {name: rest, match: {path: "/**"}, limits: none, backend: "http://127.0.0.1:${port}"}
`);
  const spellings = ['/signin', '/signin/', '/SIGNIN', '/SignIn/', '//signin', '/signin//', '/x/../signin', '/./signin',
    '/sign%69n', '/%73ignin', '/signin;x', '/signin;x=1/', '/signin?x', '/signin/?x', '/a/..;/signin', '/signin%2f',
    '/signin/.', '/x/%2e%2e/signin'];
  for (const path of spellings) {
    const before = reached;
    const answer = await raw(weir.ports.proxy, 'POST', path, { 'content-length': 0 });
    const counted = answer.headers['x-ratelimit-limit'] === '1000';
    assert.ok(reached === before || counted, `${path} reached the handler uncounted`);
  }
  assert.ok(reached >= 5);
});

test('a WebSocket passes messages both ways and costs one token', async (t) => {
  const server = backend(t);
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => socket.on('message', (data, binary) => socket.send(data, { binary })));
  const port = await listening(server);
  const weir = await proxy(t, `limits: {ip: {key: ip, rate: 1/hour}}\nbackend: http://127.0.0.1:${port}\n`);
  const socket = new WebSocket(`ws://127.0.0.1:${weir.ports.proxy}/chat`);
  await new Promise((resolve, reject) => { socket.on('open', resolve); socket.on('error', reject); });
  const echoed = [];
  const done = new Promise((resolve) => socket.on('message', (data) => {
    echoed.push(data.length);
    if (echoed.length === 100) resolve();
  }));
  for (let i = 0; i < 100; i += 1) socket.send(Buffer.alloc(i * 1000));
  await done;
  assert.deepEqual(echoed, Array.from({ length: 100 }, (_, i) => i * 1000));
  const closed = new Promise((resolve) => socket.on('close', (code) => resolve(code)));
  socket.close(1000);
  assert.equal(await closed, 1000);
  const denied = new WebSocket(`ws://127.0.0.1:${weir.ports.proxy}/chat`);
  const status = await new Promise((resolve) => {
    denied.on('unexpected-response', (_, answer) => resolve(answer.statusCode));
  });
  assert.equal(status, 429);
  denied.on('error', () => {});
  denied.terminate();
});

test('events arrive one by one', async (t) => {
  let send;
  const server = backend(t, (request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    send = (n) => response.write(`data: ${n}\n\n`);
    send(0);
  });
  const port = await listening(server);
  const weir = await proxy(t, `limits: {}\nbackend: http://127.0.0.1:${port}\n`);
  const abort = new AbortController();
  const answer = await fetch(weir.url('/', 'proxy'), { signal: abort.signal });
  const reader = answer.body.getReader();
  for (let n = 0; n < 10; n += 1) {
    const { value } = await reader.read();
    assert.equal(Buffer.from(value).toString(), `data: ${n}\n\n`);
    send(n + 1);  // only after the client has the one before
  }
  abort.abort();
});

const METHOD = {
  echo: { path: '/test.Echo/Echo', requestStream: false, responseStream: false },
  stream: { path: '/test.Echo/Stream', requestStream: true, responseStream: true },
};
for (const method of Object.values(METHOD)) {
  for (const way of ['request', 'response']) {
    method[`${way}Serialize`] = (bytes) => bytes;
    method[`${way}Deserialize`] = (bytes) => bytes;
  }
}

test('gRPC streams through the proxy, and a denial is RESOURCE_EXHAUSTED', async (t) => {
  const server = new grpc.Server();
  server.addService(METHOD, {
    echo: (call, done) => {
      if (call.request.length === 0) return done({ code: grpc.status.NOT_FOUND, details: 'nothing' });
      return done(null, call.request);
    },
    stream: (call) => { call.on('data', (bytes) => call.write(bytes)); call.on('end', () => call.end()); },
  });
  const port = await new Promise((resolve, reject) => {
    const bound = (error, number) => (error ? reject(error) : resolve(number));
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), bound);
  });
  t.after(() => server.forceShutdown());
  const weir = await proxy(t, `limits: {ip: {key: ip, rate: 4/hour}}\nbackend: h2://127.0.0.1:${port}\n`);
  const Client = grpc.makeGenericClientConstructor(METHOD, 'Echo');
  const options = { 'grpc.enable_retries': 0 };
  const client = new Client(`127.0.0.1:${weir.ports.proxy}`, grpc.credentials.createInsecure(), options);
  t.after(() => client.close());
  const echo = (bytes) => new Promise((resolve) => {
    client.echo(Buffer.from(bytes), (error, answer) => resolve(error ?? answer.toString()));
  });
  assert.equal(await echo('hello'), 'hello');
  const missing = await echo('');
  assert.deepEqual([missing.code, missing.details], [grpc.status.NOT_FOUND, 'nothing']);
  const call = client.stream();
  const got = [];
  call.on('data', (bytes) => got.push(bytes.length));
  const ended = new Promise((resolve, reject) => { call.on('end', resolve); call.on('error', reject); });
  for (let i = 1; i <= 50; i += 1) call.write(Buffer.alloc(i * 2000));
  call.end();
  await ended;
  assert.deepEqual(got, Array.from({ length: 50 }, (_, i) => (i + 1) * 2000));
  assert.equal(await echo('x'), 'x');
  const denied = await echo('x');
  assert.equal(denied.code, grpc.status.RESOURCE_EXHAUSTED);
});

test('HTTP/2 clients share one connection, and a slow stream does not stop the others', async (t) => {
  const server = backend(t, (request, response) => {
    if (request.url === '/large') {
      response.end(Buffer.alloc(8 << 20));
    } else {
      response.end(request.url);
    }
  });
  const port = await listening(server);
  const weir = await proxy(t, `limits: {}\nbackend: http://127.0.0.1:${port}\n`);
  const session = http2.connect(weir.url('', 'proxy'));
  t.after(() => session.close());
  const slow = session.request({ ':path': '/large' });
  await new Promise((resolve) => slow.once('response', resolve));
  slow.pause();
  const small = (path) => new Promise((resolve, reject) => {
    const stream = session.request({ ':path': path });
    let text = '';
    stream.setEncoding('utf8');
    stream.on('data', (part) => { text += part; });
    stream.on('end', () => resolve(text));
    stream.on('error', reject);
    stream.end();
  });
  const paths = Array.from({ length: 200 }, (_, i) => `/${i}`);
  assert.deepEqual(await Promise.all(paths.map(small)), paths);
  let bytes = 0;
  slow.on('data', (part) => { bytes += part.length; });
  slow.resume();
  await new Promise((resolve) => slow.on('end', resolve));
  assert.equal(bytes, 8 << 20);
});

// The edge proxy with TLS on both sides, between Node's clients and servers: HTTP/1.1, HTTP/2, WebSockets, gRPC.
'use strict';

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const http2 = require('node:http2');
const https = require('node:https');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const zlib = require('node:zlib');
const express = require('express');
const grpc = require('@grpc/grpc-js');
const { WebSocket, WebSocketServer } = require('ws');
const { Server } = require('./serving');

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-tls-'));
const file = (name) => path.join(directory, name);
const made = (name, names) => {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const files = ['-keyout', file(`${name}.key`), '-out', file(`${name}.pem`)];
  const rest = ['-days', '30', '-subj', `/CN=${name}`, '-addext', `subjectAltName=${names}`];
  execFileSync('openssl', ['req', '-x509', ...curve, ...files, ...rest], { stdio: 'ignore' });
  return { cert: fs.readFileSync(file(`${name}.pem`)), key: fs.readFileSync(file(`${name}.key`)) };
};
const front = made('front', 'DNS:localhost,IP:127.0.0.1');
const back = made('back', 'DNS:localhost,IP:127.0.0.1');
test.after(() => fs.rmSync(directory, { recursive: true }));

const listening = (server) =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(server.address().port));
  });

// A server of both versions; HTTP/2 by ALPN.
async function backend(t, handler) {
  const server = http2.createSecureServer({ ...back, allowHTTP1: true }, handler);
  const sessions = new Set();
  server.on(
    'session',
    (session) => sessions.add(session).size && session.on('close', () => sessions.delete(session)),
  );
  t.after(() => {
    sessions.forEach((session) => session.destroy());
    server.close();
  });
  return { server, url: `https://localhost:${await listening(server)}` };
}

function proxy(t, config, threads = 2) {
  const more = `threads: ${threads}\nbackend_tls: {ca_file: ${file('back.pem')}}\n`;
  const tls = { proxy: `, tls: {cert: ${file('front.pem')}, key: ${file('front.key')}}` };
  return Server.start(t, { config: more + config, speak: ['proxy', 'admin'], tls });
}

const body = (stream) =>
  new Promise((resolve, reject) => {
    let text = '';
    stream.setEncoding('utf8');
    stream.on('data', (part) => {
      text += part;
    });
    stream.on('end', () => resolve(text));
    stream.on('error', reject);
  });

test('HTTP/1.1 and HTTP/2 clients reach an HTTP/2 backend over TLS', async (t) => {
  const { url } = await backend(t, (request, response) => {
    const { te, 'x-forwarded-proto': scheme } = request.headers;
    response.setHeader('x-seen', `${request.httpVersion} ${scheme} ${request.url} ${te ?? 'no te'}`);
    request.pipe(response);
  });
  const weir = await proxy(t, `limits: {ip: {key: ip, rate: 1000/hour}}\nbackend: ${url}\n`);
  const large = 'x'.repeat(500_000);
  const one = await new Promise((resolve, reject) => {
    const options = { port: weir.ports.proxy, ca: front.cert, method: 'POST', path: '/one', agent: false };
    const request = https.request({ host: 'localhost', ...options }, async (answer) => {
      resolve({ head: answer.headers, text: await body(answer) });
    });
    request.on('error', reject);
    request.end(large);
  });
  assert.equal(one.head['x-seen'], '2.0 https /one no te');
  assert.equal(one.head['x-ratelimit-remaining'], '999');
  assert.equal(one.text, large);
  const session = http2.connect(`https://localhost:${weir.ports.proxy}`, { ca: front.cert });
  t.after(() => session.close());
  const two = async (number) => {
    const stream = session.request({ ':method': 'POST', ':path': `/${number}`, te: 'trailers' });
    const head = new Promise((resolve) => stream.once('response', resolve));
    stream.end(large.slice(0, number * 1000));
    const text = await body(stream);
    return [(await head)['x-seen'], text.length];
  };
  const answers = await Promise.all(Array.from({ length: 50 }, (_, number) => two(number)));
  assert.deepEqual(
    answers,
    Array.from({ length: 50 }, (_, number) => [`2.0 https /${number} trailers`, number * 1000]),
  );
});

test('a WebSocket over TLS reaches a backend that prefers HTTP/2', async (t) => {
  const { server, url } = await backend(t, (request, response) => response.end(request.httpVersion));
  const sockets = new WebSocketServer({ noServer: true });
  server.on('upgrade', (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (one) => one.on('message', (data) => one.send(`echo ${data}`)));
  });
  const weir = await proxy(t, `limits: {}\nbackend: ${url}\n`);
  // The pool has an HTTP/2 connection first.
  const options = { host: 'localhost', port: weir.ports.proxy, ca: front.cert, agent: false };
  const version = await new Promise((resolve, reject) => {
    https.get(options, async (answer) => resolve(await body(answer))).on('error', reject);
  });
  assert.equal(version, '2.0');
  const socket = new WebSocket(`wss://localhost:${weir.ports.proxy}/chat`, { ca: front.cert });
  const echoed = new Promise((resolve, reject) => {
    socket.on('open', () => socket.send('hello'));
    socket.on('message', (data) => resolve(String(data)));
    socket.on('error', reject);
  });
  assert.equal(await echoed, 'echo hello');
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.close(1000);
  assert.equal(await closed, 1000);
});

test('gRPC over TLS on both sides', async (t) => {
  const method = { path: '/test.Echo/Echo', requestStream: false, responseStream: false };
  for (const way of ['request', 'response']) {
    method[`${way}Serialize`] = (bytes) => bytes;
    method[`${way}Deserialize`] = (bytes) => bytes;
  }
  const server = new grpc.Server();
  server.addService({ echo: method }, { echo: (call, done) => done(null, call.request) });
  const pair = [{ private_key: back.key, cert_chain: back.cert }];
  const port = await new Promise((resolve, reject) => {
    const bound = (error, number) => (error ? reject(error) : resolve(number));
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createSsl(null, pair), bound);
  });
  t.after(() => server.forceShutdown());
  const weir = await proxy(t, `limits: {ip: {key: ip, rate: 1/hour}}\nbackend: https://127.0.0.1:${port}\n`);
  const Client = grpc.makeGenericClientConstructor({ echo: method }, 'Echo');
  const credentials = grpc.credentials.createSsl(front.cert);
  const client = new Client(`localhost:${weir.ports.proxy}`, credentials, { 'grpc.enable_retries': 0 });
  t.after(() => client.close());
  const echo = () =>
    new Promise((resolve) => {
      client.echo(Buffer.from('hello'), (error, answer) => resolve(error?.code ?? answer.toString()));
    });
  assert.equal(await echo(), 'hello');
  assert.equal(await echo(), grpc.status.RESOURCE_EXHAUSTED);
});

test('a head that an HTTP/2 backend does not accept is 431, and no failure of the backend', async (t) => {
  const settings = { maxHeaderListSize: 2000 };
  const server = http2.createServer({ settings }, (request, response) => response.end('ok'));
  const sessions = new Set();
  server.on('session', (session) => sessions.add(session));
  t.after(() => {
    sessions.forEach((session) => session.destroy());
    server.close();
  });
  // One connection, which knows what the backend accepts after the first response.
  const weir = await proxy(t, `limits: {}\nbackend: h2://127.0.0.1:${await listening(server)}\n`, 1);
  const get = (headers) =>
    new Promise((resolve, reject) => {
      const options = { host: 'localhost', port: weir.ports.proxy, ca: front.cert, agent: false, headers };
      https.get(options, async (answer) => resolve([answer.statusCode, await body(answer)])).on('error', reject);
    });
  assert.deepEqual(await get({}), [200, 'ok']);
  for (let i = 0; i < 4; i += 1) {
    const [status, text] = await get({ 'x-large': 'y'.repeat(4000) });
    assert.deepEqual([status, JSON.parse(text).error], [431, 'header_too_large']);
  }
  assert.deepEqual(await get({}), [200, 'ok']);
  const metrics = await (await fetch(weir.url('/metrics', 'admin'))).text();
  assert.match(metrics, /weir_backend_up\{backend="h2:[^"]*"\} 1\n/);
});

test('a form that Express would read and Weir does not is not let through', async (t) => {
  const app = express();
  const seen = [];
  app.use(express.urlencoded({ extended: false, limit: '1mb' }));
  app.post('/signin', (request, response) => {
    seen.push(request.body.email);
    response.send('in');
  });
  const server = https.createServer(back, app);
  t.after(() => server.closeAllConnections() ?? server.close());
  const port = await listening(server);
  const limit = '{key: form:email, burst: 1, count: 1, period: 1h, missing: reject}';
  const weir = await proxy(t, `limits: {email: ${limit}}\nbackend: https://localhost:${port}\n`);
  const post = (headers, text) =>
    new Promise((resolve, reject) => {
      const all = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': text.length, ...headers };
      const where = { host: 'localhost', port: weir.ports.proxy, method: 'POST', path: '/signin' };
      const request = https.request({ ...where, ca: front.cert, agent: false, headers: all }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      request.on('error', reject);
      request.end(text);
    });
  assert.equal(await post({}, 'email=a'), 200);
  assert.equal(await post({}, 'email=a'), 429);
  assert.equal(await post({ 'content-encoding': 'gzip' }, zlib.gzipSync('email=a')), 400);
  assert.equal(await post({}, `x=${'y'.repeat(65 << 10)}&email=a`), 413);
  assert.equal(await post({}, 'email=b&email=a'), 400);
  assert.equal(await post({}, '%65mail=a'), 429);
  assert.deepEqual(seen, ['a']);
});

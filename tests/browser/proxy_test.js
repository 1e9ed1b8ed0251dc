// A site behind the edge proxy in Chromium: page, fetch, WebSocket and EventSource, without TLS and over HTTP/2.
'use strict';

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { chromium } = require('playwright-core');
const { WebSocketServer } = require('ws');
const { Server } = require('../clients/serving');
const { FLAGS } = require('./page');

const PAGE = `<!doctype html><title>site</title><pre id="results"></pre><script>
const socket = () => new Promise((resolve, reject) => {
  const one = new WebSocket(location.origin.replace('http', 'ws') + '/socket');
  const got = [];
  one.onopen = () => { for (let i = 0; i < 20; ++i) one.send(String(i)); };
  one.onmessage = (event) => {
    got.push(event.data);
    if (got.length === 20) { one.close(); resolve(got.join()); }
  };
  one.onerror = reject;
});
const events = () => new Promise((resolve, reject) => {
  const source = new EventSource('/events');
  const got = [];
  source.onmessage = (event) => {
    got.push(event.data);
    if (got.length === 5) { source.close(); resolve(got.join()); }
  };
  source.onerror = reject;
});
const post = async () => {
  const answer = await fetch('/length', { method: 'POST', body: 'x'.repeat(300000) });
  return [answer.status, await answer.text(), answer.headers.get('x-ratelimit-limit')].join();
};
(async () => {
  const parts = await Promise.all([post(), socket(), events()]);
  const echo = async (i) => (await fetch('/echo/' + i)).text();
  const many = await Promise.all(Array.from({ length: 50 }, (_, i) => echo(i)));
  const protocol = performance.getEntriesByType('navigation')[0].nextHopProtocol;
  document.getElementById('results').textContent = JSON.stringify({ parts, many, protocol });
})().catch((fault) => { document.getElementById('results').textContent = JSON.stringify({ fault: String(fault) }); });
</script>`;

async function site(t) {
  const server = http.createServer((request, response) => {
    if (request.url === '/length') {
      let bytes = 0;
      request.on('data', (part) => {
        bytes += part.length;
      });
      request.on('end', () => response.end(String(bytes)));
    } else if (request.url === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let number = 0;
      const timer = setInterval(() => response.write(`data: ${number++}\n\n`), 20);
      response.on('close', () => clearInterval(timer));
    } else if (request.url.startsWith('/echo/')) {
      response.end(request.url.slice(6));
    } else {
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end(PAGE);
    }
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (one) => one.on('message', (data, binary) => one.send(data, { binary })));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    sockets.clients.forEach((one) => one.terminate());
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

async function browse(t) {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS });
  t.after(() => browser.close());
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  page.setDefaultTimeout(30000);
  return page;
}

async function check(t, scheme, protocol, tls) {
  const backend = await site(t);
  const config = `threads: 2\nlimits: {ip: {key: ip, rate: 1000/hour}}\nbackend: ${backend}\n`;
  const weir = await Server.start(t, { config, speak: ['proxy', 'admin'], tls });
  const page = await browse(t);
  await page.goto(`${scheme}://127.0.0.1:${weir.ports.proxy}/`);
  const results = page.locator('#results');
  await results.filter({ hasText: '}' }).waitFor();
  const seen = JSON.parse(await results.textContent());
  assert.equal(seen.fault, undefined);
  assert.deepEqual(seen.parts, ['200,300000,1000', Array.from({ length: 20 }, (_, i) => i).join(), '0,1,2,3,4']);
  assert.deepEqual(
    seen.many,
    Array.from({ length: 50 }, (_, i) => String(i)),
  );
  assert.equal(seen.protocol, protocol);
  // The page, a post, a WebSocket, an event stream and fifty fetches: a token each. A favicon may come on top.
  const metrics = await (await fetch(weir.url('/metrics', 'admin'))).text();
  const charged = Number(metrics.match(/weir_rate_limit_requests_total\{limit="ip"[^}]*status="allowed"\} (\d+)/)[1]);
  assert.ok(charged === 54 || charged === 55, String(charged));
}

test('a page, fetch, WebSocket and EventSource', (t) => check(t, 'http', 'http/1.1', {}));

test('the same over TLS, where the page comes by HTTP/2 and the WebSocket by HTTP/1.1', async (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-tls-'));
  t.after(() => fs.rmSync(directory, { recursive: true }));
  const [cert, key] = ['cert.pem', 'key.pem'].map((name) => path.join(directory, name));
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30'];
  const names = ['-subj', '/CN=site', '-addext', 'subjectAltName=IP:127.0.0.1'];
  execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert, ...names], { stdio: 'ignore' });
  await check(t, 'https', 'h2', { proxy: `, tls: {cert: ${cert}, key: ${key}}` });
});

test('a script of another origin can read why it was denied', async (t) => {
  const backend = await site(t);
  const config = `
threads: 2
limits: {ip: {key: ip, rate: 1/hour}}
error_headers: {access-control-allow-origin: "*"}
routes:
  - {name: page, match: {path: /}, limits: none}
  - {name: rest, match: {path: "/**"}, limits: [ip]}
backend: ${backend}
`;
  const weir = await Server.start(t, { config, speak: ['proxy', 'admin'] });
  const page = await browse(t);
  await page.goto(`http://localhost:${new URL(backend).port}/`);
  const denied = await page.evaluate(
    async (url) => {
      await fetch(url, { mode: 'no-cors' });
      const answer = await fetch(url);
      return [answer.status, (await answer.json()).error];
    },
    weir.url('/echo/1', 'proxy'),
  );
  assert.deepEqual(denied, [429, 'rate limit exceeded']);
});

// A server with a configuration of the test's, and the dashboard opened in Chromium. Both end with the test.
'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const readline = require('node:readline');
const { chromium } = require('playwright-core');

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

class Server {
  // `more`: faces besides the decision API and the admin API.
  static async start(t, policy, more = []) {
    const server = new Server();
    server.policy = policy;
    server.directory = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-'));
    server.ports = Object.fromEntries(['http', 'admin', ...more].map((speak) => [speak, 0]));
    t.after(async () => {
      await server.end();
      fs.rmSync(server.directory, { recursive: true });
    });
    await server.begin();
    return server;
  }

  // Again on the same ports.
  async begin() {
    const config = path.join(this.directory, 'weir.yaml');
    const listen = Object.entries(this.ports).map(
      ([speak, port]) => `  - {address: "127.0.0.1:${port}", speak: ${speak}}\n`,
    );
    fs.writeFileSync(config, `listen:\n${listen.join('')}${this.policy}`);
    // Started where its file is, so that sources of settings on the page are short.
    this.process = spawn(path.resolve(process.env.WEIR), ['serve', '--config', 'weir.yaml'], {
      cwd: this.directory,
      stdio: ['ignore', 'inherit', 'pipe'],
    });
    this.ended = new Promise((resolve) => this.process.once('exit', resolve));
    const ready = new Promise((resolve) => {
      readline
        .createInterface({ input: this.process.stderr })
        .on('line', (line) => line.includes('ready:') && resolve(line));
    });
    const line = await Promise.race([ready, this.ended]);
    if (typeof line !== 'string') throw new Error('the server ended before it was ready');
    for (const [, speak, port] of line.matchAll(/(\w+) on 127\.0\.0\.1:(\d+)/g)) this.ports[speak] = Number(port);
  }

  async end(signal = 'SIGTERM') {
    this.process.kill(signal);
    await this.ended;
  }

  async check(limit, id, times = 1, more = {}) {
    const answers = [];
    for (let i = 0; i < times; ++i) {
      const answer = await fetch(`http://127.0.0.1:${this.ports.http}/v1/check`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ limit, id, ...more }),
      });
      answers.push((await answer.json()).allowed);
    }
    return answers;
  }

  async throttle(question, times) {
    for (let i = 0; i < times; ++i) {
      await fetch(`http://127.0.0.1:${this.ports.http}/v1/throttle`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(question),
      });
    }
  }

  async admin(target, token) {
    const answer = await fetch(this.address(target), { headers: token ? { Authorization: `Bearer ${token}` } : {} });
    return answer.json();
  }

  address(target = '/') {
    return `http://127.0.0.1:${this.ports.admin}${target}`;
  }
}

// Opens the dashboard. What the browser complains about is collected in `page.complaints`.
async function open(t, server, options = {}) {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS });
  t.after(() => browser.close());
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.complaints = [];
  page.urls = [];
  page.on(
    'console',
    (message) => ['error', 'warning'].includes(message.type()) && page.complaints.push(message.text()),
  );
  page.on('pageerror', (error) => page.complaints.push(error.message));
  page.on('request', (request) => page.urls.push(request.url()));
  await page.goto(server.address());
  return page;
}

const live = (page) => page.waitForSelector('#state[data-state=live]');

// Resolves when the element shows this text. Playwright's waitForFunction() needs eval, which the page forbids.
const shows = (page, selector, text) => page.locator(selector, { hasText: text }).first().waitFor();

module.exports = { FLAGS, Server, live, open, shows };

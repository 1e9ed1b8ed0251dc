// The dashboard as a person uses it, in Chromium.
'use strict';

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const path = require('node:path');
const test = require('node:test');
const { Server, live, open, shows } = require('./page');

const LIMITS = `
threads: 2
limits:
  login: {rate: 3/hour}
  slow: {rate: 1/s, burst: 10}
  plan: {rate: 100/s, quota: 1000/month}
  trial: {rate: 1/hour, mode: shadow}
`;

const row = (page, table, text) => page.locator(`#${table} tr`, { hasText: text });
const cells = async (locator) => (await locator.locator('td').allTextContents()).map((text) => text.trim());

test('the numbers on the page are those of the traffic', async (t) => {
  const server = await Server.start(t, LIMITS);
  const page = await open(t, server);
  await live(page);
  assert.deepEqual(await server.check('login', 'alice', 10), [true, true, true, ...Array(7).fill(false)]);
  await server.check('trial', 'bob', 5);
  await shows(page, '#limits tr:has-text("login") td:nth-child(4)', /^7$/);
  const login = await cells(row(page, 'limits', 'login'));
  assert.deepEqual([login[0], login[3], login[4], login[5]], ['login', '7', '0', '1']);
  await shows(page, '#limits tr:has-text("trial") td:nth-child(5)', /^4$/);
  await shows(page, '#top tr', 'alice');
  assert.deepEqual(await cells(page.locator('#top tr').first()), ['alice', 'login', '7']);
  await page.getByRole('button', { name: 'Shadow denied' }).click();
  assert.deepEqual(await cells(page.locator('#top tr').first()), ['bob', 'trial', '4']);
  await page.getByRole('button', { name: 'Requests', exact: true }).click();
  assert.deepEqual(await cells(page.locator('#top tr').first()), ['alice', 'login', '10']);
  assert.deepEqual(page.complaints, []);
});

test('the page shows the backends of the proxy and how they do', async (t) => {
  const backend = http.createServer((request, response) => response.end('hello')).listen(0, '127.0.0.1');
  await once(backend, 'listening');
  t.after(() => backend.close());
  const url = `http://127.0.0.1:${backend.address().port}`;
  const policy = `threads: 1\nlimits:\n  per-ip: {key: ip, rate: 1000/s}\nbackend: ["${url}", "http://127.0.0.1:1"]\n`;
  const server = await Server.start(t, policy, ['proxy']);
  const page = await open(t, server);
  await live(page);
  // The second one refuses connections: those requests go to the first, and after three it is out.
  for (let i = 0; i < 8; ++i) assert.equal((await fetch(`http://127.0.0.1:${server.ports.proxy}/`)).status, 200);
  await shows(page, '#store dd', '8 responses, 3 calls of a backend failed, 0 in progress');
  await shows(page, '#store dd.up', url);
  await shows(page, '#store dd.down', 'http://127.0.0.1:1 (unavailable)');
  assert.deepEqual(page.complaints, []);
});

test('a bucket refills on the page with the numbers of the server', async (t) => {
  const server = await Server.start(t, LIMITS);
  await server.check('slow', 'carol', 10);
  const page = await open(t, server);
  await live(page);
  await page.fill('#search-text', 'car');
  await page.keyboard.press('Enter');
  await page.locator('#found button', { hasText: 'carol' }).click();
  const left = page.locator('[data-remaining=rate]');
  let last = -1;
  for (let seen = 0; seen < 4;) {
    const before = (await server.admin('/ratelimit/clients/slow/carol')).rate.remaining;
    const shown = Number((await left.textContent()).match(/^(\d+) of 10 left$/)?.[1] ?? -1);
    const after = (await server.admin('/ratelimit/clients/slow/carol')).rate.remaining;
    // The page asks once a second, so it may be one token behind.
    if (shown >= 0) assert.ok(shown >= before - 2 && shown <= after, `${before} ${shown} ${after}`);
    if (shown > last) {
      last = shown;
      ++seen;
    }
  }
  await server.check('plan', 'carol', 3);
  await page.fill('#search-text', 'carol');
  await page.selectOption('#search-limit', 'plan');
  await page.keyboard.press('Enter');
  await page.locator('#search button').click();
  await page.locator('#found button', { hasText: 'carol' }).first().click();
  await shows(page, '[data-remaining=quota]', '997 of 1000 left');
  assert.deepEqual(page.complaints, []);
});

test('reset, adjust and block act', async (t) => {
  const server = await Server.start(t, LIMITS);
  await server.check('login', 'dave', 4);
  const page = await open(t, server);
  await live(page);
  await page.locator('#top button', { hasText: 'dave' }).click();
  const dialog = page.locator('#confirm');

  await shows(page, '[data-remaining=rate]', '0 of 3 left');
  await page.locator('.actions').getByRole('button', { name: 'Reset' }).click();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  assert.deepEqual(await server.check('login', 'dave'), [false], 'canceled');
  await page.locator('.actions').getByRole('button', { name: 'Reset' }).click();
  await dialog.getByRole('button', { name: 'Reset' }).click();
  await dialog.waitFor({ state: 'hidden' });
  assert.deepEqual(await server.check('login', 'dave', 4), [true, true, true, false]);

  await page.locator('.actions').getByRole('button', { name: 'Adjust' }).click();
  await dialog.getByLabel('Rate').fill('5/fortnight');
  await dialog.getByRole('button', { name: 'Adjust' }).click();
  await shows(page, '#confirm-error', 'rate');
  await dialog.getByLabel('Rate').fill('100/s');
  await dialog.getByLabel('Burst').fill('50');
  await dialog.getByRole('button', { name: 'Adjust' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await shows(page, '[data-remaining=rate]', 'of 50 left');
  await page.locator('.actions').getByRole('button', { name: 'Remove adjustment' }).click();
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await shows(page, '[data-remaining=rate]', 'of 3 left');

  await page.locator('.actions').getByRole('button', { name: 'Block' }).click();
  await dialog.getByLabel('Reason').fill('scraping');
  await dialog.locator('#confirm-ok').click();
  await shows(page, '.blocked', 'scraping');
  assert.deepEqual(await server.check('login', 'dave'), [false]);
  await page.locator('.actions').getByRole('button', { name: 'Lift block' }).click();
  await dialog.getByRole('button', { name: 'Lift' }).click();
  await page.locator('.blocked').waitFor({ state: 'hidden' });
  assert.ok(
    page.complaints.every((text) => text.includes('400')),
    page.complaints.join(),
  );
});

test('a token is needed where one is set, and is in no URL', async (t) => {
  const server = await Server.start(
    t,
    `${LIMITS}admin: {read_token: reading-is-fine-here, write_token: writing-is-fine-here}\n`,
  );
  const page = await open(t, server);
  await shows(page, '#state', 'Token needed');
  const dialog = page.locator('#confirm');
  await dialog.getByLabel('Token').fill('not-the-token-you-want');
  await dialog.getByRole('button', { name: 'Use this token' }).click();
  await shows(page, '#confirm-error', 'does not accept this token');
  await dialog.getByLabel('Token').fill('reading-is-fine-here');
  await dialog.getByRole('button', { name: 'Use this token' }).click();
  await live(page);

  await server.check('login', 'erin', 4);
  await page.locator('#top button', { hasText: 'erin' }).click();
  await page.locator('.actions').getByRole('button', { name: 'Reset' }).click();
  await dialog.getByRole('button', { name: 'Reset' }).click();
  await shows(page, '#confirm-error', 'write token');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.locator('#token-button').click();
  await dialog.getByLabel('Token').fill('writing-is-fine-here');
  await dialog.getByRole('button', { name: 'Use this token' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await page.locator('.actions').getByRole('button', { name: 'Reset' }).click();
  await dialog.getByRole('button', { name: 'Reset' }).click();
  await dialog.waitFor({ state: 'hidden' });
  assert.deepEqual(await server.check('login', 'erin'), [true]);
  for (const url of page.urls) assert.doesNotMatch(url, /fine-here|token-you-want/);
});

test('the page says when the server is gone, and goes on when it is back', async (t) => {
  const server = await Server.start(t, LIMITS);
  const page = await open(t, server);
  await live(page);
  await server.end('SIGKILL');
  await shows(page, '#state', 'No connection');
  await shows(page, '#notice', 'does not answer');
  await server.begin();
  await live(page);
  await page.locator('#notice').waitFor({ state: 'hidden' });
  await server.check('login', 'frank', 5);
  await shows(page, '#limits tr:has-text("login") td:nth-child(4)', /^2$/);
});

async function redis(t, port) {
  const process_ = spawn('redis-server', ['--port', String(port), '--save', '', '--appendonly', 'no'], {
    stdio: 'ignore',
  });
  const ended = new Promise((resolve) => process_.once('exit', resolve));
  const end = async () => {
    process_.kill('SIGKILL');
    await ended;
  };
  t.after(end);
  for (;;) {
    const answered = await new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (answered) return end;
  }
}

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test('the page says when Redis is gone, and goes on when it is back', async (t) => {
  const port = await freePort();
  const end = await redis(t, port);
  const server = await Server.start(t, `${LIMITS}store: redis\nredis: {endpoints: ["127.0.0.1:${port}"]}\n`);
  const page = await open(t, server);
  await live(page);
  await end();
  await server.check('login', 'grace', 2);
  await shows(page, '#notice', 'redis store is unavailable');
  await redis(t, port);
  await page.locator('#notice').waitFor({ state: 'hidden' });
});

test('everything can be reached with the keyboard alone', async (t) => {
  const server = await Server.start(t, LIMITS);
  await server.check('login', 'heidi', 4);
  const page = await open(t, server);
  await live(page);
  await shows(page, '#top tr', 'heidi');
  const focused = () => page.evaluate(() => document.activeElement?.textContent.trim() ?? '');
  const tabTo = async (text) => {
    for (let i = 0; i < 80; ++i) {
      if ((await focused()) === text) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`Tab never reached ${text}`);
  };
  await tabTo('heidi');
  await page.keyboard.press('Enter');
  await shows(page, '[data-remaining=rate]', '0 of 3 left');
  await tabTo('Reset');
  await page.keyboard.press('Enter');
  await page.locator('#confirm').waitFor();
  await tabTo('Reset');
  await page.keyboard.press('Enter');
  await page.locator('#confirm').waitFor({ state: 'hidden' });
  assert.deepEqual(await server.check('login', 'heidi'), [true]);
  await tabTo('Block');
  await page.keyboard.press('Enter');
  await page.locator('#confirm').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('#confirm').waitFor({ state: 'hidden' });
});

test('looks right at every width and in both themes, without scrolling sideways', async (t) => {
  fs.mkdirSync(process.env.SCREENSHOTS, { recursive: true });
  const server = await Server.start(t, LIMITS);
  await server.check('login', 'ivan', 9);
  await server.check('slow', 'a-client-with-a-rather-long-name-that-has-no-place-to-break@example.com', 11);
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [360, 768, 1440]) {
      const page = await open(t, server, { viewport: { width, height: 900 }, colorScheme });
      await live(page);
      await server.check('plan', 'judy', 20);
      await page.locator('#top button').first().click();
      await page.locator('.bucket').first().waitFor();
      await shows(page, '#limits tr:has-text("plan") td:nth-child(2)', /\d/);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
      await page.evaluate(() => scrollTo(0, 0));
      await page.screenshot({
        path: path.join(process.env.SCREENSHOTS, `dashboard-${colorScheme}-${width}.png`),
        fullPage: true,
      });
      assert.deepEqual(page.complaints, []);
      await page.close();
    }
  }
});

// docs/dashboard.png is this test's picture: PICTURE_SECONDS=150 gives the plots something to show.
test('draws the plots of steady traffic', async (t) => {
  const server = await Server.start(t, LIMITS);
  const page = await open(t, server, { viewport: { width: 1440, height: 1000 } });
  await live(page);
  let seconds = 0;
  for (const until = Date.now() + 1000 * Number(process.env.PICTURE_SECONDS ?? 5); Date.now() < until; ++seconds) {
    const next = Date.now() + 1000;
    const wave = Math.sin(seconds / 15);
    for (const [limit, id, times] of [
      ['plan', 'acme-corp', 14 + Math.round(8 * wave)],
      ['plan', 'globex', 9 + Math.round(4 * Math.cos(seconds / 9))],
      ['slow', 'initech', 3 + Math.round(2 * wave)],
      ['login', `user-${seconds % 40}@example.com`, 1],
      ['login', 'mallory@example.com', seconds % 20 < 6 ? 4 : 1],
      ['trial', 'umbrella', 1],
    ]) {
      await server.check(limit, id, times);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - Date.now())));
  }
  await page.locator('#top button', { hasText: 'initech' }).click();
  await page.locator('.bucket').first().waitFor();
  await shows(page, '#limits tr:has-text("plan") td:nth-child(2)', /[1-9]/);
  const blank = await page.evaluate(() =>
    [...document.querySelectorAll('canvas')].filter((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const colors = new Set();
      for (let i = 0; i < data.length; i += 4) {
        const [red, green, blue] = data.subarray(i, i + 3);
        if (data[i + 3] > 128 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) colors.add(red >> 6);
      }
      return colors.size === 0;
    }).length,
  );
  assert.equal(blank, 0, 'every plot has colored lines');
  await page.evaluate(() => scrollTo(0, 0));
  fs.mkdirSync(process.env.SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: path.join(process.env.SCREENSHOTS, 'dashboard-busy.png'), fullPage: true });
  assert.deepEqual(page.complaints, []);
});

test('an empty policy and an unknown client explain themselves', async (t) => {
  const server = await Server.start(t, 'threads: 1\n');
  const page = await open(t, server);
  await live(page);
  await shows(page, '#limits-empty', 'No limits are configured');
  await page.fill('#search-text', 'nobody');
  await page.locator('#search button').click();
  await shows(page, '#found-note', 'No bucket that is not full matches');
});

// The dashboard as a person uses it, in Chromium.
'use strict';

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const http = require('node:http');
const net = require('node:net');
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
  await shows(page, '#limits tr:has-text("login") td:nth-child(5)', /^7$/);
  const login = await cells(row(page, 'limits', 'login'));
  assert.deepEqual([login[0], ...login.slice(3)], ['login', '3', '7', '0', '1']);
  await shows(page, '#limits tr:has-text("trial") td:nth-child(6)', /^4$/);
  await shows(page, '#denied-share', /^46.7 %$/);
  await shows(page, '#active', /^2$/);
  assert.equal(await page.title(), `${await page.locator('#server').textContent()} · Weir`);
  assert.ok(await page.locator('#token-button').isHidden(), 'this server has no tokens');
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
  await shows(page, '#proxy-facts dd', /^8, 0 in progress$/);
  await shows(page, '#backends tr:has-text("down")', 'http://127.0.0.1:1');
  assert.deepEqual(await cells(row(page, 'backends', 'down')), ['http://127.0.0.1:1', 'down', '0', '3', '–', '–']);
  const up = await cells(row(page, 'backends', 'up'));
  assert.deepEqual(up.slice(0, 4), [url, 'up', '8', '0']);
  for (const time of up.slice(4)) assert.match(time, /^[\d.]+ (µs|ms|s)$/);
  assert.deepEqual(page.complaints, []);
});

test('a bucket refills on the page with the numbers of the server', async (t) => {
  const server = await Server.start(t, LIMITS);
  await server.check('slow', 'carol', 10);
  const page = await open(t, server);
  const answers = []; // what the server told the page
  page.on('response', async (response) => {
    if (response.url().includes('/clients/slow/carol')) answers.push((await response.json()).rate.remaining);
  });
  await live(page);
  await page.fill('#search-text', 'car');
  await page.keyboard.press('Enter');
  await page.locator('#found button', { hasText: 'carol' }).click();
  const left = page.locator('[data-remaining=rate]');
  const seen = new Set();
  while (seen.size < 4) {
    // The page asks again only after it has shown the answer before.
    const shownBefore = answers.at(-2) ?? 0;
    const shown = Number((await left.textContent()).match(/^(\d+) of 10 left$/)?.[1] ?? -1);
    const now = (await server.admin('/ratelimit/clients/slow/carol')).rate.remaining;
    if (shown < 0) continue;
    assert.ok(shownBefore <= shown && shown <= now, `${shownBefore} ${shown} ${now}`);
    seen.add(shown);
  }
  await shows(page, '.bucket', /1 per second, burst 10.*(next token|full) in/);
  await server.check('plan', 'carol', 3);
  await page.fill('#search-text', 'carol');
  await page.selectOption('#search-limit', '=plan');
  await page.locator('#search button').click();
  const planned = page.locator('#found tr', { hasText: 'plan' }); // not a row of the search before
  await planned.locator('button', { hasText: 'carol' }).first().click();
  await shows(page, '[data-remaining=quota]', '997 of 1,000 left');
  await shows(page, '.bucket', /1,000 per month.*renewed in/);
  assert.deepEqual(page.complaints, []);
});

test('a client shows where its numbers come from, also without a bucket', async (t) => {
  const policy = `
threads: 1
limits:
  login: {rate: 3/hour}
  tenant: {rate: 10/s, tiers: {pro: {rate: 100/s, burst: 500}}}
overrides:
  tenant:vip: {unlimited: true}
  tenant:bad: {blocked: true}
  login:odd/name: {rate: 7/hour}
access:
  deny: [{limit: login, id: mallory, reason: abuse}]
`;
  const server = await Server.start(t, policy);
  await server.check('tenant', 'acme', 2, { tier: 'pro' });
  const page = await open(t, server);
  await live(page);
  const find = async (limit, id) => {
    await page.selectOption('#search-limit', `=${limit}`);
    await page.fill('#search-text', id);
    await page.keyboard.press('Enter');
    // Listed if it has a bucket, offered by its exact id if not.
    await page.locator('#found button, #found-note button', { hasText: id }).first().click();
    await shows(page, '#client-title', `${id} in ${limit}`);
  };
  await find('tenant', 'acme');
  await shows(page, '#client dd', 'the tier pro');
  await shows(page, '[data-remaining=rate]', 'of 500 left');
  await find('tenant', 'vip');
  await shows(page, '#client-view', 'Unlimited: every request passes');
  await find('tenant', 'bad');
  await shows(page, '#client-view', 'Blocked by the configuration');
  await find('login', 'odd/name');
  await shows(page, '#client dd', 'an override');
  await shows(page, '.bucket', '7 per hour');
  await find('login', 'nobody');
  await shows(page, '[data-remaining=rate]', '3 of 3 left');
  await find('login', 'mallory');
  await shows(page, '.blocked', 'Blocked until removed, by configuration: abuse');
  assert.equal(await page.locator('.actions button', { hasText: /block/i }).count(), 0, 'the page cannot lift it');
  assert.deepEqual(page.complaints, []);
});

test('buckets of the callers’ own are counted but not opened', async (t) => {
  const server = await Server.start(t, LIMITS);
  await server.throttle({ key: 'user123', burst: 2, count: 1, period: '1h' }, 5);
  const page = await open(t, server);
  await live(page);
  await shows(page, '#top tr', /user123.*caller’s own.*3/);
  assert.equal(await page.locator('#top button').count(), 0);
  await page.locator('#limits button', { hasText: 'caller’s own' }).click();
  assert.equal(await page.locator('#traffic-limit option:checked').textContent(), 'caller’s own');
  await page.locator('#limits button', { hasText: 'login' }).click();
  assert.equal(await page.locator('#traffic-limit').inputValue(), '=login');
  await shows(page, '#limits tr.chosen', 'login');
  await page.locator('#limits button', { hasText: 'login' }).click();
  assert.equal(await page.locator('#traffic-limit').inputValue(), '', 'all limits again');
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
  await shows(page, '#client dd', /^an adjustment, until /);
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
  assert.equal(await page.locator('#main').getAttribute('data-old'), 'true');
  await server.begin();
  await live(page);
  await page.locator('#notice').waitFor({ state: 'hidden' });
  await server.check('login', 'frank', 5);
  await shows(page, '#limits tr:has-text("login") td:nth-child(5)', /^2$/);
  assert.equal(await page.locator('#main').getAttribute('data-old'), 'false');
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
  await server.check('login', 'grace', 4);
  await page.locator('#top button', { hasText: 'grace' }).click();
  await shows(page, '[data-remaining=rate]', '0 of 3 left');
  await end();
  await server.check('login', 'grace', 2);
  await shows(page, '#notice', 'redis store is unavailable');
  await shows(page, '#store dd.down', 'redis, unavailable');
  await shows(page, '#client-view', 'The store is unavailable. The numbers shown are old.');
  await redis(t, port);
  await page.locator('#notice').waitFor({ state: 'hidden' });
  await shows(page, '#store dd.up', 'redis, available');
});

test('everything can be reached with the keyboard alone', async (t) => {
  const server = await Server.start(t, LIMITS);
  await server.check('login', 'heidi', 4);
  const page = await open(t, server);
  await live(page);
  await shows(page, '#top tr', 'heidi');
  const focused = () => page.evaluate(() => document.activeElement?.textContent.trim() ?? '');
  // Whatever has the focus must show it.
  const outlined = () =>
    page.evaluate(() => {
      const focus = document.activeElement;
      return focus === document.body || getComputedStyle(focus).outlineStyle === 'solid';
    });
  const tabTo = async (text) => {
    for (let i = 0; i < 80; ++i) {
      if ((await focused()) === text) return;
      await page.keyboard.press('Tab');
      assert.ok(await outlined(), `focus on "${await focused()}" cannot be seen`);
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
  assert.equal(await focused(), 'Block', 'back where the dialog was opened');
  await tabTo('Close');
  await page.keyboard.press('Enter');
  await page.locator('#client').waitFor({ state: 'hidden' });
  assert.equal(await focused(), 'heidi', 'back where the client was opened');
});

test('an empty policy and an unknown client explain themselves', async (t) => {
  const server = await Server.start(t, 'threads: 1\n');
  const page = await open(t, server);
  await live(page);
  await shows(page, '#limits-empty', 'No limits are configured');
  await page.fill('#search-text', 'nobody');
  await page.locator('#search button').click();
  await shows(page, '#found-note', 'No bucket that is not full matches');
  await shows(page, '#denials-empty', 'No denials');
  await shows(page, '#top-empty', 'No client has been denied');
  await page.fill('#policy-filter', 'failure_policy');
  await shows(page, '#policy tr', /failure_policy.*passThrough.*default/);
  await shows(page, '#policy-note', /^1 of \d+ settings match/);
  await page.fill('#policy-filter', 'threads');
  await shows(page, '#policy tr', /threads.*1.*weir\.yaml:\d+:\d+/);
  await page.fill('#policy-filter', 'no such thing');
  await shows(page, '#policy-note', /^0 of/);
  assert.deepEqual(page.complaints, []);
});

test('hidden tabs leave the connections of the browser to others', async (t) => {
  const server = await Server.start(t, LIMITS);
  const page = await open(t, server);
  await live(page);
  // With one for its stream each, six tabs would need all that Chromium has for a server.
  for (let i = 0; i < 6; ++i) {
    const hidden = await page.context().newPage();
    await hidden.addInitScript(() => Object.defineProperty(document, 'hidden', { get: () => true }));
    await hidden.goto(page.url());
    await live(hidden);
  }
  const last = await page.context().newPage();
  await last.goto(page.url());
  await live(last);
  await shows(last, '#policy tr', 'limits.login.rate');
});

test('the plots survive a reload of the page and start again with another server', async (t) => {
  const server = await Server.start(t, 'threads: 1\n');
  const page = await open(t, server);
  await live(page);
  const lengths = await page.evaluate(async () => {
    const { History } = await import('/assets/history.js');
    const sample = (second, uptime, name = 'a') => ({
      time: new Date(1e12 + 1000 * second).toISOString(),
      server: name,
      uptime_seconds: uptime,
      totals: { requests: 10 * second },
      limits: [],
      top: {},
    });
    const history = new History();
    for (let i = 0; i < 400; ++i) history.add(sample(i, 50 + i));
    const all = history.samples.length;
    history.keep();
    const later = new History();
    later.restore();
    const kept = later.samples.length;
    later.add(sample(401, 451));
    const going = later.rate((one) => one.totals.requests);
    later.add(sample(402, 1));
    const restarted = later.samples.length;
    later.add(sample(403, 2, 'b'));
    return [all, kept, going, restarted, later.samples.length];
  });
  assert.deepEqual(lengths, [301, 301, 10, 1, 1]);
  await page.locator('#theme').click();
  const theme = await page.evaluate(() => document.documentElement.dataset.theme);
  await page.reload();
  await live(page);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), theme);
  assert.deepEqual(page.complaints, []);
});

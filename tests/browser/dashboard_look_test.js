// How the dashboard looks: widths, themes, contrast, and the picture in docs/.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
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

// How many seconds the page has drawn.
const drawn = (page) => page.evaluate(() => Chart.getChart('traffic').data.datasets[0]?.data.length ?? 0);

const drawnAgain = (page) =>
  page.evaluate(async () => {
    const points = () => Chart.getChart('traffic').data.datasets[0].data.length;
    for (const before = points(); points() === before; ) await new Promise((look) => setTimeout(look, 20));
  });

test('looks right at every width and in both themes, without scrolling sideways', async (t) => {
  fs.mkdirSync(process.env.SCREENSHOTS, { recursive: true });
  const server = await Server.start(t, LIMITS);
  await server.check('login', 'ivan', 9);
  const page = await open(t, server);
  await live(page);
  await page.locator('#top button').first().click();
  await page.locator('.bucket').first().waitFor();
  while ((await drawn(page)) < 3) {
    await server.check('plan', 'judy', 3);
    await server.check('slow', 'a-client-with-a-rather-long-name-that-has-no-place-to-break@example.com', 3);
  }
  await page.locator('#search button').click();
  await page.locator('#found tr').first().waitFor();
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [360, 768, 1281, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await page.evaluate(() => scrollTo(0, 0));
      await drawnAgain(page);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
      const cut = await page.evaluate(() => {
        const tables = [...document.querySelectorAll('.scroll')];
        return tables.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.innerText);
      });
      assert.deepEqual(cut, [], `cut off at ${width}`);
      await page.screenshot({
        path: path.join(process.env.SCREENSHOTS, `dashboard-${colorScheme}-${width}.png`),
        fullPage: true,
      });
    }
  }
  assert.deepEqual(page.complaints, []);
});

test('text can be read in both themes', async (t) => {
  const server = await Server.start(t, 'threads: 1\n');
  for (const colorScheme of ['light', 'dark']) {
    const page = await open(t, server, { colorScheme });
    const ratios = await page.evaluate(() => {
      const rgb = (name) => {
        const probe = document.body.appendChild(document.createElement('i'));
        probe.style.color = `var(--${name})`;
        return getComputedStyle(probe).color.match(/\d+/g).map(Number);
      };
      const linear = (part) => (part <= 10.3 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
      const luminance = ([red, green, blue]) =>
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
      const pairs = ['text page', 'text card', 'soft page', 'soft card', 'accent card', 'accent-text accent'];
      pairs.push('allowed card', 'denied card', 'warn-text warn', 'bad-text bad', 'text fill', 'accent fill');
      return pairs.map((pair) => {
        const [dark, light] = pair
          .split(' ')
          .map((name) => luminance(rgb(name)))
          .sort((a, b) => a - b);
        return [pair, (light + 0.05) / (dark + 0.05)];
      });
    });
    for (const [pair, ratio] of ratios) assert.ok(ratio >= 4.5, `${colorScheme}: ${pair} ${ratio}`);
  }
});

const BUSY = `
threads: 2
limits:
  login: {rate: 3/hour}
  api: {rate: 20/s, burst: 40, quota: 100000/month}
  per-ip: {key: ip, rate: 30/s, burst: 20}
  trial: {rate: 1/s, burst: 5, mode: shadow}
`;

// A second of traffic, in waves.
function callsOf(second) {
  const wave = (length) => Math.sin(second / length);
  return [
    ['api', 'acme-corp', 17 + Math.round(8 * wave(15))],
    ['api', 'globex', 11 + Math.round(5 * wave(9))],
    ['api', 'initech', 22 + Math.round(4 * wave(40))],
    ['login', `user-${second % 40}@example.com`, 1],
    ['login', 'mallory@example.com', second % 20 < 6 ? 4 : 1],
    ['trial', 'umbrella', second % 30 < 10 ? 3 : 1],
  ];
}

async function site(t) {
  const backend = http.createServer((request, response) => response.end('hello\n')).listen(0, '127.0.0.1');
  await once(backend, 'listening');
  t.after(() => backend.close());
  return `http://127.0.0.1:${backend.address().port}`;
}

// docs/dashboard.png is this test's picture: PICTURE_SECONDS=320 fills the plots.
test('draws the plots of steady traffic', async (t) => {
  const backends = [await site(t), await site(t)];
  const server = await Server.start(t, `${BUSY}backend: ${JSON.stringify(backends)}\n`, ['proxy']);
  const page = await open(t, server, { viewport: { width: 1440, height: 1000 } });
  await live(page);
  let second = 0;
  const until = Date.now() + 1000 * Number(process.env.PICTURE_SECONDS ?? 4);
  for (; Date.now() < until || (await drawn(page)) < 3; ++second) {
    const next = Date.now() + 1000;
    for (const [limit, id, times] of callsOf(second)) await server.check(limit, id, times);
    const visits = Array.from({ length: 20 + Math.round(8 * Math.sin(second / 25)) }, () =>
      fetch(`http://127.0.0.1:${server.ports.proxy}/`).then((answer) => answer.text()),
    );
    await Promise.all(visits);
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - Date.now())));
  }
  await page.selectOption('#search-limit', '=api');
  await page.locator('#search button').click();
  await page.locator('#found tr').first().waitFor();
  await page.locator('#top button', { hasText: 'mallory' }).waitFor();
  await page.locator('[data-top=requests]').click();
  await server.check('api', 'initech', 60); // so that its bucket refills in the picture
  await page.locator('#top button', { hasText: 'initech' }).click();
  await page.locator('.bucket').first().waitFor();
  await shows(page, '#limits tr:has-text("api") td:nth-child(4)', /[1-9]/);
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
  // Without the long table at the end of the page.
  const { y } = await page.locator('section', { has: page.locator('#policy-title') }).boundingBox();
  await page.screenshot({
    path: path.join(process.env.SCREENSHOTS, 'dashboard-busy.png'),
    fullPage: true,
    clip: { x: 0, y: 0, width: 1440, height: Math.floor(y) },
  });
  assert.deepEqual(page.complaints, []);
});


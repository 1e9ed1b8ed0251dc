// The dashboard: one stream of numbers, a sample a second, drawn as figures, plots and tables.
import { ApiError, call, stream, token } from './api.js';
import { confirm } from './actions.js';
import { Plots } from './charts.js';
import { ClientView } from './client.js';
import { $, cell, element, refresh, setText } from './dom.js';
import { count, rate, seconds, share } from './format.js';
import { History, limitOf } from './history.js';

const kRetryFirst = 1000;
const kRetryMax = 10_000;
const kSilence = 5000; // the stream sends a sample a second: without one for so long the server is gone

const history = new History();
const plots = new Plots($('traffic'), $('denials'));
const view = new ClientView();
let topBy = 'denied';
let policy = [];
let policyVersion;
let connection;
let retry = kRetryFirst;

// --- themes ---

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  plots.restyle();
  draw();
}
const preferred = () =>
  localStorage.getItem('weir-theme') ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
$('theme').addEventListener('click', () => {
  const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  localStorage.setItem('weir-theme', next);
  applyTheme(next);
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => applyTheme(preferred()));

// --- state ---

function showState(state, text) {
  $('state').dataset.state = state;
  setText('state', text);
}

// Problems by name; the notice shows the first that applies.
const problems = new Map();
function showProblem(name, text, kind = 'warn') {
  if (text) problems.set(name, { text, kind });
  else problems.delete(name);
  const first = problems.values().next().value;
  $('notice').hidden = !first;
  $('notice').dataset.kind = first?.kind ?? '';
  setText('notice', first?.text ?? '');
}

// --- drawing ---

function fillSelect(id, names) {
  const select = $(id);
  const chosen = select.value;
  refresh(
    select,
    () => [select.options[0], ...names.map((name) => element('option', { value: name }, name))],
    names.join('\n'),
  );
  select.value = names.includes(chosen) ? chosen : '';
}

function drawLimits(numbers) {
  fillSelect(
    'traffic-limit',
    numbers.limits.map((row) => row.limit),
  );
  fillSelect(
    'search-limit',
    numbers.limits.map((row) => row.limit),
  );
  $('limits-empty').hidden = numbers.limits.length > 0;
  const rows = numbers.limits.map((row) => ({
    ...row,
    allowedRate: rate(history.rate(limitOf(row.limit, 'allowed'))),
    deniedRate: rate(history.rate(limitOf(row.limit, 'denied'))),
  }));
  const pick = (name) => () => {
    $('traffic-limit').value = name;
    draw();
  };
  refresh(
    $('limits'),
    () =>
      rows.map((row) =>
        element(
          'tr',
          {},
          cell(
            'Limit',
            element(
              'button',
              { type: 'button', class: 'link', 'data-key': row.limit, onclick: pick(row.limit) },
              row.limit || 'caller’s own',
            ),
          ),
          cell('Allowed/s', row.allowedRate, 'n'),
          cell('Denied/s', row.deniedRate, row.deniedRate === '0' || row.deniedRate === '–' ? 'n' : 'n hot'),
          cell('Denied', count(row.denied), 'n'),
          cell('Shadow denied', count(row.shadow_denied), 'n'),
          cell('Active', count(row.active), 'n'),
        ),
      ),
    JSON.stringify(rows),
  );
}

function drawTop(numbers) {
  const rows = numbers.top?.[topBy] ?? [];
  $('top-empty').hidden = rows.length > 0;
  refresh(
    $('top'),
    () =>
      rows.map((row) =>
        element(
          'tr',
          {},
          cell('Client', clientButton(row.limit, row.id)),
          cell('Limit', row.limit),
          cell(
            'Count',
            row.error > 0 ? `${count(row.count)} (at most ${count(row.error)} too high)` : count(row.count),
            'n',
          ),
        ),
      ),
    topBy + JSON.stringify(rows),
  );
}

function proxyFacts({ proxy, backends }) {
  const facts = backends.map((one) => ['Backend', one.backend, one.up ? 'up' : 'down']);
  if (!proxy) return facts;
  const { responses, failed, active, p99 } = proxy;
  const text =
    `${count(responses)} responses, ${count(failed)} calls of a backend failed, ${count(active)} in progress; ` +
    `99 % of the backends’ responses within ${seconds(p99)}`;
  return [['Proxy', text, ''], ...facts];
}

function drawStore(numbers) {
  const { p50, p99, p999 } = numbers.latency_seconds;
  const { allow_listed, deny_listed } = numbers.totals;
  const facts = [
    ['Store', numbers.store.kind, numbers.store.up ? 'up' : 'down'],
    [
      'Decision time',
      `half within ${seconds(p50)}, 99 % within ${seconds(p99)}, 99.9 % within ${seconds(p999)}`,
      '',
    ],
    ['Buckets', count(numbers.buckets), ''],
    [
      'Lists',
      `${count(allow_listed)} passed by the allow list, ${count(deny_listed)} refused by the deny list`,
      '',
    ],
    ['Running for', seconds(Math.floor(numbers.uptime_seconds)), ''],
    ['Policy version', String(numbers.policy_version), ''],
    ...proxyFacts(numbers),
  ];
  refresh(
    $('store'),
    () =>
      facts.flatMap(([name, value, state]) => [
        element('dt', {}, name),
        element('dd', { class: state }, state === 'down' ? `${value} (unavailable)` : value),
      ]),
    JSON.stringify(facts),
  );
}

function draw() {
  const numbers = history.latest();
  if (!numbers) return;
  const total = (field) => (sample) => sample.totals[field];
  const minute = { all: history.since(total('requests'), 60), denied: history.since(total('denied'), 60) };
  setText('server', `${numbers.server} · version ${numbers.version}`);
  setText('requests-rate', rate(history.rate(total('requests'))));
  setText('denied-rate', rate(history.rate(total('denied'))));
  setText('denied-share', minute.all ? share(minute.denied.gained, minute.all.gained) : '–');
  setText('shadow-rate', rate(history.rate(total('shadow_denied'))));
  const active = numbers.limits.map((row) => row.active);
  setText('active', active.includes(null) ? '–' : count(active.reduce((sum, one) => sum + one, 0)));
  setText('active-note', active.includes(null) ? 'unknown while the store is unavailable' : 'not full');
  setText('latency', seconds(numbers.latency_seconds.p99));
  drawLimits(numbers);
  drawTop(numbers);
  drawStore(numbers);
  plots.draw(history, $('traffic-limit').value);
}

const clientButton = (limit, id) =>
  element(
    'button',
    { type: 'button', class: 'link id', 'data-key': `${limit} ${id}`, onclick: () => view.open(limit, id) },
    id || '(everyone)',
  );

// --- the stream ---

function receive(numbers) {
  retry = kRetryFirst;
  history.add(numbers);
  showState('live', 'Live');
  showProblem('connection', '');
  showProblem(
    'store',
    numbers.store.up
      ? ''
      : `The ${numbers.store.kind} store is unavailable. The failure policy answers; buckets cannot be listed.`,
    'bad',
  );
  if (numbers.policy_version !== policyVersion) readPolicy(numbers.policy_version);
  draw();
}

async function connect() {
  connection?.abort();
  const mine = (connection = new AbortController());
  let watchdog;
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => mine.abort(), kSilence);
  };
  let problem;
  try {
    alive();
    await stream('/ratelimit/live', (numbers) => (alive(), receive(numbers)), mine.signal);
  } catch (caught) {
    problem = caught;
  }
  clearTimeout(watchdog);
  if (connection !== mine) return;
  if (problem instanceof ApiError && (problem.status === 401 || problem.status === 403)) return refused(problem);
  const wait = retry;
  retry = Math.min(2 * retry, kRetryMax);
  showState('lost', 'No connection');
  const why = problem instanceof ApiError ? problem.message : 'The server does not answer.';
  showProblem('connection', `${why} Trying again every few seconds. The numbers below are old.`, 'bad');
  setTimeout(() => connection === mine && connect(), wait);
}

function refused(problem) {
  showState('denied', problem.status === 401 ? 'Token needed' : 'Refused');
  if (problem.status === 403) return showProblem('connection', problem.message, 'bad');
  showProblem(
    'connection',
    token.get() ? 'The server does not accept this token.' : 'This server needs a token.',
    'bad',
  );
  askToken();
}

let asking = false;
async function askToken() {
  if (asking) return;
  asking = true;
  const entered = await confirm({
    title: 'Token',
    text: 'Enter the read token to look, or the write token to change things. It stays in this tab.',
    ok: 'Use this token',
    fields: [{ name: 'token', label: 'Token', type: 'password' }],
    run: async (values) => {
      const before = token.get();
      token.set(values.token.trim());
      try {
        await call('GET', '/ratelimit/adjust');
      } catch (problem) {
        token.set(before);
        throw problem.status === 401 ? new Error('The server does not accept this token.') : problem;
      }
    },
  });
  asking = false;
  if (entered) connect();
}
$('token-button').addEventListener('click', askToken);

// --- search, top, policy ---

for (const button of document.querySelectorAll('[data-top]')) {
  button.addEventListener('click', () => {
    topBy = button.dataset.top;
    for (const other of document.querySelectorAll('[data-top]'))
      other.setAttribute('aria-pressed', String(other === button));
    draw();
  });
}
$('traffic-limit').addEventListener('change', draw);

$('search').addEventListener('submit', async (event) => {
  event.preventDefault();
  const query = new URLSearchParams({ n: '50' });
  if ($('search-limit').value) query.set('limit', $('search-limit').value);
  if ($('search-text').value) query.set('prefix', $('search-text').value);
  try {
    const { clients } = await call('GET', `/ratelimit/clients?${query}`);
    $('found').replaceChildren(
      ...clients.map((row) =>
        element(
          'tr',
          {},
          cell('Client', clientButton(row.limit, row.id)),
          cell('Limit', row.tier ? `${row.limit} (${row.tier})` : row.limit),
          cell(
            'Left',
            row.burst === null
              ? '–'
              : row.remaining < 0
                ? 'unlimited'
                : `${count(row.remaining)} of ${count(row.burst)}`,
            'n',
          ),
          cell('Denied', count(row.denied), 'n'),
        ),
      ),
    );
    // A client without a bucket may still be known: looked up by its exact id.
    const exact = $('search-limit').value && $('search-text').value;
    const note = $('found-note');
    note.replaceChildren();
    if (clients.length === 0) {
      note.append('No bucket that is not full matches. ');
      if (exact)
        note.append(clientButton($('search-limit').value, $('search-text').value), ' opens it by its exact id.');
    } else {
      note.append(
        clients.length === 50 ? 'The first 50 matches. Type more to narrow them down.' : `${clients.length} found.`,
      );
    }
  } catch (problem) {
    $('found').replaceChildren();
    $('found-note').textContent = problem.status ? problem.message : 'The server does not answer.';
  }
});

async function readPolicy(version) {
  try {
    const answer = await call('GET', '/ratelimit/config');
    policyVersion = version;
    // What somebody chose comes before the defaults.
    policy = [...answer.settings].sort((a, b) => (a.source === 'default') - (b.source === 'default'));
    drawPolicy();
  } catch {
    // The stream reports what is wrong; the policy is read again with the next sample.
  }
}
function drawPolicy() {
  const wanted = $('policy-filter').value.toLowerCase();
  const rows = policy.filter(({ path, value }) => `${path} ${value}`.toLowerCase().includes(wanted));
  $('policy-empty').hidden = rows.length > 0;
  const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
  $('policy').replaceChildren(
    ...rows.map((row) =>
      element(
        'tr',
        {},
        cell('Setting', row.path, 'value'),
        cell('Value', text(row.value), 'value'),
        cell('Source', row.source, 'source'),
      ),
    ),
  );
}
$('policy-filter').addEventListener('input', drawPolicy);

applyTheme(preferred());
connect();

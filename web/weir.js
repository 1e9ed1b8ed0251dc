// The dashboard: one stream of numbers, a sample a second, drawn as figures, plots and tables.
import { ApiError, call, stream, token } from './api.js';
import { confirm } from './actions.js';
import { Plots } from './charts.js';
import { ClientView } from './client.js';
import { $, cell, element, refresh, setText } from './dom.js';
import { count, rate, seconds, sentence, share, whole } from './format.js';
import { History, limitOf } from './history.js';

const kRetryFirst = 1000;
const kRetryMax = 10_000;
const kHiddenEvery = 10_000; // a browser has six connections to a server: those of hidden tabs are left to others
const kFoundMax = 50;
const kSilence = 5000; // the stream sends a sample a second: without one for so long the server is gone

const history = new History();
const plots = new Plots($('traffic'), $('denials'));
const view = new ClientView();
let topBy = 'denied';
let latest; // the newest sample
let policy = [];
let policyVersion;
let connection;
let resting = false; // nobody looks: the connection is closed between two samples
let retry = kRetryFirst;

// --- themes: the system's until the viewer chooses one ---

const kTheme = 'weir-theme';
const systemIsDark = matchMedia('(prefers-color-scheme: dark)');

function applyTheme() {
  const chosen = localStorage.getItem(kTheme);
  if (chosen) document.documentElement.dataset.theme = chosen;
  plots.restyle();
  draw();
}
$('theme').addEventListener('click', () => {
  const now = localStorage.getItem(kTheme) ?? (systemIsDark.matches ? 'dark' : 'light');
  localStorage.setItem(kTheme, now === 'dark' ? 'light' : 'dark');
  applyTheme();
});
systemIsDark.addEventListener('change', applyTheme);

// --- state ---

function showState(state, text) {
  $('state').dataset.state = state;
  $('main').dataset.old = String(state !== 'live');
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

const kOwn = 'caller’s own'; // buckets whose numbers callers send; their limit has no name

// Options with the limits' names behind the first, which stands for all. `=` tells the nameless limit from it.
function fillSelect(id, names) {
  const select = $(id);
  const chosen = select.value;
  const options = () => [
    select.options[0],
    ...names.map((name) => element('option', { value: `=${name}` }, name || kOwn)),
  ];
  refresh(select, options, names.join('\n'));
  select.value = names.includes(chosen.slice(1)) ? chosen : '';
}
const chosenLimit = (id) => ($(id).value ? $(id).value.slice(1) : undefined);

function drawLimits(numbers) {
  const names = numbers.limits.map((row) => row.limit);
  fillSelect('traffic-limit', names);
  fillSelect(
    'search-limit',
    names.filter((name) => name !== ''),
  );
  $('limits-empty').hidden = names.length > 0;
  const chosen = chosenLimit('traffic-limit');
  const rows = numbers.limits.map((row) => ({
    ...row,
    allowedRate: rate(history.rate(limitOf(row.limit, 'allowed'))),
    deniedRate: rate(history.rate(limitOf(row.limit, 'denied'))),
    chosen: row.limit === chosen,
  }));
  const button = (row) =>
    element(
      'button',
      {
        type: 'button',
        class: 'link',
        'data-key': row.limit,
        'aria-pressed': String(row.chosen),
        title: row.chosen ? 'Plot all limits' : 'Plot this limit',
        onclick: () => {
          $('traffic-limit').value = row.chosen ? '' : `=${row.limit}`;
          draw();
        },
      },
      row.limit || kOwn,
    );
  const quiet = (text) => (text === '0' || text === '–' ? 'n' : 'n hot');
  const show = (row) =>
    element(
      'tr',
      { class: row.chosen ? 'chosen' : '' },
      cell('Limit', button(row), 'name'),
      cell('Allowed/s', row.allowedRate, 'n'),
      cell('Denied/s', row.deniedRate, quiet(row.deniedRate)),
      cell('Allowed', count(row.allowed), 'n'),
      cell('Denied', count(row.denied), 'n'),
      cell('Shadow denied', count(row.shadow_denied), 'n'),
      cell('Active', count(row.active), 'n'),
    );
  refresh($('limits'), () => rows.map(show), JSON.stringify(rows));
}

const kNoneOnTop = {
  denied: 'No client has been denied since the server started.',
  requests: 'No request since the server started.',
  shadow_denied: 'No limit in shadow mode would have denied a request since the server started.',
};

function drawTop(numbers) {
  const rows = numbers.top?.[topBy] ?? [];
  setText('top-empty', rows.length > 0 ? '' : kNoneOnTop[topBy]);
  $('top-table').hidden = rows.length === 0;
  const times = (row) =>
    row.error > 0 ? `${count(row.count)} (at most ${count(row.error)} too high)` : count(row.count);
  refresh(
    $('top'),
    () =>
      rows.map((row) =>
        element(
          'tr',
          {},
          cell('Client', clientButton(row.limit, row.id), 'name'),
          cell('Limit', row.limit || kOwn),
          cell('Count', times(row), row.error > 0 ? 'n long' : 'n'),
        ),
      ),
    topBy + JSON.stringify(rows),
  );
}

// Fills a list of facts: [[name, value, class]].
const drawFacts = (id, facts) =>
  refresh(
    $(id),
    () => facts.flatMap(([name, value, kind]) => [element('dt', {}, name), element('dd', { class: kind }, value)]),
    JSON.stringify(facts),
  );

function drawProxy({ proxy, backends }) {
  $('proxy').hidden = !proxy && backends.length === 0;
  const { responses = 0, failed = 0, active = 0, p99 = null } = proxy ?? {};
  drawFacts('proxy-facts', [
    ['Responses', `${count(responses)}, ${count(active)} in progress`],
    ['Failed calls', count(failed)],
    ['Backend time', responses > 0 ? `99 % answer within ${seconds(p99)}` : 'no response yet'],
  ]);
  const show = (one) =>
    element(
      'tr',
      {},
      cell('Backend', one.backend, 'name value'),
      cell('State', element('span', { class: one.up ? 'up' : 'down' }, one.up ? 'up' : 'down')),
      cell('Responses', count(one.responses), 'n'),
      cell('Failed', count(one.failed), one.failed > 0 ? 'n hot' : 'n'),
      cell('Half within', one.responses > 0 ? seconds(one.p50) : '–', 'n'),
      cell('99 % within', one.responses > 0 ? seconds(one.p99) : '–', 'n'),
    );
  refresh($('backends'), () => backends.map(show), JSON.stringify(backends));
}

function drawStore(numbers) {
  const { p50, p99, p999 } = numbers.latency_seconds;
  const { allow_listed, deny_listed } = numbers.totals;
  const { kind, up } = numbers.store;
  drawFacts('store', [
    ['Store', up ? `${kind}, available` : `${kind}, unavailable`, up ? 'up' : 'down'],
    [
      'Decision time',
      p99 > 0
        ? `half within ${seconds(p50)}, 99 % within ${seconds(p99)}, 99.9 % within ${seconds(p999)}`
        : 'no decision yet',
    ],
    ...(kind === 'memory' ? [['Buckets', count(numbers.buckets)]] : []),
    ['Access lists', `${count(allow_listed)} requests passed, ${count(deny_listed)} refused`],
    ['Running for', seconds(Math.floor(numbers.uptime_seconds))],
    ['Policy version', String(numbers.policy_version)],
  ]);
}

function draw() {
  const numbers = latest;
  if (!numbers) return;
  const total = (field) => (sample) => sample.totals[field];
  const all = history.since(total('requests'), 60);
  const refused = history.since((sample) => sample.totals.denied + sample.totals.deny_listed, 60);
  setText('server', numbers.server);
  setText('version', `· version ${numbers.version}`);
  document.title = `${numbers.server} · Weir`;
  setText('requests-rate', rate(history.rate(total('requests'))));
  setText('denied-rate', rate(history.rate(total('denied'))));
  const listed = history.rate(total('deny_listed'));
  setText('denied-note', listed > 0 ? `per second, and ${rate(listed)} by the deny list` : 'per second');
  setText('denied-share', all ? share(refused.gained, all.gained) : '–');
  setText('shadow-rate', rate(history.rate(total('shadow_denied'))));
  const active = numbers.limits.map((row) => row.active);
  setText('active', active.includes(null) ? '–' : count(active.reduce((sum, one) => sum + one, 0)));
  setText('active-note', active.includes(null) ? 'unknown while the store is unavailable' : 'not full');
  setText('latency', numbers.latency_seconds.p99 > 0 ? seconds(numbers.latency_seconds.p99) : '–');
  drawLimits(numbers);
  drawTop(numbers);
  drawStore(numbers);
  drawProxy(numbers);
  $('denials-empty').hidden = plots.draw(history, chosenLimit('traffic-limit'));
}

// Opens the client. Only the caller knows the numbers of its own bucket: there is nothing to open.
function clientButton(limit, id) {
  if (!limit) return element('span', { class: 'id' }, id);
  const open = () => view.open(limit, id);
  const attributes = { type: 'button', class: 'link id', 'data-key': `${limit} ${id}`, onclick: open };
  return element('button', attributes, id || 'everyone');
}

// --- the stream ---

function receive(numbers) {
  retry = kRetryFirst;
  history.add(numbers);
  latest = numbers;
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
  resting = false;
  const take = (numbers) => {
    alive();
    receive(numbers);
    resting = document.hidden;
    if (resting) mine.abort();
  };
  try {
    alive();
    await stream('/ratelimit/live', take, mine.signal);
  } catch (caught) {
    problem = caught;
  }
  clearTimeout(watchdog);
  if (connection !== mine) return;
  if (resting) return setTimeout(() => connection === mine && connect(), kHiddenEvery);
  if (problem instanceof ApiError && (problem.status === 401 || problem.status === 403)) return refused(problem);
  const wait = retry;
  retry = Math.min(2 * retry, kRetryMax);
  showState('lost', 'No connection');
  const why = problem instanceof ApiError ? sentence(problem.message) : 'The server does not answer.';
  showProblem('connection', `${why} Trying again every few seconds. The numbers below are old.`, 'bad');
  setTimeout(() => connection === mine && connect(), wait);
}

document.addEventListener('visibilitychange', () => {
  if (resting && !document.hidden) connect();
});

function refused(problem) {
  showState('denied', problem.status === 401 ? 'Token needed' : 'Refused');
  if (problem.status === 403) return showProblem('connection', sentence(problem.message), 'bad');
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
        throw problem.status === 401 ? new ApiError(401, '', 'The server does not accept this token.') : problem;
      }
    },
  });
  asking = false;
  if (entered) connect();
}
$('token-button').addEventListener('click', askToken);
// A server without tokens needs no button for them.
document.addEventListener('token-wanted', () => ($('token-button').hidden = false));
$('token-button').hidden = !token.get();

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

function left(row) {
  if (row.remaining === null) return '–';
  if (row.remaining < 0) return 'unlimited';
  return row.burst === null ? count(row.remaining) : `${count(row.remaining)} of ${count(row.burst)}`;
}

// The numbers tell a limit's rate from its quota, which are two buckets.
function limitText(row) {
  const name = (row.limit || kOwn) + (row.tier ? ` (${row.tier})` : '');
  return row.count === null ? name : `${name}, ${whole(row.count)}/${row.period.replace(/^1(?=[a-z]+$)/, '')}`;
}

function showFound(clients, limit, text) {
  $('found-table').hidden = clients.length === 0;
  $('found').replaceChildren(
    ...clients.map((row) =>
      element(
        'tr',
        {},
        cell('Client', clientButton(row.limit, row.id), 'name'),
        cell('Limit', limitText(row)),
        cell('Left', left(row), 'n'),
        cell('Denied', count(row.denied), 'n'),
      ),
    ),
  );
  const note = $('found-note');
  if (clients.length === kFoundMax) {
    note.textContent = `The first ${kFoundMax} matches. Type more to narrow them down.`;
  } else if (clients.length > 0) {
    note.textContent = `${clients.length} found.`;
  } else {
    note.textContent = 'No bucket that is not full matches.';
    // A client without a bucket may still be known: looked up by its exact id.
    if (limit && text) note.append(' Open ', clientButton(limit, text), ' by its exact id.');
    else if (text) note.append(' Choose a limit to open a client by its exact id.');
  }
}

$('search').addEventListener('submit', async (event) => {
  event.preventDefault();
  const limit = chosenLimit('search-limit');
  const text = $('search-text').value.trim();
  const query = new URLSearchParams({ n: String(kFoundMax) });
  if (limit) query.set('limit', limit);
  if (text) query.set('prefix', text);
  try {
    const { clients } = await call('GET', `/ratelimit/clients?${query}`);
    showFound(clients, limit, text);
  } catch (problem) {
    $('found-table').hidden = true;
    $('found-note').textContent = problem.status ? sentence(problem.message) : 'The server does not answer.';
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
  const chosen = policy.filter(({ source }) => source !== 'default').length;
  const all = `${chosen} settings were chosen, ${policy.length - chosen} are defaults.`;
  setText('policy-note', wanted ? `${rows.length} of ${policy.length} settings match.` : all);
  const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
  $('policy').replaceChildren(
    ...rows.map((row) =>
      element(
        'tr',
        {},
        cell('Setting', row.path, 'name'),
        cell('Value', text(row.value), 'value'),
        cell('Source', row.source, 'source'),
      ),
    ),
  );
}
$('policy-filter').addEventListener('input', drawPolicy);

history.restore();
addEventListener('pagehide', () => history.keep());
applyTheme();
connect();

// One client: its rate and quota as buckets that refill while you watch. The server's numbers arrive every second;
// between two of them bar and text go on at the limit's own rate.
import { call, clientPath } from './api.js';
import { adjust, block, reset, unadjust, unblock } from './actions.js';
import { $, element, svg } from './dom.js';
import { allowance, clocks, moment, parseDuration, seconds, sentence, whole } from './format.js';

const kEvery = 1000;
const kWriteEvery = 250; // the text: a bar may move smoothly, numbers only as fast as they can be read
const kWidth = 1000; // of the drawing; the page scales it
const kTicksMax = 50;
const kConfiguration = 'configuration'; // who added an entry of the configuration
const stillness = matchMedia('(prefers-reduced-motion: reduce)');

// Seconds for one token.
const interval = (numbers) => parseDuration(numbers.period) / numbers.count;

// The numbers `elapsed` seconds after the server's answer, if no request has come since. A quota does not trickle back:
// it is renewed at once when its window ends.
function later(numbers, elapsed, kind) {
  const waited = Math.max(0, numbers.reset_after - elapsed);
  if (kind === 'quota' || numbers.remaining < 0) return { ...numbers, reset_after: waited };
  const gained = Math.floor(numbers.burst - waited / interval(numbers) + 1e-6);
  return { ...numbers, reset_after: waited, remaining: Math.max(numbers.remaining, Math.min(gained, numbers.burst)) };
}

// The share of a bucket that is full.
function level(numbers, kind) {
  if (numbers.remaining < 0) return 1;
  if (!(numbers.burst > 0)) return 0;
  if (kind === 'quota') return numbers.remaining / numbers.burst;
  const window = numbers.burst * interval(numbers);
  return Math.min(1, Math.max(0, 1 - numbers.reset_after / window));
}

// What happens next to a rate's bucket.
function refilling(numbers) {
  if (!(numbers.reset_after > 0)) return 'full';
  const next = numbers.reset_after - (numbers.burst - numbers.remaining - 1) * interval(numbers);
  const full = `full in ${seconds(numbers.reset_after)}`;
  return numbers.burst - numbers.remaining > 1 ? `next token in ${seconds(next)}, ${full}` : full;
}

class Bucket {
  constructor(kind) {
    this.kind = kind;
    this.fill = svg('rect', { class: 'level', x: 0, y: 0, width: 0, height: 30 });
    this.ticks = svg('g');
    this.left = element('span', { 'data-remaining': kind });
    this.numbersText = element('span');
    this.next = element('span');
    this.root = element(
      'div',
      { class: 'bucket' },
      element('h3', {}, kind === 'rate' ? 'Rate' : 'Quota', this.left),
      svg(
        'svg',
        {
          viewBox: `0 0 ${kWidth} 30`,
          preserveAspectRatio: 'none',
          role: 'img',
          'aria-label': `${kind}: share that is left`,
        },
        this.fill,
        this.ticks,
      ),
      element('p', {}, this.numbersText, this.next),
    );
  }

  show(numbers) {
    this.numbers = numbers;
    this.at = performance.now();
    this.drawTicks(numbers.burst);
    this.move();
    this.write();
  }

  now() {
    return later(this.numbers, (performance.now() - this.at) / 1000, this.kind);
  }

  move() {
    this.fill.setAttribute('width', (level(this.now(), this.kind) * kWidth).toFixed(1));
  }

  write() {
    const numbers = this.now();
    const unlimited = numbers.remaining < 0;
    this.root.dataset.empty = String(numbers.remaining === 0);
    this.left.textContent = unlimited ? 'unlimited' : `${whole(numbers.remaining)} of ${whole(numbers.burst)} left`;
    if (this.kind === 'rate') {
      this.numbersText.textContent = `${allowance(numbers, 'rate')}, burst ${whole(numbers.burst)}`;
      this.next.textContent = refilling(numbers);
    } else {
      this.numbersText.textContent = allowance(numbers, 'quota');
      this.next.textContent =
        numbers.reset_after > 0 ? `renewed in ${seconds(numbers.reset_after)}` : 'not used in this window';
    }
  }

  // A line between any two tokens, as long as they can be told apart.
  drawTicks(burst) {
    if (this.ticked === burst) return;
    this.ticked = burst;
    const lines = burst <= kTicksMax ? burst - 1 : 0;
    const line = (_, i) => {
      const x = ((i + 1) * kWidth) / burst;
      return svg('line', { class: 'tick', x1: x, x2: x, y1: 0, y2: 30 });
    };
    this.ticks.replaceChildren(...Array.from({ length: Math.max(0, lines) }, line));
  }
}

// Where the numbers come from, in words.
function sourceOf(client) {
  if (client.adjustment) return `an adjustment, until ${moment(client.adjustment.expires)}`;
  if (client.tier && client.source === 'tier') return `the tier ${client.tier}`;
  const words = {
    limit: 'the limit',
    schedule: 'the schedule in force',
    override: 'an override',
    external: 'the limits service',
  };
  return (words[client.source] ?? client.source) + (client.tier ? `, tier ${client.tier}` : '');
}

function answerOf({ age, fresh, source, tenant_key: tenant }) {
  const from = source === 'shared' ? 'another server got it' : 'asked';
  const kept = fresh ? '' : '; kept because the service fails';
  return `${from} ${seconds(age)} ago${tenant ? `, for the tenant ${tenant}` : ''}${kept}`;
}

function factsOf(client) {
  const tracked = client.allowed !== null;
  const facts = [['Numbers from', sourceOf(client)]];
  if (client.external) facts.push(['Service’s answer', answerOf(client.external)]);
  if (!tracked) return [...facts, ['Requests', 'not counted: only the busiest clients are']];
  const shadow = client.shadow_denied > 0 ? `, ${whole(client.shadow_denied)} shadow denied` : '';
  return [
    ...facts,
    ['Requests', `${whole(client.allowed)} allowed, ${whole(client.denied)} denied${shadow}`],
    ['Seen', `first ${moment(client.first_seen)}, last ${moment(client.last_seen)}`],
    ['Last denials', clocks(client.last_denials) || 'none'],
  ];
}

// Why there is no bucket to draw; empty if there is one.
function missingBucket(client) {
  if (client.rate || client.quota || client.block) return '';
  if (client.remaining < 0) return 'Unlimited: every request passes, and no bucket is kept.';
  return 'Blocked by the configuration: every request is denied, and no bucket is kept.';
}

export class ClientView {
  constructor() {
    $('client-close').addEventListener('click', () => this.close());
  }

  open(limit, id) {
    this.stop();
    this.limit = limit;
    this.id = id;
    this.key = document.activeElement?.dataset.key;
    this.buckets = {};
    this.facts = element('dl', { class: 'facts' });
    this.blocked = element('p', { class: 'blocked', hidden: '' });
    this.note = element('p', { class: 'empty', role: 'status' }, 'Reading…');
    this.boxes = element('div', { class: 'buckets' });
    this.buttons = element('div', { class: 'actions' });
    $('client-title').replaceChildren(element('span', { class: 'id' }, id || 'everyone'), ` in ${limit}`);
    $('client-view').replaceChildren(this.blocked, this.boxes, this.note, this.facts, this.buttons);
    $('client').hidden = false;
    $('client').scrollIntoView({ block: 'nearest' });
    $('client-title').focus({ preventScroll: true });
    this.timers = [setInterval(() => this.read(), kEvery), setInterval(() => this.write(), kWriteEvery)];
    this.read();
    this.animate();
  }

  stop() {
    this.timers?.forEach(clearInterval);
    cancelAnimationFrame(this.frame);
    this.limit = undefined;
  }

  // Back to where it was opened from, if that is still there.
  close() {
    this.stop();
    $('client').hidden = true;
    const opener = this.key ? document.querySelector(`[data-key="${CSS.escape(this.key)}"]`) : null;
    (opener ?? $('search-text')).focus();
  }

  // Nothing is known about buckets that cannot be read: they stand still.
  setOld(old) {
    this.old = old;
    this.boxes.dataset.old = String(old);
  }

  animate() {
    if (!stillness.matches && !this.old) for (const bucket of Object.values(this.buckets)) bucket.move();
    this.frame = requestAnimationFrame(() => this.animate());
  }

  write() {
    if (!this.old) for (const bucket of Object.values(this.buckets)) bucket.write();
  }

  async read() {
    const [limit, id] = [this.limit, this.id];
    const same = () => this.limit === limit && this.id === id;
    if (limit === undefined || document.hidden || this.reading === `${limit} ${id}`) return;
    this.reading = `${limit} ${id}`;
    try {
      const client = await call('GET', `${clientPath(limit, id)}?full=true`);
      if (same()) this.show(client);
    } catch (problem) {
      if (same()) this.explain(problem);
    } finally {
      if (this.reading === `${limit} ${id}`) this.reading = undefined;
    }
  }

  explain(problem) {
    if (problem.status === 404) {
      this.boxes.replaceChildren();
      this.buckets = {};
      this.facts.replaceChildren();
      this.blocked.hidden = true;
      this.buttons.replaceChildren();
      delete this.buttons.dataset.signature;
    }
    const why = problem.status ? sentence(problem.message) : 'The server does not answer.';
    this.note.textContent = problem.status === 404 ? why : `${why} The numbers shown are old.`;
    this.setOld(true);
    this.note.hidden = false;
  }

  show(client) {
    this.client = client;
    this.setOld(false);
    this.note.textContent = missingBucket(client);
    this.note.hidden = this.note.textContent === '';
    for (const kind of ['rate', 'quota']) {
      const numbers = client[kind];
      if (!numbers) {
        this.buckets[kind]?.root.remove();
        delete this.buckets[kind];
        continue;
      }
      if (!this.buckets[kind]) {
        this.buckets[kind] = new Bucket(kind);
        this.boxes.append(this.buckets[kind].root);
      }
      this.buckets[kind].show(numbers);
    }
    this.blocked.hidden = !client.block;
    if (client.block) {
      const { expires, added_by: by, reason } = client.block;
      const until = expires ? `until ${moment(expires)}` : 'until removed';
      this.blocked.textContent = `Blocked ${until}, by ${by || 'unknown'}: ${reason || 'no reason given'}`;
    }
    this.facts.replaceChildren(
      ...factsOf(client).flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]),
    );
    this.showButtons(client);
  }

  // Made again only when they change, so that focus stays.
  showButtons(client) {
    // An entry of the configuration can only be removed there.
    const fixed = client.block?.added_by === kConfiguration;
    const signature = `${Boolean(client.adjustment)} ${Boolean(client.block)} ${fixed}`;
    this.client = client;
    if (this.buttons.dataset.signature === signature) return;
    this.buttons.dataset.signature = signature;
    const button = (text, act, kind = 'quiet') =>
      element(
        'button',
        {
          type: 'button',
          class: kind,
          onclick: async () => (await act(this.limit, this.id, this.client)) && this.read(),
        },
        text,
      );
    this.buttons.replaceChildren(
      ...[
        button('Reset', reset),
        button('Adjust', adjust),
        client.adjustment ? button('Remove adjustment', unadjust) : null,
        !client.block ? button('Block', block, 'quiet danger') : null,
        client.block && !fixed ? button('Lift block', unblock) : null,
      ].filter(Boolean),
    );
  }
}

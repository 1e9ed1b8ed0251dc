// One client: its rate and quota as buckets that refill while you watch. The server's numbers arrive every second and
// are printed as they are; between two of them the bar moves at the limit's own rate.
import { call, clientPath } from './api.js';
import { adjust, block, reset, unadjust, unblock } from './actions.js';
import { $, element, svg } from './dom.js';
import { clock, count, seconds } from './format.js';

const kEvery = 1000;
const kWidth = 1000; // of the drawing; the page scales it

const periodSeconds = (text) => {
  const units = { ms: 1e-3, s: 1, m: 60, h: 3600, d: 86400 };
  let total = 0;
  for (const [, number, unit] of String(text).matchAll(/([\d.]+)(ms|s|m|h|d)/g))
    total += Number(number) * units[unit];
  return total;
};

// The share of a bucket that is full, `elapsed` seconds after the server's answer.
export function level(numbers, elapsed) {
  if (numbers.remaining < 0) return 1;
  if (!(numbers.burst > 0)) return 0;
  const interval = periodSeconds(numbers.period) / numbers.count;
  const window = numbers.burst * interval;
  if (!(window > 0)) return numbers.remaining / numbers.burst;
  return Math.min(1, Math.max(0, 1 - Math.max(0, numbers.reset_after - elapsed) / window));
}

class Bucket {
  constructor(kind) {
    this.kind = kind;
    this.fill = svg('rect', { class: 'level', x: 0, y: 0, width: 0, height: 30, rx: 5 });
    this.ticks = svg('g');
    this.left = element('span', { 'data-remaining': kind });
    this.note = element('p');
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
        svg('rect', { class: 'trough', x: 0, y: 0, width: kWidth, height: 30, rx: 5 }),
        this.fill,
        this.ticks,
      ),
      this.note,
    );
  }

  show(numbers) {
    this.numbers = numbers;
    this.at = performance.now();
    const unlimited = numbers.remaining < 0;
    this.left.textContent = unlimited ? 'unlimited' : `${numbers.remaining} of ${numbers.burst} left`;
    const full = numbers.reset_after > 0 ? `full in ${seconds(numbers.reset_after)}` : 'full';
    const renewed =
      numbers.reset_after > 0 ? `renewed in ${seconds(numbers.reset_after)}` : 'not used in this window';
    this.note.textContent =
      this.kind === 'rate'
        ? `${numbers.count} per ${numbers.period}, burst ${numbers.burst}; ${full}`
        : `${numbers.count} per ${numbers.period}; ${renewed}`;
    const marks = numbers.burst > 1 && numbers.burst <= 50 ? numbers.burst - 1 : 0;
    if (this.ticks.childElementCount !== marks) {
      this.ticks.replaceChildren(
        ...Array.from({ length: marks }, (_, i) => {
          const x = ((i + 1) * kWidth) / numbers.burst;
          return svg('line', { class: 'tick', x1: x, x2: x, y1: 0, y2: 30 });
        }),
      );
    }
    this.move();
  }

  move() {
    const elapsed = (performance.now() - this.at) / 1000;
    // A quota does not trickle back: it is renewed at once when its window ends.
    const share =
      this.kind === 'quota'
        ? this.numbers.burst > 0
          ? this.numbers.remaining / this.numbers.burst
          : 0
        : level(this.numbers, elapsed);
    this.fill.setAttribute('width', (share * kWidth).toFixed(1));
  }
}

export class ClientView {
  constructor(onClose) {
    this.onClose = onClose;
    $('client-close').addEventListener('click', () => this.close());
  }

  open(limit, id) {
    this.close(false);
    this.limit = limit;
    this.id = id;
    this.buckets = {};
    this.facts = element('dl', { class: 'facts' });
    this.blocked = element('p', { class: 'blocked', hidden: '' });
    this.note = element('p', { class: 'empty', role: 'status' }, 'Reading…');
    this.boxes = element('div', { class: 'buckets' });
    this.buttons = element('div', { class: 'actions' });
    $('client-title').replaceChildren(element('span', { class: 'id' }, id), ` in ${limit}`);
    $('client-view').replaceChildren(this.blocked, this.boxes, this.note, this.facts, this.buttons);
    $('client').hidden = false;
    $('client').scrollIntoView({ block: 'nearest' });
    $('client-title').focus();
    this.timer = setInterval(() => this.read(), kEvery);
    this.read();
    this.animate();
  }

  close(report = true) {
    clearInterval(this.timer);
    cancelAnimationFrame(this.frame);
    this.limit = undefined;
    $('client').hidden = true;
    if (report) this.onClose?.();
  }

  animate() {
    for (const bucket of Object.values(this.buckets)) bucket.move();
    this.frame = requestAnimationFrame(() => this.animate());
  }

  async read() {
    if (this.reading || this.limit === undefined) return;
    const [limit, id] = [this.limit, this.id];
    this.reading = true;
    try {
      const client = await call('GET', clientPath(limit, id));
      if (this.limit === limit && this.id === id) this.show(client);
    } catch (problem) {
      if (this.limit === limit && this.id === id) this.explain(problem);
    } finally {
      this.reading = false;
    }
  }

  explain(problem) {
    if (problem.status === 404) {
      this.boxes.replaceChildren();
      this.buckets = {};
      this.facts.replaceChildren();
      this.blocked.hidden = true;
      this.note.textContent =
        'This bucket is full. A full bucket is not kept, so there is nothing to show until the next request.';
      this.showButtons({});
    } else {
      this.note.textContent = problem.status
        ? problem.message
        : 'The server does not answer. The numbers shown are old.';
    }
    this.note.hidden = false;
  }

  show(client) {
    this.note.hidden = true;
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
      const until = client.block.expires
        ? `until ${new Date(client.block.expires).toLocaleString()}`
        : 'until removed';
      const reason = client.block.reason || 'no reason given';
      this.blocked.textContent = `Blocked ${until} by ${client.block.added_by}: ${reason}`;
    }
    const rows = [
      ['Numbers from', client.tier ? `${client.source} ${client.tier}` : client.source],
      [
        'Allowed, denied',
        client.allowed === null ? 'not tracked' : `${count(client.allowed)}, ${count(client.denied)}`,
      ],
      ['Shadow denied', client.shadow_denied === null ? 'not tracked' : count(client.shadow_denied)],
      [
        'First, last seen',
        client.first_seen
          ? `${new Date(client.first_seen).toLocaleString()}, ${clock(client.last_seen)}`
          : 'not tracked',
      ],
      ['Last denials', (client.last_denials ?? []).map((one) => clock(one.time ?? one)).join(', ') || 'none'],
    ];
    this.facts.replaceChildren(
      ...rows.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]),
    );
    this.showButtons(client);
  }

  showButtons(client) {
    const signature = `${client.source === 'adjustment'} ${Boolean(client.block)}`;
    this.entry = client.block;
    if (this.buttons.dataset.signature === signature) return;
    this.buttons.dataset.signature = signature;
    const button = (text, act, kind = '') =>
      element(
        'button',
        {
          type: 'button',
          class: kind,
          onclick: async () => (await act(this.limit, this.id, this.entry)) && this.read(),
        },
        text,
      );
    this.buttons.replaceChildren(
      ...[
        button('Reset', reset),
        button('Adjust', adjust, 'quiet'),
        client.source === 'adjustment' ? button('Remove adjustment', unadjust, 'quiet') : null,
        client.block ? button('Lift block', unblock, 'quiet') : button('Block', block, 'danger'),
      ].filter(Boolean),
    );
  }
}

// The last five minutes as rates: the server sends counters, one sample a second, and the difference of two samples is
// a rate. Survives a reload of the page in the tab's session storage.
export const kSeconds = 300;
const kKept = 'weir-history';
const kDrift = 5; // seconds that a clock may be set meanwhile

const timeOf = (numbers) => Date.parse(numbers.time);

// Whether both samples are of one run of one server: its uptime has grown with the time.
function continues(from, to) {
  const grown = to.uptime_seconds - from.uptime_seconds;
  return to.server === from.server && grown >= 0 && Math.abs(grown - (timeOf(to) - timeOf(from)) / 1000) < kDrift;
}

export class History {
  samples = [];

  // Starts again if the counters do: a server that restarted, or another one behind the same address.
  add(numbers) {
    const last = this.latest();
    if (last && !continues(last, numbers)) this.samples = [];
    this.samples.push(numbers);
    const since = timeOf(numbers) - kSeconds * 1000;
    while (timeOf(this.samples[0]) < since) this.samples.shift();
  }

  keep() {
    const counters = this.samples.map(({ time, server, uptime_seconds, totals, limits }) => ({
      time,
      server,
      uptime_seconds,
      totals,
      limits: limits.map(({ limit, allowed, denied, shadow_denied }) => ({ limit, allowed, denied, shadow_denied })),
    }));
    try {
      sessionStorage.setItem(kKept, JSON.stringify(counters));
    } catch {
      sessionStorage.removeItem(kKept); // too much for the browser: the plots start again
    }
  }

  restore() {
    try {
      this.samples = JSON.parse(sessionStorage.getItem(kKept)) ?? [];
    } catch {
      this.samples = [];
    }
  }

  latest() {
    return this.samples.at(-1);
  }

  // The time of the newest sample, and how many seconds the samples cover.
  span() {
    if (this.samples.length === 0) return { end: Date.now(), seconds: 0 };
    const end = timeOf(this.latest());
    return { end, seconds: (end - timeOf(this.samples[0])) / 1000 };
  }

  // Rates between neighbors: [{time, value}], where `pick` reads a counter from a sample.
  rates(pick) {
    const points = [];
    for (let i = 1; i < this.samples.length; ++i) {
      const [from, to] = [this.samples[i - 1], this.samples[i]];
      const elapsed = to.uptime_seconds - from.uptime_seconds;
      if (elapsed <= 0) continue;
      points.push({ time: timeOf(to), value: Math.max(0, pick(to) - pick(from)) / elapsed });
    }
    return points;
  }

  // The newest rate; null until there are two samples.
  rate(pick) {
    return this.gain(pick, this.samples.at(-2))?.rate ?? null;
  }

  // What a counter gained over the last `seconds`, and its rate; null until there are two samples.
  since(pick, seconds) {
    if (this.samples.length < 2) return null;
    const start = timeOf(this.latest()) - seconds * 1000;
    return this.gain(
      pick,
      this.samples.find((one) => timeOf(one) >= start),
    );
  }

  gain(pick, from) {
    const to = this.latest();
    if (!from) return null;
    const gained = Math.max(0, pick(to) - pick(from));
    const elapsed = to.uptime_seconds - from.uptime_seconds;
    return { gained, rate: elapsed > 0 ? gained / elapsed : 0 };
  }
}

export const limitOf = (name, field) => (numbers) => numbers.limits.find((row) => row.limit === name)?.[field] ?? 0;

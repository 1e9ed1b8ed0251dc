// The last five minutes as rates: the server sends counters, one sample a second, and the difference of two samples is
// a rate.
export const kSeconds = 300;

export class History {
  samples = [];

  // Returns false for a sample that starts again: a restarted server counts from zero.
  add(numbers) {
    const last = this.samples.at(-1);
    const again = last && (numbers.uptime_seconds < last.uptime_seconds || numbers.server !== last.server);
    if (again) this.samples = [];
    this.samples.push(numbers);
    if (this.samples.length > kSeconds + 1) this.samples.shift();
    return !again;
  }

  latest() {
    return this.samples.at(-1);
  }

  // The time of the newest sample, and how many seconds the samples cover.
  span() {
    const end = Date.parse(this.latest()?.time ?? new Date().toISOString());
    return { end, seconds: this.samples.length > 0 ? (end - Date.parse(this.samples[0].time)) / 1000 : 0 };
  }

  // Rates between neighbors: [{time, value}], where `pick` reads a counter from a sample.
  rates(pick) {
    const points = [];
    for (let i = 1; i < this.samples.length; ++i) {
      const [from, to] = [this.samples[i - 1], this.samples[i]];
      const elapsed = to.uptime_seconds - from.uptime_seconds;
      if (elapsed <= 0) continue;
      points.push({ time: Date.parse(to.time), value: Math.max(0, pick(to) - pick(from)) / elapsed });
    }
    return points;
  }

  // The newest rate; null until there are two samples.
  rate(pick) {
    return this.since(pick, 1)?.rate ?? null;
  }

  // What a counter gained over the last `seconds` samples, and its rate.
  since(pick, seconds) {
    if (this.samples.length < 2) return null;
    const to = this.samples.at(-1);
    const from = this.samples[Math.max(0, this.samples.length - 1 - seconds)];
    const gained = Math.max(0, pick(to) - pick(from));
    const elapsed = to.uptime_seconds - from.uptime_seconds;
    return { gained, rate: elapsed > 0 ? gained / elapsed : 0 };
  }
}

export const limitOf = (name, field) => (numbers) => numbers.limits.find((row) => row.limit === name)?.[field] ?? 0;

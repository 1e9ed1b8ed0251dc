// Numbers and durations for people.

// A message of the server as a sentence.
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');

// Exact, with a comma between thousands.
export const whole = (value) => (value === null || value === undefined ? '–' : value.toLocaleString('en-US'));

// Short: exact up to 9,999, then three digits and a unit.
export function count(value) {
  if (value === null || value === undefined) return '–';
  if (value < 10_000) return whole(value);
  const units = [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ];
  const [size, unit] = units.find(([bound]) => value >= bound);
  return `${(value / size).toFixed(value / size < 100 ? 1 : 0)} ${unit}`;
}

export function rate(value) {
  if (value === null || value === undefined) return '–';
  // A second is never exactly a second: 3.996 is 4.
  if (value > 0 && value < 10) return String(Number(value.toFixed(1)));
  return count(Math.round(value));
}

export const share = (part, all) => (all > 0 ? `${((100 * part) / all).toFixed(1)} %` : '–');

// A duration in seconds, rounded up in its last digit: nobody is told to come back too early.
export function seconds(value) {
  if (value === null || value === undefined) return '–';
  if (value <= 0) return '0 s';
  if (value < 1e-3) return `${Math.ceil(value * 1e6)} µs`;
  if (value < 1) return `${Math.ceil(value * 1e3)} ms`;
  if (value < 60) return `${(Math.ceil(value * 10) / 10).toFixed(1)} s`;
  const parts = [
    [86400, 'd'],
    [3600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  const rounded = Math.ceil(value);
  const first = parts.findIndex(([size]) => rounded >= size);
  const [size, unit] = parts[first];
  const left = rounded % size;
  const next = parts[first + 1];
  const more = next && left >= next[0] ? ` ${Math.floor(left / next[0])} ${next[1]}` : '';
  return `${Math.floor(rounded / size)} ${unit}${more}`;
}

const kUnits = { ms: 1e-3, s: 1, m: 60, h: 3600, d: 86400 };

// The seconds of a duration as the server writes it: "1h", "1m30s".
export function parseDuration(text) {
  let total = 0;
  for (const [, number, unit] of String(text).matchAll(/([\d.]+)(ms|s|m|h|d)/g))
    total += Number(number) * kUnits[unit];
  return total;
}

// "10 per second", "3 per 90 s". A quota's window is a calendar's: a day can have 23 hours, a month 28 days.
export function allowance(numbers, kind) {
  const period = parseDuration(numbers.period);
  const names = { 1: 'second', 60: 'minute', 3600: 'hour', 86400: 'day' };
  const hours = period / 3600;
  const window = hours <= 1 ? 'hour' : hours <= 25 ? 'day' : hours <= 169 ? 'week' : 'month';
  const unit = kind === 'quota' ? window : (names[period] ?? numbers.period);
  return `${whole(numbers.count)} per ${unit}`;
}

export const clock = (time) => new Date(time).toLocaleTimeString('sv-SE');
// With the date unless it is today's.
export function moment(time) {
  const date = new Date(time);
  const today = date.toDateString() === new Date().toDateString();
  return today ? clock(time) : date.toLocaleString('sv-SE');
}

// Times of which several may be in one second: "15:25:50, 15:25:52 (3 times)".
export function clocks(times) {
  const counts = new Map();
  for (const time of times) counts.set(moment(time), (counts.get(moment(time)) ?? 0) + 1);
  return [...counts].map(([time, n]) => (n > 1 ? `${time} (${n} times)` : time)).join(', ');
}

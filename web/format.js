// Numbers and durations for people.
export function count(value) {
  if (value === null || value === undefined) return '–';
  if (value < 10_000) return value.toLocaleString('en-US');
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
  if (value > 0 && value < 10) return value.toFixed(1);
  return count(Math.round(value));
}

export const share = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : '–');

// A duration in seconds, rounded up in its last digit: nobody is told to come back too early.
export function seconds(value) {
  if (value === null || value === undefined) return '–';
  if (value <= 0) return '0 s';
  if (value < 1e-3) return `${Math.ceil(value * 1e6)} µs`;
  if (value < 1) return `${Math.ceil(value * 1e3)} ms`;
  if (value < 60) return `${(Math.ceil(value * 10) / 10).toFixed(1)} s`;
  const whole = Math.ceil(value);
  const parts = [
    [86400, 'd'],
    [3600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  const first = parts.findIndex(([size]) => whole >= size);
  const [size, unit] = parts[first];
  const left = whole % size;
  const next = parts[first + 1];
  const more = next && left >= next[0] ? ` ${Math.floor(left / next[0])} ${next[1]}` : '';
  return `${Math.floor(whole / size)} ${unit}${more}`;
}

export const clock = (time) => new Date(time).toLocaleTimeString([], { hour12: false });

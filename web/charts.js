// The two plots, on Chart.js. Colors come from the theme.
import { clock, count, rate } from './format.js';
import { limitOf } from './history.js';

const kLimitsShown = 6;
const kSecondsMin = 60;
const kTickPixels = 90; // room for a label of the time axis
const kAxisPixels = 44; // of the other: the same for both plots, whatever the numbers
const kTickSteps = [10, 15, 30, 60, 120, 300]; // seconds

// A color of the theme as rgb(), which a canvas understands.
function color(name) {
  const probe = document.body;
  probe.style.outlineColor = `var(${name})`;
  const found = getComputedStyle(probe).outlineColor;
  probe.style.outlineColor = '';
  return found;
}
const faded = (shade) => shade.replace('rgb(', 'rgba(').replace(')', ', 0.28)');

// Labels at whole minutes and seconds, as many as fit. None is so near to an end that the plot had to shrink for it.
function timeTicks(axis) {
  const room = Math.max(2, Math.floor(axis.chart.width / kTickPixels));
  const span = axis.max - axis.min;
  const step = 1000 * (kTickSteps.find((one) => span / 1000 / one <= room) ?? kTickSteps.at(-1));
  const margin = span / room / 2;
  axis.ticks = [];
  for (let time = Math.ceil((axis.min + margin) / step) * step; time <= axis.max - margin; time += step)
    axis.ticks.push({ value: time });
}

function options() {
  const ticks = { color: color('--soft'), maxRotation: 0 };
  return {
    animation: false,
    maintainAspectRatio: false,
    interaction: { mode: 'index', intersect: false },
    scales: {
      x: {
        type: 'linear',
        grid: { display: false, borderColor: color('--line') },
        afterBuildTicks: timeTicks,
        ticks: { ...ticks, autoSkip: false, callback: (value) => clock(value) },
      },
      y: {
        beginAtZero: true,
        stacked: true,
        suggestedMax: 4,
        afterFit: (axis) => (axis.width = kAxisPixels),
        grid: { color: color('--line'), drawBorder: false },
        ticks: { ...ticks, maxTicksLimit: 5, precision: 0, callback: (value) => count(value) },
      },
    },
    plugins: {
      legend: { labels: { color: color('--text'), boxWidth: 12, boxHeight: 12 }, position: 'bottom', align: 'start' },
      tooltip: {
        callbacks: {
          title: (items) => clock(items[0].parsed.x),
          label: (item) => `${item.dataset.label}: ${rate(item.parsed.y)}/s`,
        },
      },
    },
  };
}

function series(label, points, shade, more = {}) {
  return {
    ...more,
    label,
    data: points.map(({ time, value }) => ({ x: time, y: value })),
    borderColor: shade,
    backgroundColor: faded(shade),
    borderWidth: 1.5,
    pointRadius: 0,
    fill: more.fill ?? 'origin',
  };
}

const happened = (points) => points.some(({ value }) => value > 0);

export class Plots {
  constructor(traffic, denials) {
    this.traffic = new Chart(traffic, { type: 'line', data: { datasets: [] }, options: options() });
    this.denials = new Chart(denials, { type: 'line', data: { datasets: [] }, options: options() });
    this.numbers = new Map(); // limit to the number of its color, which it keeps
  }

  colorOf(limit) {
    if (!this.numbers.has(limit)) this.numbers.set(limit, 1 + (this.numbers.size % kLimitsShown));
    return color(`--series-${this.numbers.get(limit)}`);
  }

  // After the theme has changed.
  restyle() {
    for (const chart of [this.traffic, this.denials]) chart.options = options();
  }

  // `limit`: draw the traffic of that limit only; undefined: of all. Returns false if there were no denials to plot.
  draw(history, limit) {
    const of = (field) => (limit === undefined ? (numbers) => numbers.totals[field] : limitOf(limit, field));
    const sum = (one, other) => (numbers) => of(one)(numbers) + (of(other)(numbers) ?? 0);
    // What a shadow limit would deny was let through; a limit does not count it as allowed, the totals do.
    const passed = limit === undefined ? sum('allowed', 'allow_listed') : sum('allowed', 'shadow_denied');
    const layers = [
      series('Denied', history.rates(of('denied')), color('--denied')),
      series('Allowed', history.rates(passed), color('--allowed'), { fill: '-1' }),
    ];
    const listed = limit === undefined ? history.rates(of('deny_listed')) : [];
    if (happened(listed)) layers.unshift(series('On the deny list', listed, color('--listed')));
    if (layers.length > 2) layers[1].fill = '-1';
    const shadow = history.rates(of('shadow_denied'));
    // Drawn over the others, not on top of them: these requests are among the allowed ones.
    if (happened(shadow))
      layers.push(series('Shadow denied', shadow, color('--shadow'), { stack: 'shadow', fill: false }));
    this.show(this.traffic, history, layers);
    return this.drawDenials(history);
  }

  drawDenials(history) {
    const rows = (history.latest()?.limits ?? [])
      .map((row) => ({ name: row.limit, points: history.rates(limitOf(row.limit, 'denied')), denied: row.denied }))
      .filter(({ points }) => happened(points))
      .sort((a, b) => b.denied - a.denied)
      .slice(0, kLimitsShown);
    const layers = rows.map(({ name, points }, i) =>
      series(name || 'caller’s own', points, this.colorOf(name), { fill: i === 0 ? 'origin' : '-1' }),
    );
    this.show(this.denials, history, layers);
    return rows.length > 0;
  }

  show(chart, history, datasets) {
    const hidden = new Set(chart.data.datasets.filter((_, i) => !chart.isDatasetVisible(i)).map((one) => one.label));
    for (const one of datasets) one.hidden = hidden.has(one.label);
    const { end, seconds } = history.span();
    chart.options.scales.x.max = end;
    chart.options.scales.x.min = end - Math.max(kSecondsMin, seconds) * 1000;
    chart.data.datasets = datasets;
    chart.update('none');
  }
}

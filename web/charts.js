// The two plots, on Chart.js. Colors come from the theme.
import { clock, rate } from './format.js';
import { limitOf } from './history.js';

const kLimitsShown = 6;
const kSecondsMin = 60;
const kPalette = ['#c2372e', '#a86a00', '#6f4fb3', '#0f6b8f', '#1f8a5b', '#8a5a44'];

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function options() {
  const grid = { color: color('--line'), drawBorder: false };
  const ticks = { color: color('--soft'), maxRotation: 0 };
  return {
    animation: false,
    maintainAspectRatio: false,
    interaction: { mode: 'index', intersect: false },
    scales: {
      x: {
        type: 'linear',
        grid: { display: false },
        ticks: { ...ticks, maxTicksLimit: 6, callback: (value) => clock(value) },
      },
      y: { beginAtZero: true, stacked: true, suggestedMax: 1, grid, ticks: { ...ticks, maxTicksLimit: 5 } },
    },
    plugins: {
      legend: { labels: { color: color('--text'), boxWidth: 12, boxHeight: 12 }, position: 'bottom' },
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
    backgroundColor: `${shade}55`,
    borderWidth: 1.5,
    pointRadius: 0,
    fill: more.fill ?? 'origin',
  };
}

export class Plots {
  constructor(traffic, denials) {
    this.traffic = new Chart(traffic, { type: 'line', data: { datasets: [] }, options: options() });
    this.denials = new Chart(denials, { type: 'line', data: { datasets: [] }, options: options() });
  }

  // After the theme has changed.
  restyle() {
    for (const chart of [this.traffic, this.denials]) chart.options = options();
  }

  draw(history, limit) {
    const pick = (field) => (limit ? limitOf(limit, field) : (numbers) => numbers.totals[field]);
    this.show(this.traffic, history, [
      series('Denied', history.rates(pick('denied')), color('--denied')),
      series('Allowed', history.rates(pick('allowed')), color('--allowed'), { fill: '-1' }),
      // A request that a shadow limit would deny was allowed: it is drawn over the others, not on top of them.
      series('Would be denied (shadow)', history.rates(pick('shadow_denied')), color('--shadow'), {
        stack: 'shadow',
        fill: false,
      }),
    ]);
    const rows = history.latest()?.limits ?? [];
    const busiest = [...rows]
      .sort((a, b) => b.denied - a.denied)
      .slice(0, kLimitsShown)
      .filter((row) => row.denied > 0);
    this.show(
      this.denials,
      history,
      busiest.map((row, i) =>
        series(row.limit, history.rates(limitOf(row.limit, 'denied')), kPalette[i], {
          fill: i === 0 ? 'origin' : '-1',
        }),
      ),
    );
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

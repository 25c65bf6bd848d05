// Charts: uPlot with the page's own colours, and the lanes of tasks.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const colour = (place) => css(`--c${place % 8}`);
/** The order in which lines beside each other take colours: neighbours differ most. */
export const LINES = [0, 2, 4, 5, 3, 7, 1, 6];
const dark = matchMedia("(prefers-color-scheme: dark)");
const live = new Set();

const CHART = 200;

function sizeOf(box, fixed) {
  return { width: Math.max(50, box.clientWidth), height: fixed ?? Math.max(30, box.clientHeight) };
}

const sizes = new ResizeObserver((entries) => {
  for (const entry of entries) {
    const chart = entry.target.chart;
    if (chart && entry.target.isConnected) chart.setSize(chart.sized());
  }
});

/** Forget a chart whose place has gone from the page. */
export function drop(box) {
  sizes.unobserve(box);
  if (box.chart) { live.delete(box); box.chart.destroy(); box.chart = null; }
}

export function dropAll() { for (const box of [...live]) drop(box); }

function begin(box, make) {
  const build = () => {
    const data = box.chart ? box.chart.data : null;
    if (box.chart) box.chart.destroy();
    const { options, first, fixed } = make();
    box.chart = new uPlot(options, data ?? first, box);
    box.chart.sized = () => sizeOf(box, fixed);
  };
  box.build = build;
  build();
  live.add(box);
  sizes.observe(box);
}

dark.addEventListener("change", () => { for (const box of live) box.build(); });

/** A small picture of the last hour: rows stacked upon each other, or single lines. */
export function spark(box, { series, most, since }) {
  begin(box, () => ({
    first: [[], ...series.map(() => [])],
    options: {
      ...sizeOf(box), legend: { show: false }, cursor: { show: false }, padding: [2, 0, 2, 0],
      axes: [{ show: false }, { show: false }],
      scales: { x: { time: false, range: () => [since(), Date.now() / 1000] }, y: { range: (_, __, top) => [0, most() ?? Math.max(top || 0, 1) * 1.1] } },
      series: [{}, ...series.map((row) => ({
        stroke: colour(row.colour), width: row.fill ? 0 : 1.4, fill: row.fill ? colour(row.colour) : undefined, points: { show: false }, spanGaps: false,
      }))],
    },
  }));
}

/** A chart with axes, legend and zoom by dragging; ``zoomed`` is told the part in seconds. */
export function lines(box, { times, rows, unit, zoomed, spans = [] }) {
  const shade = (chart) => {
    const { ctx } = chart;
    ctx.save();
    ctx.fillStyle = css("--soft");
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    for (const [name, [from]] of spans) {
      const x = chart.valToPos(from, "x", true);
      if (x < chart.bbox.left || x > chart.bbox.left + chart.bbox.width - 20) continue;
      ctx.globalAlpha = 0.5;
      ctx.fillRect(x, chart.bbox.top, devicePixelRatio, chart.bbox.height);
      ctx.globalAlpha = 1;
      ctx.fillText(name, x + 4 * devicePixelRatio, chart.bbox.top + 11 * devicePixelRatio);
    }
    ctx.restore();
  };
  const axis = () => ({ stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 }, font: "12px system-ui, sans-serif" });
  begin(box, () => {
    return {
      fixed: CHART,
      first: [times, ...rows.map((row) => row.values)],
      options: {
        ...sizeOf(box, CHART),
        cursor: { drag: { x: Boolean(zoomed), y: false, setScale: false }, points: { size: 5 } },
        scales: { x: { time: false }, y: { range: (_, low, top) => [Math.min(0, low ?? 0), (top || 1) * 1.05] } },
        axes: [{ ...axis(), size: 32, values: (_, marks) => marks.map((at) => `${at} s`) }, { ...axis(), size: 80, values: (_, marks) => marks.map(unit) }],
        series: [
          { label: "at time", value: (_, at) => (at === null || at === undefined ? "–" : `${at.toFixed(1)} s`) },
          ...rows.map((row, nth) => [row, row.place ?? nth]).map(([row, place]) => ({ label: row.label, stroke: colour(LINES[place % 8]), width: 1.5, dash: place >= 8 ? [6, 4] : undefined, points: { show: false }, value: (_, value) => (value === null || value === undefined ? "–" : unit(value)) })),
        ],
        hooks: {
          draw: [shade],
          setSelect: [(chart) => {
            const { left, width } = chart.select;
            if (zoomed && width > 4) zoomed(chart.posToVal(left, "x"), chart.posToVal(left + width, "x"));
            chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          }],
        },
      },
    };
  });
}

/** Tasks on their nodes over time: one lane for each task that a node runs at once. */
export function lanes(canvas, { tasks, nodes, from, until, colourOf }) {
  const ratio = devicePixelRatio || 1;
  const width = Math.max(100, canvas.clientWidth);
  const label = Math.min(110, width * 0.24);
  const plan = nodes.map((node) => {
    const ends = [];
    const rows = tasks.filter((task) => task[0] === node).map((task) => {
      let lane = ends.findIndex((end) => end <= task[2] + 0.02);
      if (lane < 0) lane = ends.length;
      ends[lane] = task[3] ?? Infinity;
      return [task, lane];
    });
    return { node, rows, lanes: Math.max(1, ends.length) };
  });
  const lane = plan.reduce((sum, row) => sum + row.lanes, 0) > 40 ? 5 : 11;
  const gap = 6;
  const height = plan.reduce((sum, row) => sum + Math.max(16, row.lanes * (lane + 1)) + gap, 0) + 18;
  if (canvas.height !== Math.round(height * ratio) || canvas.width !== Math.round(width * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const ctx = canvas.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  ctx.font = "12px system-ui, sans-serif";
  const span = Math.max(5, until - from);
  const x = (at) => label + ((at - from) / span) * (width - label - 2);
  let y = 0;
  for (const row of plan) {
    const tall = Math.max(16, row.lanes * (lane + 1));
    ctx.fillStyle = css("--track");
    ctx.fillRect(label, y, width - label, tall);
    ctx.fillStyle = css("--ink");
    ctx.textBaseline = "middle";
    ctx.fillText(row.node, 0, y + tall / 2, label - 8);
    for (const [task, place] of row.rows) {
      const left = Math.max(label, x(task[2]));
      const right = Math.min(width, x(task[3] ?? until));
      ctx.fillStyle = task[4] ? css(`--c${colourOf(task[1])}`) : css("--bad");
      ctx.globalAlpha = task[3] === null ? 0.65 : 1;
      ctx.fillRect(left, y + 1 + place * (lane + 1), Math.max(1.5, right - left - 0.5), lane);
    }
    ctx.globalAlpha = 1;
    y += tall + gap;
  }
  ctx.fillStyle = css("--soft");
  ctx.textBaseline = "alphabetic";
  ctx.fillText("0 s", label, height - 4);
  const end = `${Math.round(span)} s`;
  ctx.fillText(end, width - ctx.measureText(end).width - 2, height - 4);
}

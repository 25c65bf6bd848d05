// What happens now: the job, the campaign, and a tile for each node.

import { BOUNDS, bytes, celsius, clock, cores, count, el, fill, lasting, mark, put, rate, say, share, sharesBar, watts } from "./dom.js";
import { drop, lanes, spark } from "./draw.js";

const HOUR = 3600;
const STEP = 10;
const NAMES = { namenode: "NameNode", datanode: "DataNode", resourcemanager: "ResourceManager", nodemanager: "NodeManager", jobhistory: "JobHistory", sparkhistory: "Spark history" };
const THROTTLE = ["under-voltage", "clock capped", "throttled", "too hot"];
const nodes = new Map();
let view = null;
let order = [];
let state = null, campaign = null, job = null, metric = "cpu";
let drawn = 0;

const METRICS = {
  cpu: { words: "CPU", rows: [["steal", 3], ["iowait", 2], ["system", 1], ["user", 0]], stacked: true, most: (frame) => Math.max(frame.cores, 0.1) },
  memory: { words: "Memory", rows: [["memory", 0]], most: (frame) => frame.memory_bytes },
  disk: { words: "Disk", rows: [["read", 0], ["written", 2]] },
  network: { words: "Network", rows: [["received", 0], ["sent", 2]] },
  celsius: { words: "Temperature", rows: [["celsius", 3]], most: () => 100 },
  watts: { words: "Power", rows: [["watts", 5]] },
};
const UNITS = { cpu: (top) => `${cores(top)} cores`, memory: bytes, disk: rate, network: rate, celsius, watts };

// What is kept: means of ten seconds, for one hour, whatever the server still knows.

function nodeOf(name) {
  if (!nodes.has(name)) nodes.set(name, { steps: [], sums: null, now: null, frame: null });
  return nodes.get(name);
}

function objectOf(values) {
  const found = {};
  order.forEach((kind, place) => { found[kind] = values[place]; });
  return found;
}

function trim(node) {
  const oldest = Date.now() / 1000 - HOUR - STEP;
  let gone = 0;
  while (gone < node.steps.length && node.steps[gone].at < oldest) gone += 1;
  if (gone) node.steps.splice(0, gone);
}

function takeHistory(history) {
  order = history.readings;
  for (const [name, rows] of Object.entries(history.nodes)) {
    const node = nodeOf(name);
    const fresh = rows.map(([at, ...values]) => ({ at, ...objectOf(values) }));
    const from = fresh.length ? fresh[0].at : Infinity;
    node.steps = [...node.steps.filter((step) => step.at < from), ...fresh];
    node.sums = null;
    trim(node);
  }
}

export function takeNow(found) {
  for (const [name, [at, ...values]] of Object.entries(found.nodes)) {
    const node = nodeOf(name);
    node.now = objectOf(values);
    node.at = at;
    if (!at) continue;
    const step = Math.floor(at / STEP) * STEP;
    if (!node.sums || node.sums.at !== step) node.sums = { at: step, count: {}, total: {} };
    const last = node.steps[node.steps.length - 1];
    if (!last || last.at < step) node.steps.push({ at: step });
    const target = node.steps[node.steps.length - 1];
    for (const kind of order) {
      if (node.now[kind] === null) continue;
      node.sums.count[kind] = (node.sums.count[kind] ?? 0) + 1;
      node.sums.total[kind] = (node.sums.total[kind] ?? 0) + node.now[kind];
      target[kind] = node.sums.total[kind] / node.sums.count[kind];
    }
    trim(node);
  }
  if (view) showReadings();
}

export function takeHello(hello) {
  takeHistory(hello.history);
  takeState(hello.state);
  takeCampaign(hello.campaign);
  takeJob(hello.job);
  takeNow(hello.now);
}

export function takeState(found) {
  const before = state;
  state = found;
  for (const row of found.nodes) nodeOf(row.name).frame = row;
  for (const name of [...nodes.keys()]) if (!found.nodes.some((row) => row.name === name)) nodes.delete(name);
  if (before) {
    const down = new Set(before.nodes.flatMap((row) => row.daemons.filter((d) => !d.up).map((d) => `${row.name} ${d.name}`)));
    const lost = found.nodes.flatMap((row) => row.daemons.filter((d) => !d.up && !down.has(`${row.name} ${d.name}`)).map((d) => `${NAMES[d.name] ?? d.name} on ${row.name} is down`));
    if (lost.length) say(lost.join("; "));
  }
  if (view) showState();
}

export function takeCampaign(found) {
  const before = campaign;
  campaign = found;
  const last = found?.latest[0];
  if (before && last && before.latest[0]?.run !== last.run) say(`${last.title}: ${last.words}`);
  if (view) { showCampaign(); showJob(); }
}

export function takeJob(found) {
  job = found;
  if (view) showJob();
}

// What is shown

export function show(main) {
  const metrics = el("fieldset", { class: "choice" }, el("legend", {}, "What the tiles draw"),
    Object.entries(METRICS).map(([key, row]) => el("label", {},
      el("input", { type: "radio", name: "metric", value: key, checked: key === metric, on: { change: () => { metric = key; rebuild(); } } }), el("span", {}, row.words))));
  view = {
    job: el("section", { class: "card", "aria-labelledby": "job-title" }),
    campaign: el("section", { class: "card", "aria-labelledby": "campaign-title" }),
    minute: el("section", { class: "card", "aria-labelledby": "minute-title", hidden: true }),
    nodesTitle: el("h2", {}, "Nodes"),
    key: el("span", { class: "legend" }), span: el("span"),
    bar: null, tiles: el("div", { class: "tiles" }), byNode: new Map(), lanes: null, jobShown: "",
  };
  view.bar = el("div", { class: "bar-line" }, view.nodesTitle, metrics, view.key);
  view.left = el("div", { class: "stack" }, view.job, view.minute);
  view.columns = el("div", { class: "columns" }, view.left, view.campaign);
  fill(main, el("h1", { class: "unseen" }, "Now"), view.columns, view.bar, view.tiles);
  if (state) { showState(); showCampaign(); showJob(); showReadings(); }
  return () => { for (const tile of view.byNode.values()) drop(tile.plot); view = null; };
}

function showState() {
  const rows = state.nodes;
  view.bar.hidden = rows.length === 0;
  const same = rows.length === view.byNode.size && rows.every((row) => view.byNode.has(row.name));
  if (!same) {
    for (const tile of view.byNode.values()) drop(tile.plot);
    view.byNode.clear();
    fill(view.tiles, ...rows.map(tileOf));
    rebuild();
  }
  const workers = rows.filter((row) => row.roles.includes("worker")).length;
  put(view.nodesTitle, workers ? `${count(rows.filter((row) => !row.is_host).length, "node")}, ${workers} of them ${workers === 1 ? "a worker" : "workers"}` : "Nodes");
  for (const row of rows) showDaemons(view.byNode.get(row.name), row);
  showCampaign();
}

function tileOf(row) {
  const names = ["cpu", "memory", "disk", "net", "heat", "power"];
  const labels = { cpu: "CPU", memory: "Memory", disk: "Disk", net: "Network", heat: "Clock", power: "Power" };
  const tile = { row, plot: el("div", { class: "plot", "aria-hidden": "true" }), reach: el("span", { class: "reach", "aria-hidden": "true" }), figures: {}, daemons: el("ul", { class: "daemons", "aria-label": `Daemons of ${row.name}` }), message: el("p", { class: "message bad", hidden: true }), mark: el("span", { class: "pill" }) };
  const list = el("dl", { class: "figures" }, names.map((name) => {
    tile.figures[name] = el("dd", {}, "–");
    tile[`label_${name}`] = el("dt", {}, labels[name]);
    return el("div", {}, tile[`label_${name}`], tile.figures[name]);
  }));
  const role = row.is_host ? "this machine" : row.roles.join(" and ");
  tile.element = el("article", { class: "card tile", "aria-label": row.name },
    el("div", { class: "between" }, el("h3", {}, row.name), el("span", { class: "soft small" }, row.board || role)),
    tile.message, el("div", { class: "plot" }, tile.plot, tile.reach), list, tile.daemons);
  view.byNode.set(row.name, tile);
  return tile.element;
}

function showDaemons(tile, row) {
  const down = row.daemons.some((daemon) => !daemon.up);
  tile.element.classList.toggle("down", down || Boolean(row.error));
  const words = row.error ? row.error : row.silent ? "It has not reported for some seconds." : "";
  put(tile.message, words);
  tile.message.hidden = !words;
  const text = JSON.stringify(row.daemons);
  if (tile.daemonText === text) return;
  tile.daemonText = text;
  tile.daemons.hidden = row.daemons.length === 0;
  fill(tile.daemons, ...row.daemons.map((daemon) => el("li", { class: `pill ${daemon.up ? "good" : "bad"}` }, `${NAMES[daemon.name] ?? daemon.name} ${daemon.up ? "up" : "down"}`)));
}

function rebuild() {
  if (!view) return;
  const what = METRICS[metric];
  const words = { user: "user", system: "system", iowait: "waiting for a disk", steal: "taken by a hypervisor", memory: "used", read: "read", written: "written", received: "received", sent: "sent", celsius: "hottest sensor", watts: "power" };
  fill(view.key, ...[...what.rows].reverse().map(([kind, place]) => el("span", {}, el("span", { class: `swatch f${place}` }), words[kind])), view.span);
  for (const [name, tile] of view.byNode) {
    drop(tile.plot);
    tile.plot.style.height = "100%";
    spark(tile.plot, {
      series: what.rows.map(([, place]) => ({ colour: place, fill: Boolean(what.stacked) || what.rows.length === 1 })),
      most: () => what.most?.(nodeOf(name).frame ?? tile.row) ?? null,
      since: () => Date.now() / 1000 - reach(),
    });
  }
  drawn = 0;
  showReadings();
}

/** How far back the pictures go, in seconds: an hour, or less while less is known. */
function reach() {
  const now = Date.now() / 1000;
  const oldest = Math.min(now, ...[...nodes.values()].map((node) => node.steps[0]?.at ?? now));
  const span = [300, 600, 1200, 1800].find((part) => now - oldest < part) ?? HOUR;
  if (view) put(view.span, `the last ${span / 60} minutes`);
  return span;
}

function dataOf(node) {
  const what = METRICS[metric];
  const times = [];
  const rows = what.rows.map(() => []);
  let before = null;
  for (const step of node.steps) {
    if (before !== null && step.at - before > 3 * STEP) {
      times.push(before + STEP);
      rows.forEach((row) => row.push(null));
    }
    before = step.at;
    times.push(step.at + STEP / 2);
    if (what.stacked) {
      let sum = 0;
      const stack = [...what.rows].reverse().map(([kind]) => { sum += step[kind] ?? 0; return step[what.rows[what.rows.length - 1][0]] === undefined ? null : sum; });
      stack.reverse().forEach((value, place) => rows[place].push(value));
    } else what.rows.forEach(([kind], place) => rows[place].push(step[kind] ?? null));
  }
  return [times, ...rows];
}

function showReadings() {
  const redraw = view.byNode.size <= 16 || Date.now() - drawn > 5000;
  if (redraw) drawn = Date.now();
  for (const [name, tile] of view.byNode) {
    const node = nodeOf(name);
    if (node.now) showFigures(tile, node.now);
    if (redraw && tile.plot.chart) {
      const data = dataOf(node);
      tile.plot.chart.setData(data);
      const top = tile.plot.chart.scales.y.max;
      put(tile.reach, Number.isFinite(top) ? UNITS[metric](top) : "");
    }
  }
  if (view.lanes && job?.engine) drawLanes();
}

function showFigures(tile, now) {
  const frame = nodeOf(tile.row.name).frame ?? tile.row;
  const busy = now.user === null ? null : (now.user + (now.system ?? 0)) / Math.max(0.01, frame.cores);
  const waits = now.iowait !== null && now.iowait / frame.cores >= 0.05 ? `, disk ${share(now.iowait / frame.cores)}` : "";
  const stolen = now.steal !== null && now.steal / frame.cores >= 0.02 ? `, stolen ${share(now.steal / frame.cores)}` : "";
  put(tile.figures.cpu, busy === null ? "–" : `${share(busy)}${waits}${stolen}`);
  put(tile.figures.memory, now.memory === null ? "–" : `${bytes(now.memory)} of ${bytes(frame.memory_bytes)}`);
  put(tile.figures.disk, now.read === null ? "–" : `${pair(now.read, now.written, "read", "written")}`);
  put(tile.figures.net, now.received === null ? "–" : `${pair(now.received, now.sent, "in", "out")}`);
  const bits = now.throttled ? THROTTLE.filter((_, bit) => (now.throttled >> bit) & 1) : [];
  put(tile.figures.heat, now.hertz === null && now.celsius === null ? "–" : [now.hertz === null ? null : clock(now.hertz), now.celsius === null ? null : celsius(now.celsius), ...bits].filter(Boolean).join(", "));
  tile.figures.heat.classList.toggle("bad", bits.length > 0);
  put(tile.figures.power, now.watts === null ? "–" : watts(now.watts));
  put(tile.label_power, frame.watts_are_modelled ? "Power, modelled" : "Power");
}

/** Two rates in one unit, each with its word. */
function pair(into, out, first, second) {
  const one = rate(Math.max(into ?? 0, out ?? 0)).split(" ");
  const factor = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 }[one[1].split("/")[0]] ?? 1;
  const text = (value) => { const part = (value ?? 0) / factor; return part === 0 ? "0" : part.toFixed(part >= 100 || factor === 1 ? 0 : 1); };
  return `${first} ${text(into)}, ${second} ${text(out)} ${one[1]}`;
}

// The campaign

function showCampaign() {
  if (!view || !state) return;
  const box = view.campaign;
  if (!campaign) {
    const empty = state.phase === "up"
      ? [el("p", {}, "The cluster is up, and nothing has run on it yet. Run something in a terminal:"), el("p", {}, el("code", {}, "boardcluster run wordcount"))]
      : [el("p", {}, "There are no results yet. Run the demonstration, which needs nothing but this machine:"), el("p", {}, el("code", {}, "boardcluster demo"))];
    fill(box, el("h2", { id: "campaign-title" }, "No campaign yet"), ...(state.store_error ? [el("p", { class: "bad" }, state.store_error)] : empty));
    return;
  }
  const runs = ["ok", "failed", "invalid"].map((name) => campaign[name] ?? 0);
  const total = campaign.planned;
  const fills = ["f4", "f3", "f2"];
  const going = Boolean(campaign.driver) && campaign.done < total;
  const told = [count(campaign.done, "run") + ` of ${total} done`, ...(runs[1] ? [`${runs[1]} failed`] : []), ...(runs[2] ? [`${runs[2]} invalid`] : [])];
  const cells = campaign.cells;
  const cellWords = [`${cells.done} done`, `${cells.to_come} to come`, `${cells.failed} failed`].join(", ");
  fill(box,
    el("div", { class: "between" }, el("h2", { id: "campaign-title" }, `Campaign ${campaign.title}`), el("span", { class: `pill ${going ? "good" : ""}` }, going ? "running" : campaign.done < total ? "stopped" : "finished")),
    el("div", { class: "bar", role: "img", "aria-label": told.join(", ") }, runs.map((part, place) => el("i", { class: fills[place], css: { width: `${(100 * part) / Math.max(1, total)}%` } }))),
    el("p", {}, `${told.join(", ")}. Cells: ${cellWords}.`),
    going && leftLine(),
    el("h3", {}, "Latest verdicts"),
    campaign.latest.length ? el("ul", { class: "verdicts" }, campaign.latest.map((row) => el("li", {},
      el("div", { class: "between" }, el("a", { href: `#run/${encodeURIComponent(row.run)}` }, row.title), mark(row.state, row.verdict)), row.words))) : el("p", { class: "soft" }, "No run has ended yet."),
  );
}

function leftLine() {
  if (campaign.left_unknown_runs && !campaign.left_seconds) return el("p", { class: "soft" }, "How long it still takes is known once runs like these have ended.");
  const range = campaign.left_interval_seconds;
  const words = range ? `About ${lasting(campaign.left_seconds)} left (95 %: ${lasting(range[0])} to ${lasting(range[1])}).` : `About ${lasting(campaign.left_seconds)} left, and ${count(campaign.left_unknown_runs, "run")} of unknown length.`;
  return el("p", {}, words);
}

// The job

function showJob() {
  if (!view || !state) return;
  const now = campaign?.now;
  if (!job || !now) {
    view.lanes = null;
    view.jobShown = "";
    view.minute.hidden = true;
    fill(view.job, el("h2", { id: "job-title" }, idleTitle()), ...idleWords());
    return;
  }
  if (view.jobShown !== job.run) {
    view.jobShown = job.run;
    view.parts = el("ul", { class: "parts" });
    view.lanes = el("canvas", { class: "lanes", role: "img", "aria-label": "Tasks on each node over time" });
    view.elapsed = el("p", { class: "soft" });
    view.tasks = el("p", { class: "small soft" });
    fill(view.job,
      el("div", { class: "between" }, el("h2", { id: "job-title" }, now.title), el("span", { class: "pill good" }, `run ${now.place} of ${campaign.planned}`)),
      view.elapsed, view.parts, view.lanes, view.tasks);
  }
  tick();
  showParts();
  showMinute();
}

export function tick() {
  if (!view?.elapsed || !campaign?.now) return;
  const elapsed = (Date.now() - new Date(campaign.now.started_utc).getTime()) / 1000;
  const usual = campaign.now.typical_seconds;
  put(view.elapsed, `${lasting(elapsed)} since preparation began${usual ? `; such a run usually takes ${lasting(usual)}` : ""}.`);
}

function idleTitle() {
  if (state.phase === "up") return state.driver ? `boardcluster ${state.driver} is running` : "Nothing is running";
  return { starting: "The cluster is starting", dead: "The cluster has died", down: state.nodes.length || state.cluster ? "The cluster is down" : "No cluster here" }[state.phase] ?? "Nothing is running";
}

function idleWords() {
  if (state.phase === "dead") return [el("p", {}, state.why), el("p", {}, el("code", {}, "boardcluster down"), " cleans up.")];
  if (state.phase === "starting") return [el("p", {}, "Its nodes appear here once their daemons are up.")];
  if (state.phase !== "up") return [el("p", {}, state.cluster ? "Its stored runs are under Before. To bring it up:" : "This page shows what the store holds: see Before. To make a cluster on this machine:"), el("p", {}, el("code", {}, state.cluster ? "boardcluster up" : "boardcluster demo"))];
  if (state.driver) return [el("p", {}, "The run that it is preparing will appear here.")];
  return [el("p", {}, "The cluster is up and idle. The next run appears here by itself.")];
}

function showParts() {
  const engine = job.engine;
  if (!engine) {
    fill(view.parts, el("li", { class: "soft" }, "It is being prepared or verified: no task is known yet."));
    view.lanes.hidden = true;
    put(view.tasks, "");
    return;
  }
  const text = JSON.stringify(engine.parts);
  if (view.partsText !== text) {
    view.partsText = text;
    fill(view.parts, ...engine.parts.map((part, place) => el("li", {},
      el("div", { class: "between" }, el("span", {}, el("span", { class: `swatch f${place % 8}` }), part.label ? `${part.name}: ${part.label}` : part.name),
        el("span", { class: "small soft" }, `${part.done} of ${part.total} done${part.running ? `, ${part.running} running` : ""}${part.failed ? `, ${part.failed} failed` : ""}`)),
      el("div", { class: "bar", role: "progressbar", "aria-label": part.name, "aria-valuemin": "0", "aria-valuemax": String(part.total), "aria-valuenow": String(part.done) },
        el("i", { class: `f${place % 8}`, css: { width: `${(100 * part.done) / Math.max(1, part.total)}%` } })))));
    const busy = Object.entries(engine.nodes).filter(([, running]) => running).map(([node, running]) => `${node} ${running}`);
    put(view.tasks, busy.length ? `Running tasks: ${busy.join(", ")}.` : "No task is running at the moment.");
  }
  view.lanes.hidden = engine.tasks.length === 0;
  drawLanes();
}

function drawLanes() {
  const engine = job.engine;
  if (!engine?.tasks.length || view.lanes.hidden) return;
  const from = Math.min(...engine.tasks.map((task) => task[2]));
  const running = engine.tasks.some((task) => task[3] === null);
  const until = running ? Date.now() / 1000 : Math.max(...engine.tasks.map((task) => task[3]));
  const places = new Map(engine.parts.map((part, place) => [part.name, place % 8]));
  const names = [...new Set([...(state.nodes.filter((row) => row.roles.includes("worker")).map((row) => row.name)), ...engine.tasks.map((task) => task[0])])];
  lanes(view.lanes, { tasks: engine.tasks, nodes: names, from, until, colourOf: (part) => places.get(part) ?? 6 });
}

function showMinute() {
  const minute = job.minute;
  view.minute.hidden = !minute;
  if (!minute) return;
  const text = JSON.stringify(minute);
  if (view.minuteText === text) return;
  view.minuteText = text;
  const first = BOUNDS[minute.first]?.[1];
  fill(view.minute,
    el("h2", { id: "minute-title" }, "Where the last minute went"),
    ...sharesBar(minute.shares, "Where the last minute went"),
    first ? el("p", {}, `Most of it was ${first}${minute.gain > 1.01 ? `; were that twice as fast, the work would go ${minute.gain.toFixed(2)} times as fast` : ""}.`) : null,
    ...minute.evidence.map((line) => el("p", { class: "small soft" }, line)),
  );
}

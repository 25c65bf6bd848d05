// What happened before: every run in a table, a run's page, and runs laid over each other.

import { ask, BOUNDS, bytes, celsius, clock, cores, count, el, failed, fill, mark, moment, put, rate, say, seconds, sharesBar } from "./dom.js";
import { drop, lines, LINES } from "./draw.js";
import { repeatButton } from "./work.js";

const CURVES = {
  cpu: ["CPU, cores busy", cores], read: ["Read from disk", rate], written: ["Written to disk", rate],
  received: ["Received over the network", rate], sent: ["Sent over the network", rate], memory: ["Memory of the cluster's processes", bytes],
  celsius: ["Temperature", celsius], hertz: ["Clock, measured", clock],
};
const SHOWN = 200;
/** Runs over each other: as many as there are colours. */
const MOST = LINES.length;
let table = null;
let stale = true;
const chosen = new Set();
const filter = { text: "", state: "", campaign: "", factors: {} };
let sorted = { key: "started", down: true };
let redraw = null;

/** The store has changed: read it again when the table is looked at, or now if it is. */
export function changed() {
  stale = true;
  if (redraw) load().then(() => redraw?.(), () => {});  // unless another page was opened meanwhile
}

async function load() {
  if (!table || stale) {
    stale = false;
    try { table = await ask("/api/runs"); } catch (error) { stale = true; throw error; }
  }
  return table;
}

// The table

export function showTable(main) {
  let here = true;
  fill(main, el("h1", {}, "Before"), el("p", { class: "soft" }, "Reading the store."));
  load().then(() => { if (here) draw(main); }, (error) => { if (here) fill(main, failed(error)); });
  return () => { here = false; redraw = null; };
}

const ENGINES = { spark: "Spark", mapreduce: "MapReduce", mpi: "MPI" };
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** A factor of a run in words, as the table and its filters show it. */
function level(run, factor) {
  const found = run.factors[factor.name];
  if (!found) return "";
  return factor.unit === "bytes" && found.value !== null ? bytes(found.value) : (ENGINES[found.words] ?? found.words);
}

const varying = () => table.factors.filter((factor) => new Set(table.runs.map((run) => level(run, factor))).size > 1);

function columns() {
  const rows = [
    { key: "verdict", label: "Result", of: (run) => `${run.state} ${run.verdict}`, words: (run) => mark(run.state, run.verdict) },
    { key: "seconds", label: "Time", number: true, of: (run) => run.seconds ?? Infinity, words: (run) => seconds(run.seconds) },
  ];
  if (table.runs.some((run) => run.joules !== null)) rows.push({ key: "joules", label: "Energy", number: true, of: (run) => run.joules ?? Infinity, words: (run) => (run.joules === null ? "–" : `${(run.joules / 1000).toFixed(2)} kJ`) });
  for (const factor of varying()) {
    rows.push({ key: `factor ${factor.name}`, label: capital(factor.label), number: table.runs.some((run) => typeof run.factors[factor.name]?.value === "number"), of: (run) => run.factors[factor.name]?.value ?? run.factors[factor.name]?.words ?? "", words: (run) => level(run, factor) });
  }
  rows.push(
    { key: "started", label: "Begun", of: (run) => run.started_utc, words: (run) => moment(run.started_utc) },
    { key: "campaign", label: "Campaign", of: (run) => run.campaign_name || run.campaign, words: (run) => run.campaign_name || run.campaign },
  );
  return rows;
}

function matching() {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  return table.runs.filter((run) => {
    if (filter.state && (run.verdict ?? run.state) !== filter.state && run.state !== filter.state) return false;
    if (filter.campaign && (run.campaign_name || run.campaign) !== filter.campaign) return false;
    for (const [name, value] of Object.entries(filter.factors)) if (value && level(run, { name, ...table.factors.find((factor) => factor.name === name) }) !== value) return false;
    const text = `${run.run} ${run.title} ${run.campaign_name} ${run.campaign} ${run.state} ${run.verdict}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function draw(main) {
  if (!table.runs.length) {
    redraw = () => draw(main);
    fill(main, el("h1", {}, "Before"), el("div", { class: "card empty" }, el("h2", {}, "No run is stored yet"), el("p", {}, "The demonstration makes the first ones, in a few minutes, on this machine:"), el("p", {}, el("code", {}, "boardcluster demo"))));
    return;
  }
  const all = columns();
  const body = el("tbody");
  const told = el("p", { class: "soft", role: "status" });
  const over = el("button", { class: "main", type: "button", on: { click: () => { location.hash = `#over/${[...chosen].map(encodeURIComponent).join(",")}`; } } });
  let most = SHOWN;
  const more = el("button", { class: "plain", type: "button", hidden: true, on: { click: () => { most += SHOWN; rows(); } } }, "Show more");
  const heads = new Map();

  function rows() {
    const found = matching();
    const by = all.find((column) => column.key === sorted.key) ?? all[0];
    const sign = sorted.down ? -1 : 1;
    found.sort((a, b) => {
      const [one, other] = [by.of(a), by.of(b)];
      const order = typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
      return sign * (order || a.started_utc.localeCompare(b.started_utc));
    });
    fill(body, found.slice(0, most).map((run) => el("tr", {},
      el("td", {}, el("input", { type: "checkbox", checked: chosen.has(run.run), "aria-label": `Lay ${run.run} over others`, on: { change: (event) => { if (event.target.checked) chosen.add(run.run); else chosen.delete(run.run); button(); } } })),
      el("th", { scope: "row", class: "wide" }, el("a", { href: `#run/${encodeURIComponent(run.run)}` }, run.title)),
      all.map((column) => el("td", { class: column.number ? "number" : null }, column.words(run))))));
    more.hidden = found.length <= most;
    put(told, `${count(found.length, "run")}${found.length < table.runs.length ? ` of ${table.runs.length.toLocaleString("en")}` : ""} in ${count(new Set(found.map((run) => run.campaign)).size, "campaign")}${found.length > most ? `; the first ${most} are shown` : ""}.`);
    for (const [key, head] of heads) if (key === by.key) head.setAttribute("aria-sort", sorted.down ? "descending" : "ascending"); else head.removeAttribute("aria-sort");
  }

  function button() {
    put(over, chosen.size < 2 ? "Choose two runs to compare" : chosen.size > MOST ? `Choose at most ${MOST} runs to compare` : `Lay ${chosen.size} runs over each other`);
    over.disabled = chosen.size < 2 || chosen.size > MOST;
  }

  const pick = (label, values, get, set) => el("label", { class: "field" }, label, el("select", { on: { change: (event) => { set(event.target.value); rows(); } } },
    el("option", { value: "" }, "all"), values.map((value) => el("option", { value, selected: get() === value }, value))));
  const filters = el("div", { class: "filters" },
    el("label", { class: "field" }, "Search", el("input", { type: "search", value: filter.text, placeholder: "words in a run's name", on: { input: (event) => { filter.text = event.target.value; rows(); } } })),
    varying().map((factor) => {
      const values = [...new Set(table.runs.map((run) => level(run, factor)))].filter(Boolean).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
      return pick(capital(factor.label), values, () => filter.factors[factor.name], (value) => { filter.factors[factor.name] = value; });
    }),
    pick("Campaign", [...new Set(table.runs.map((run) => run.campaign_name || run.campaign))].sort().reverse(), () => filter.campaign, (value) => { filter.campaign = value; }),
    pick("Result", [...new Set(table.runs.map((run) => run.verdict ?? run.state))].sort(), () => filter.state, (value) => { filter.state = value; }), over);
  const head = el("tr", {}, el("td", {}, el("span", { class: "unseen" }, "Compare")), el("th", { scope: "col" }, "Run"), all.map((column) => {
    const cell = el("th", { scope: "col", class: column.number ? "number" : null }, el("button", { type: "button", on: { click: () => { sorted = { key: column.key, down: sorted.key === column.key ? !sorted.down : false }; rows(); say(`sorted by ${column.label}`); } } }, column.label));
    heads.set(column.key, cell);
    return cell;
  }));
  fill(main, el("h1", {}, "Before"), filters, told, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runs" }, el("table", {}, el("thead", {}, head), body)), el("p", {}, more));
  rows();
  button();
  redraw = () => { if (!main.contains(document.activeElement) || document.activeElement === main) draw(main); else rows(); };
}

// One run

export function showRun(main, name) {
  let here = true;
  fill(main, el("h1", {}, name), el("p", { class: "soft" }, "Reading its samples."));
  ask(`/api/run?name=${encodeURIComponent(name)}`).then((run) => { if (here) drawRun(main, run); }, (error) => { if (here) fill(main, failed(error)); });
  return () => { here = false; };
}

function facts(rows) {
  return el("dl", { class: "facts" }, rows.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== "–").map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value))));
}

function drawRun(main, run) {
  const energy = run.joules === null || run.joules === undefined ? null : `${(run.joules / 1000).toFixed(2)} kJ, ${run.energy_method}`;
  const zoom = { begin: null, end: null };
  const charts = el("div", { class: "charts" });
  const reasons = [...(run.verdict_reasons ?? []), ...(run.remarks ?? [])];
  const published = el("section", { class: "card", hidden: true });
  fill(main,
    el("p", { class: "small" }, el("a", { href: "#before" }, "All runs"), " / ", run.campaign_name || run.campaign),
    el("div", { class: "between" }, el("h1", {}, run.title), run.repeat && !document.querySelector('nav a[data-page="do"]').hidden && repeatButton(run)),
    el("section", { class: "card" },
      el("div", { class: "between" }, el("p", {}, run.words), mark(run.state, run.verdict)),
      facts([["Time", run.seconds === null ? null : seconds(run.seconds)], ["Energy", energy], ["Input", run.input_bytes ? bytes(run.input_bytes) : null], ["Intermediate data", run.intermediate_bytes ? bytes(run.intermediate_bytes) : null], ["Output", run.output_bytes ? bytes(run.output_bytes) : null],
        ["Begun", moment(run.started_utc)], ["Repetition", run.warm_up ? "warm-up" : String(run.repetition)], ["Nodes", run.emulated ? `${run.machine.nodes}, emulated` : String(run.machine.nodes)], ["Versions", [run.machine.hadoop && `Hadoop ${run.machine.hadoop}`, run.machine.spark && `Spark ${run.machine.spark}`, run.machine.java].filter(Boolean).join(", ")], ["Name", run.run]]),
      reasons.length > 0 && el("ul", { class: "small" }, reasons.map((line) => el("li", {}, line)))),
    el("p"),
    run.bottleneck?.length > 0 && bottleneck(run.bottleneck),
    el("p"), published, el("p"),
    run.nodes && part(zoom, run, () => drawCharts(charts, [run.run], zoom, { byNode: true, again: (from, to) => main.querySelector("form.part").zoom(from, to) })),
    charts);
  if (run.nodes) drawCharts(charts, [run.run], zoom, { byNode: true, again: (from, to) => main.querySelector("form.part").zoom(from, to) });
  else charts.append(el("p", { class: "soft" }, "This run has no samples."));
  ask(`/api/published?name=${encodeURIComponent(run.run)}`).then((rows) => drawPublished(published, run, rows), () => {});
}

/** Where the time of a run and of its phases went: a bar for each, one legend for all. */
function bottleneck(spans) {
  const [whole, ...phases] = spans;
  const row = (span, name) => [el("span", {}, name), sharesBar(span.shares, name)[0], el("span", { class: "soft small" }, seconds(span.seconds))];
  return el("section", { class: "card" }, el("h2", {}, "Where its time went"),
    el("div", { class: "spans" }, row(whole, "The whole run"), phases.map((span) => row(span, span.phase.split("/").at(-1)))),
    sharesBar(whole.shares, "The whole run")[1],
    whole.first && el("p", {}, `Less ${BOUNDS[whole.first]?.[1] ?? whole.first} would save most${whole.gain > 1.01 ? `: with half of it gone, the run would be ${whole.gain.toFixed(2)} times as fast` : ""}.`),
    whole.evidence.map((line) => el("p", { class: "small soft" }, line)));
}

function drawPublished(box, run, rows) {
  box.hidden = rows.length === 0;
  if (!rows.length) return;
  fill(box, el("h2", {}, "Published times of the same work"),
    el("p", { class: "small soft" }, "Workload, engine, size and what the paper states of its parameters are the same; the machine is the paper's. A ratio below 1 means that this run was faster."),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Published times" }, el("table", {},
      el("thead", {}, el("tr", {}, ["Workers", "Machine", "Published", "This run", "Ratio", "Source"].map((label) => el("th", { scope: "col" }, label)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, el("td", {}, row.workers === null ? "–" : String(row.workers)), el("td", {}, row.machine || "–"), el("td", {}, seconds(row.seconds)), el("td", {}, seconds(run.seconds)),
        el("td", {}, run.seconds ? (run.seconds / row.seconds).toFixed(2) : "–"), el("td", { class: "wide" }, row.source, row.doubt && el("span", { class: "warn" }, ` Doubtful: ${row.doubt}.`))))))));
}

/** The part of a run that charts show: by two fields, by dragging in a chart, or all of it. */
function part(zoom, run, again) {
  const field = (label, value) => el("label", { class: "field" }, label, el("input", { type: "number", min: "0", max: String(run.duration_seconds), step: "any", value: String(value), required: true }));
  const from = field("From, in seconds", 0);
  const to = field("To, in seconds", Math.round(run.duration_seconds * 10) / 10);
  const set = (begin, end) => {
    zoom.begin = begin; zoom.end = end;
    from.querySelector("input").value = String(Math.round((begin ?? 0) * 10) / 10);
    to.querySelector("input").value = String(Math.round((end ?? run.duration_seconds) * 10) / 10);
    again();
  };
  const form = el("form", { class: "filters part", on: { submit: (event) => { event.preventDefault(); set(Number(from.querySelector("input").value), Number(to.querySelector("input").value)); } } },
    from, to, el("button", { class: "plain", type: "submit" }, "Show this part"), el("button", { class: "plain", type: "button", on: { click: () => set(null, null) } }, "Show all"), el("span", { class: "soft small" }, "or drag in a chart"));
  form.zoom = set;
  return form;
}

async function drawCharts(box, runs, zoom, { byNode, labels = [], again }) {
  const asked = Symbol("asked");
  box.asked = asked;
  if (!box.children.length) {
    fill(box, Object.entries(CURVES).map(([key, [label]]) => el("section", { class: "card chart", "data-curve": key, hidden: true, "aria-label": label }, el("h2", {}, label), el("div", { class: "plot" }))));
  }
  const range = zoom.begin === null ? "" : `&begin=${zoom.begin}&end=${zoom.end}`;
  for (const card of [...box.children]) {
    const key = card.dataset.curve;
    const found = await Promise.all(runs.map((run) => ask(`/api/curves?name=${encodeURIComponent(run)}&curve=${key}&points=600${range}`).catch(() => null)));
    found.forEach((one, place) => { if (one) { one.label = labels[place]; one.place = place; } });
    if (box.asked !== asked || !box.isConnected) return;
    drawCurve(card, key, found.filter(Boolean), { byNode, again });
  }
}

function drawCurve(card, key, found, { byNode, again }) {
  const plot = card.querySelector(".plot");
  const rows = [];
  let times = [];
  if (byNode) {
    const [only] = found;
    if (only) { times = only.seconds; for (const [node, values] of Object.entries(only.nodes)) rows.push({ label: node, values }); }
  } else {
    // Runs of different length: each on the grid of the longest.
    times = found.reduce((longest, one) => (one.seconds.length && one.seconds.at(-1) > (longest.at(-1) ?? -1) ? one.seconds : longest), []);
    for (const one of found) {
      const nodes = Object.entries(one.nodes).filter(([node]) => node !== "host").map(([, values]) => values);
      if (!nodes.length) continue;
      const mean = key === "celsius" || key === "hertz";
      const sums = one.seconds.map((_, place) => { const there = nodes.map((row) => row[place]).filter((value) => value !== null); return there.length ? there.reduce((a, b) => a + b, 0) / (mean ? there.length : 1) : null; });
      rows.push({ label: one.label ?? one.run, place: one.place, values: onto(times, one.seconds, sums) });
    }
  }
  card.hidden = rows.length === 0;
  drop(plot);
  plot.replaceChildren();
  if (rows.length) lines(plot, { times, rows, unit: CURVES[key][1], zoomed: again, spans: byNode ? Object.entries(found[0].phases).filter(([name]) => !name.includes("/")) : [] });
}

function onto(times, from, values) {
  let place = 0;
  return times.map((at) => {
    while (place + 1 < from.length && Math.abs(from[place + 1] - at) <= Math.abs(from[place] - at)) place += 1;
    return from.length && at <= from.at(-1) + 1 ? values[place] : null;
  });
}

// Runs over each other

export function showOver(main, rest) {
  const names = rest.split(",").filter(Boolean).slice(0, MOST);
  let here = true;
  fill(main, el("p", { class: "small" }, el("a", { href: "#before" }, "All runs")), el("h1", {}, `${count(names.length, "run")} over each other`), el("p", { class: "soft" }, "Reading their samples."));
  Promise.all(names.map((name) => ask(`/api/run?name=${encodeURIComponent(name)}`))).then((runs) => {
    if (!here) return;
    const zoom = { begin: null, end: null };
    const charts = el("div", { class: "charts" });
    const longest = runs.reduce((one, other) => ((other.duration_seconds ?? 0) > (one.duration_seconds ?? 0) ? other : one));
    const again = () => drawCharts(charts, names, zoom, { byNode: false, labels: runs.map((run, place) => `${place + 1}: ${run.title}`), again: (from, to) => main.querySelector("form.part").zoom(from, to) });
    const best = Math.min(...runs.map((run) => run.seconds ?? Infinity));
    fill(main, el("p", { class: "small" }, el("a", { href: "#before" }, "All runs")), el("h1", {}, `${count(runs.length, "run")} over each other`),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The runs" }, el("table", {}, el("thead", {}, el("tr", {}, ["Run", "Time", "To the fastest", "Most of the time was", "Result"].map((label) => el("th", { scope: "col" }, label)))),
        el("tbody", {}, runs.map((run, place) => el("tr", {}, el("th", { scope: "row", class: "wide" }, el("span", { class: `swatch f${LINES[place]}` }), `${place + 1}: `, el("a", { href: `#run/${encodeURIComponent(run.run)}` }, run.title), el("div", { class: "small soft" }, run.run)),
          el("td", {}, seconds(run.seconds)), el("td", {}, run.seconds ? `${(run.seconds / best).toFixed(2)} times` : "–"), el("td", {}, BOUNDS[largest(run.bottleneck?.[0]?.shares)]?.[1] ?? "–"), el("td", {}, mark(run.state, run.verdict))))))),
      el("p", { class: "small soft" }, "Each line is one run: the sum over its nodes; of clock and temperature the mean. Single runs scatter: for a verdict with intervals see the report."),
      part(zoom, { duration_seconds: longest.duration_seconds ?? 0 }, again), charts);
    again();
  }).catch((error) => { if (here) fill(main, failed(error)); });
  return () => { here = false; };
}

function largest(shares) {
  return shares ? Object.entries(shares).sort((a, b) => b[1] - a[1])[0]?.[0] : undefined;
}


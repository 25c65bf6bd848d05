// Start and stop work: a form that shows its plan first. Only with a token.

import { ask, count, el, fill, lasting, say } from "./dom.js";

const KEY = "boardcluster-token";

/** The token comes behind the # of the printed address, which no server ever sees. */
export function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (!found) return false;
  sessionStorage.setItem(KEY, found[1]);
  location.replace("#now");
  return true;
}

const post = (path, document) => ask(path, {
  method: "POST", body: JSON.stringify(document ?? {}),
  headers: { "content-type": "application/json", authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` },
});

export function show(main, about) {
  if (!about.control) {
    fill(main, el("h1", {}, "Start and stop work"), el("div", { class: "card empty" }, el("p", {}, "This dashboard is read-only. To start and stop work from the page, restart it with:"), el("p", {}, el("code", {}, "boardcluster dashboard --control"))));
    return null;
  }
  const again = JSON.parse(sessionStorage.getItem("boardcluster-repeat") ?? "null");
  sessionStorage.removeItem("boardcluster-repeat");
  const text = (label, name, value = "", more = {}) => el("label", { class: "field" }, label, el("input", { name, value, autocomplete: "off", ...more }));
  const workload = el("select", { name: "workload" }, about.workloads.map((row) => el("option", { value: row.name, selected: again?.workload === row.name }, row.name)));
  const engine = el("select", { name: "engine" });
  const parameters = el("div", { class: "row" });
  const out = el("section", { class: "stack", "aria-live": "polite" });
  const settings = again?.settings ?? {};

  function choices() {
    const row = about.workloads.find((one) => one.name === workload.value);
    fill(engine, row.engines.length > 1 ? el("option", { value: "" }, "each of them") : null, row.engines.map((name) => el("option", { value: name, selected: again?.engine === name }, name)));
    fill(parameters, Object.entries(row.parameters).map(([key, value]) => text(key, `parameter ${key}`, again?.parameters?.[`${row.name}.${key}`] ?? again?.parameters?.[key] ?? "", { placeholder: value })));
  }
  workload.addEventListener("change", choices);
  choices();

  const token = text("Token from the terminal", "token", sessionStorage.getItem(KEY) ?? "", { type: "password" });
  token.querySelector("input").addEventListener("input", (event) => sessionStorage.setItem(KEY, event.target.value.trim()));
  const ofWorkload = el("form", { class: "do", on: { submit: (event) => { event.preventDefault(); plan(order(ofWorkload)); } } },
    el("h2", {}, again ? "Repeat a run" : "A workload"),
    again && el("p", { class: "soft" }, "It runs on the cluster as it is now."),
    el("div", { class: "row" }, el("label", { class: "field" }, "Workload", workload), el("label", { class: "field" }, "Engine", engine), text("Size of the input", "size", again?.size ?? "", { placeholder: "256 MB" }), text("Repetitions", "repetitions", again ? "1" : "", { type: "number", min: "1", max: "1000", placeholder: "3" })),
    parameters, el("div", {}, el("button", { class: "main", type: "submit" }, "Show the plan")));
  const ofFile = el("form", { class: "do", on: { submit: (event) => { event.preventDefault(); plan({ file: new FormData(ofFile).get("file").trim() }); } } },
    el("h2", {}, "A campaign file"), text("Its path on the machine of the dashboard", "file", "", { required: true, placeholder: "/home/NAME/campaign.toml" }),
    el("div", {}, el("button", { class: "main", type: "submit" }, "Show the plan")));

  function order(form) {
    const given = new FormData(form);
    const found = { workload: given.get("workload"), engine: given.get("engine") ?? "", size: given.get("size").trim(), repetitions: Number(given.get("repetitions")) || 0, parameters: {}, settings };
    for (const [name, value] of given) if (name.startsWith("parameter ") && value.trim()) found.parameters[name.slice(10)] = value.trim();
    return found;
  }

  async function plan(asked) {
    fill(out, el("p", { class: "soft" }, "Planning. This takes a few seconds."));
    try {
      const found = await post("/api/plan", asked);
      fill(out, el("div", { class: "card" }, el("h2", {}, "The plan"), el("p", {}, `${count(found.runs, "run")}. ${predicted(found.prediction)}`), ...notes(found), el("p", {}, el("code", {}, found.command)),
        el("button", { class: "main", type: "button", on: { click: () => start(asked) } }, "Start")));
      say("The plan is shown");
    } catch (error) { fill(out, el("div", { class: "card" }, el("h2", {}, "This cannot run"), el("p", {}, error.message))); }
  }

  async function start(asked) {
    try {
      await post("/api/start", asked);
      fill(out, el("div", { class: "card" }, el("h2", {}, "Started"), el("p", {}, "It appears under ", el("a", { href: "#now" }, "Now"), " in a few seconds.")));
      follow(out);
    } catch (error) { fill(out, el("div", { class: "card" }, el("h2", {}, "Not started"), el("p", {}, error.message))); }
  }

  async function stop() {
    try {
      const found = await post("/api/stop");
      fill(out, el("div", { class: "card" }, el("h2", {}, "Stopping"), el("p", {}, `boardcluster ${found.stopping} ends its job and says so under Now.`)));
    } catch (error) { fill(out, el("div", { class: "card" }, el("h2", {}, "Nothing was stopped"), el("p", {}, error.message))); }
  }

  fill(main, el("h1", {}, "Start and stop work"), el("div", { class: "columns" },
    el("div", { class: "stack" }, el("div", { class: "card" }, ofWorkload), el("div", { class: "card" }, ofFile)),
    el("div", { class: "stack" }, el("div", { class: "card" }, el("h2", {}, "What runs now"), el("p", { class: "soft" }, "It is ended as Ctrl-C in its terminal would end it. Its results up to now stay, and a campaign can be continued."), el("button", { class: "plain", type: "button", on: { click: stop } }, "Stop what runs")),
      el("form", { class: "card do", on: { submit: (event) => event.preventDefault() } }, token, el("p", { class: "soft" }, "Needed to start and stop work. The address that the terminal shows fills it in.")), out)));
  return null;
}

/** Say how it ends if that is an error, however late: a cluster may take minutes to come up. */
async function follow(out) {
  const started = out.firstChild;
  for (let tries = 0; ; tries += 1) {
    await new Promise((done) => setTimeout(done, tries < 20 ? 1500 : 10000));
    if (out.firstChild !== started || !out.isConnected) return;
    const found = await ask("/api/outcome").catch(() => null);
    if (found?.status === 0) return;
    if (found && found.status) {
      fill(out, el("div", { class: "card" }, el("h2", {}, "It ended with an error"), el("p", {}, found.words)));
      return;
    }
  }
}

function predicted(found) {
  if (!found || !found.known_runs) return "How long it takes cannot be predicted yet: nothing like it has been measured.";
  const { median, interval } = found.seconds;
  const slower = found.dilation === null ? ", in the boards' time; how much longer this machine takes is known once the cluster is up" : found.dilation > 1 ? `, in the boards' time; this machine takes ${found.dilation.toPrecision(3)} times as long, about ${lasting(median * found.dilation)}` : "";
  const words = `It takes about ${lasting(median)} of measured time, likely ${lasting(interval.low)} to ${lasting(interval.high)}${slower}`;
  return found.unknown.length ? `${words}, and the time of what is not known: ${found.unknown[0]}.` : `${words}.`;
}

function notes(found) {
  const rows = [...(found.outlook?.problems ?? []), ...(found.outlook?.notes ?? [])];
  return rows.length ? [el("ul", { class: "small" }, rows.map((line) => el("li", {}, typeof line === "string" ? line : (line.message ?? line.words ?? JSON.stringify(line)))))] : [];
}

/** A button that fills the form with what a run was. */
export function repeatButton(run) {
  return el("button", { class: "plain", type: "button", on: { click: () => { sessionStorage.setItem("boardcluster-repeat", JSON.stringify(run.repeat)); location.hash = "#do"; } } }, "Repeat this run");
}

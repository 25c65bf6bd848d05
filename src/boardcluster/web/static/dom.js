// Elements and words. Text of others only ever becomes text: nothing here takes markup.

/** Make an element: names of attributes and properties, then children; null children are left out. */
export function el(name, given = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") made.className = value;
    else if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (key === "css") for (const [rule, to] of Object.entries(value)) made.style.setProperty(rule, to);
    else if (key in made && typeof value !== "string") made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Replace what an element holds; children that are null are left out. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
}

/** Set an element's text only if it differs, so that nothing is drawn or read aloud twice. */
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const say = (text) => put(document.getElementById("spoken"), text);

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);
const digits = (value) => (Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);

function scaled(value, units, step) {
  let place = 0;
  while (Math.abs(value) >= step * 0.9995 && place < units.length - 1) { value /= step; place += 1; }
  return `${place === 0 ? Math.round(value) : value.toFixed(digits(value))} ${units[place]}`;
}

export const bytes = (value) => (known(value) ? scaled(value, ["B", "kB", "MB", "GB", "TB"], 1000) : "–");
export const rate = (value) => (known(value) ? `${bytes(value)}/s` : "–");
export const clock = (value) => (known(value) ? `${(value / 1e9).toFixed(2)} GHz` : "–");
export const celsius = (value) => (known(value) ? `${value.toFixed(0)} °C` : "–");
export const watts = (value) => (known(value) ? `${value.toFixed(1)} W` : "–");
export const share = (value) => (known(value) ? `${Math.round(value * 100)} %` : "–");
export const cores = (value) => (known(value) ? value.toFixed(value < 10 ? 2 : 1) : "–");
export const seconds = (value) => (known(value) ? `${value.toFixed(value < 100 ? 1 : 0)} s` : "–");
export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

/** A time as people say it: "40 s", "3 min 20 s", "2 h 5 min". */
export function lasting(value) {
  if (!known(value)) return "–";
  const all = Math.max(0, Math.round(value));
  if (all < 100) return `${all} s`;
  if (all < 3600) return `${Math.floor(all / 60)} min ${all % 60} s`;
  return `${Math.floor(all / 3600)} h ${Math.floor((all % 3600) / 60)} min`;
}

/** A stored moment in this browser's time. */
export function moment(utc) {
  const at = new Date(utc);
  return Number.isNaN(at.getTime()) ? "" : at.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

const VERDICTS = { valid: ["good", "valid"], tainted: ["warn", "disturbed"], invalid: ["bad", "not trusted"], unjudged: ["", "not judged"] };
const STATES = { ok: ["good", "ok"], failed: ["bad", "failed"], invalid: ["bad", "invalid"], running: ["", "running"], pending: ["", "to come"] };

/** What a run came to, as a small mark: its verdict if it was measured, else its state. */
export function mark(state, verdict) {
  const [look, words] = (state === "ok" && VERDICTS[verdict]) || STATES[state] || ["", state];
  return el("span", { class: `pill ${look}` }, words);
}

export const BOUNDS = {
  cpu: ["f0", "computing"], storage: ["f2", "waiting for storage"], network: ["f4", "waiting for the network"],
  memory: ["f5", "waiting for memory"], "start-up": ["f6", "waiting for one another"], heat: ["f3", "clock lowered by heat"],
};

/** Shares of time as one bar with a legend; shares below a hundredth are left out. */
export function sharesBar(shares, what) {
  const rows = Object.entries(shares).filter(([, part]) => part >= 0.01).sort((a, b) => b[1] - a[1]);
  const words = rows.map(([bound, part]) => `${BOUNDS[bound]?.[1] ?? bound} ${share(part)}`);
  return [
    el("div", { class: "bar thick", role: "img", "aria-label": `${what}: ${words.join(", ")}` },
      rows.map(([bound, part]) => el("i", { class: BOUNDS[bound]?.[0] ?? "f6", css: { width: `${part * 100}%` } }))),
    el("ul", { class: "legend" }, rows.map(([bound, part]) => el("li", {},
      el("span", { class: `swatch ${BOUNDS[bound]?.[0] ?? "f6"}` }), BOUNDS[bound]?.[1] ?? bound, " ", el("b", {}, share(part))))),
  ];
}

/** Ask the server; what it refuses becomes an error with its words. */
export async function ask(path, options = {}) {
  let answer;
  try { answer = await fetch(path, options); } catch { throw new Error("The dashboard does not answer. Is it still running in the terminal?"); }
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error([found.error, found.hint].filter(Boolean).join(": ") || `The dashboard answered ${answer.status}.`);
  return found;
}

export const failed = (error) => el("div", { class: "card empty" }, el("h2", {}, "This cannot be shown"), el("p", {}, error.message));

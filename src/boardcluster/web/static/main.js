// The page: which part is shown, and the stream of what happens.

import { ask, failed, put, say } from "./dom.js";
import { dropAll } from "./draw.js";
import * as now from "./now.js";
import * as before from "./before.js";
import * as work from "./work.js";

const main = document.getElementById("main");
const link = document.getElementById("link");
const SILENT = 6000;
const AGAIN = 1500;
let leave = null;
let about = { control: false, workloads: [] };
let source = null;
let heard = 0;
let stored = "";
let lost = false;
put(link, "connecting");  // not in the page itself: without JavaScript nothing does

function pageOf(hash) {
  const [name, ...rest] = hash.replace(/^#/, "").split("/");
  return [name || "now", rest.join("/")];
}

function route({ focus = true } = {}) {
  if (work.takeToken()) return;
  const [name, rest] = pageOf(location.hash);
  if (name === "main") return;
  leave?.();
  leave = null;
  dropAll();
  for (const entry of document.querySelectorAll("nav a[data-page]")) {
    const here = entry.dataset.page === name || (entry.dataset.page === "before" && ["run", "over"].includes(name));
    if (here) entry.setAttribute("aria-current", "page"); else entry.removeAttribute("aria-current");
  }
  const pages = { now: now.show, before: before.showTable, run: before.showRun, over: before.showOver, do: work.show };
  try {
    leave = (pages[name] ?? now.show)(main, name === "do" ? about : decodeURIComponent(rest)) ?? null;
  } catch (error) { main.replaceChildren(failed(error)); }
  document.title = { now: "Now", before: "Before", run: "A run", over: "Runs compared", do: "Do" }[name] + " – boardcluster";
  if (focus) main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function connected(yes) {
  link.classList.toggle("live", yes);
  link.classList.toggle("lost", !yes);
  put(link, yes ? "live" : "The dashboard does not answer; trying again");
  if (lost === yes) { lost = !yes; say(yes ? "live again" : "The dashboard does not answer"); }
}

function listen() {
  source?.close();
  source = new EventSource("/events");
  heard = Date.now();
  const on = (name, take) => source.addEventListener(name, (event) => { heard = Date.now(); if (!link.classList.contains("live")) connected(true); take(JSON.parse(event.data)); });
  const noted = (found) => {
    const told = JSON.stringify([found?.campaign, found?.planned, found?.latest, found?.now?.run]);
    if (told !== stored) { stored = told; before.changed(); }  // not each time that less is left
  };
  // What ended while nobody listened is said by the first event alone.
  on("hello", (found) => { now.takeHello(found); head(found.state); noted(found.campaign); });
  on("nodes", now.takeNow);
  on("state", (found) => { now.takeState(found); head(found); });
  on("campaign", (found) => { now.takeCampaign(found); noted(found); });
  on("job", now.takeJob);
}

function head(state) {
  put(document.getElementById("cluster"), state.cluster || "boardcluster");
  const phase = document.getElementById("phase");
  put(phase, state.phase === "down" && !state.cluster ? "store only" : state.phase);
  phase.className = `pill ${{ up: "good", dead: "bad" }[state.phase] ?? ""}`;
  phase.hidden = false;
}

// A stream that says nothing for long is opened anew: the server may have ended and begun again.
setInterval(() => {
  if (document.hidden && source === null) return;
  const silent = Date.now() - heard;
  if (silent > SILENT || source?.readyState === EventSource.CLOSED) {
    if (silent > AGAIN) { connected(false); listen(); }
  }
  now.tick();
}, 1000);

// A page that nobody sees asks for nothing, so that a run is left alone.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { source?.close(); source = null; } else listen();
});

addEventListener("hashchange", () => route());
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
work.takeToken();
listen();
route({ focus: false });
ask("/api/about").then((found) => {
  about = found;
  document.querySelector('nav a[data-page="do"]').hidden = !found.control;
  if (location.hash === "#do") route();
}).catch(() => {});

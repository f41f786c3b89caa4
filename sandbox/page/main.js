// The page: who looks, where, and what is shown.

import { fillComposer, startComposer } from "./composer.js";
import { byId, el } from "./dom.js";
import { startGuide } from "./guide.js";
import { showMessages, stayAtEnd } from "./log.js";
import { showModal } from "./modal.js";
import { get, listen, post } from "./net.js";
import { servicesPanel } from "./panel.js";
import { openSide, showSide, startSide } from "./side.js";
import { markNew, markRead, self, store, topLevel } from "./store.js";
import { threadPanel } from "./thread.js";

const ABOUT = {
  C0GENERAL: "Everyone is here. Commands are answered to you alone.",
  C0APPROVALS: "Private. Requests to change test users wait here.",
  C0ALERTS: "Blocks by the inventory service open and clear here.",
};

let beside = null; // the open panel: "thread" or "services"
let looking = null;

/** Look at the state again; questions asked meanwhile are asked once more, together. */
async function refresh() {
  if (looking) {
    looking.again = true;
    return looking.done;
  }
  const look = (looking = {});
  look.done = (async () => {
    do {
      look.again = false;
      const asked = store.me;
      const screen = await get(`/page/state?as=${asked}`);
      if (asked === store.me) show(screen);
      else look.again = true;
    } while (look.again);
  })().finally(() => (looking = null));
  return look.done;
}

function show(screen) {
  store.screen = screen;
  const channel = screen.channels.find((one) => one.id === store.channel) ?? screen.channels[0];
  if (channel.id !== store.channel) return go(channel.id);
  const log = byId("log");
  const name = channel.kind === "direct" ? channel.name : `#${channel.name}`;
  byId("where").textContent = name;
  byId("about").textContent = ABOUT[channel.id] ?? `What the bot tells ${self().name} directly.`;
  document.title = `${name} · Gatehouse sandbox`;
  log.setAttribute("aria-label", name);
  log.dataset.channel = `${store.me} ${channel.id}`;
  showMessages(log, topLevel(channel.id), openThread);
  if (!document.hidden) markRead(channel.id);
  showSide();
  showTrouble();
  if (beside?.kind === "thread") beside.node.refresh();
  showModal(screen.views.at(-1));
}

/** Go to a channel. */
function go(channel) {
  store.channel = channel;
  markNew(channel);
  if (location.hash.slice(1) !== channel) history.replaceState(null, "", `#${channel}`);
  if (beside?.kind === "thread" && store.thread.channel !== channel) closeBeside();
  openSide(false);
  if (store.screen.channels.length) show(store.screen);
}

/** Act as another person. */
async function become(person) {
  store.me = person;
  store.newSince = null;
  sessionStorage.setItem("acting", person);
  if (beside?.kind === "thread") closeBeside();
  await refresh();
}

function openThread(message) {
  store.thread = { channel: message.channel, ts: message.ts };
  openBeside("thread", threadPanel(closeBeside));
  beside.node.refresh();
  beside.node.querySelector("textarea").focus();
}

function openBeside(kind, node) {
  closeBeside();
  beside = { kind, node, back: document.activeElement };
  byId("beside").replaceChildren(node);
  document.body.classList.add("with-beside");
  byId("services").setAttribute("aria-expanded", String(kind === "services"));
}

function closeBeside() {
  if (!beside) return;
  beside.node.stop?.();
  beside.node.remove();
  document.body.classList.remove("with-beside");
  byId("services").setAttribute("aria-expanded", "false");
  if (beside.back?.isConnected) beside.back.focus();
  beside = null;
}

async function openServices() {
  const node = servicesPanel(closeBeside);
  openBeside("services", node);
  await node.ready;
  return node;
}

/** One step of the guided first minute. */
async function take(step) {
  if (step.as !== store.me) await become(step.as);
  go(step.channel);
  let text = step.text;
  if (step.services) {
    const node = beside?.kind === "services" ? beside.node : await openServices();
    text += node.querySelector("select").value.split(" ")[1];
  } else if (beside) closeBeside();
  fillComposer(text);
}

let isLost = false;

function lost(gone) {
  isLost = gone;
  showTrouble();
  if (!gone) refresh();
}

/** Say it when the sandbox or the bot does not run. */
function showTrouble() {
  const place = byId("trouble");
  const kind = isLost ? "lost" : store.screen.bot === "stopped" ? "stopped" : "";
  if (place.dataset.kind === kind) return;
  place.dataset.kind = kind;
  place.hidden = !kind;
  if (kind === "lost") place.replaceChildren("The sandbox does not answer. Is it still running?");
  if (kind !== "stopped") return;
  const again = () => post("/page/restart", {});
  const button = el("button", { type: "button", class: "action", onclick: again, text: "Start it again" });
  place.replaceChildren("The bot has stopped. Its last words stand where you started the sandbox.", button);
}

async function start() {
  Object.assign(store, await get("/page/welcome"));
  const before = sessionStorage.getItem("acting");
  store.me = store.people.some((one) => one.id === before) ? before : store.people[0].id;
  if (location.hash) store.channel = location.hash.slice(1);
  startSide(become);
  startComposer();
  stayAtEnd(byId("log"));
  startGuide(take);
  byId("services").addEventListener("click", () => (beside?.kind === "services" ? closeBeside() : openServices()));
  addEventListener("hashchange", () => go(location.hash.slice(1) || "C0GENERAL"));
  document.addEventListener("visibilitychange", () => !document.hidden && refresh());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (document.body.classList.contains("side-open")) openSide(false);
    else if (beside && byId("beside").contains(document.activeElement)) closeBeside();
  });
  await refresh();
  listen(refresh, lost);
  byId("message").focus();
}

start();

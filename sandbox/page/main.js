// The page: the acting person, the open channel, and the parts of the screen.

import { invite, say, startComposer } from "./composer.js";
import { byId, el } from "./dom.js";
import { showGuide, startGuide } from "./guide.js";
import { HOME, openHome, showHome } from "./home.js";
import { showMessages, stayAtEnd } from "./log.js";
import { showModal } from "./modal.js";
import { get, listen, post } from "./net.js";
import { servicesPanel } from "./panel.js";
import { openSide, showSide, startSide } from "./side.js";
import { markNew, markRead, store, topLevel } from "./store.js";
import { threadPanel } from "./thread.js";

const ABOUT = {
  C0GENERAL: "Everyone is in here. Only you see the replies to your commands.",
  C0APPROVALS: "Private. Requests wait here for approval.",
  C0ALERTS: "Alerts appear here when the inventory service blocks an organization.",
  [HOME]: "The Home tab of Gatehouse: what waits for you, your requests, and limits.",
};
const DIRECT = "Your direct messages with Gatehouse.";

let beside = null; // the open panel: "thread" or "services"
let looking = null;

/** Load the state again. Calls during a load cause one more load. */
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
  const isBack = store.screen.bot !== "ready" && screen.bot === "ready";
  store.screen = screen;
  const isHome = store.channel === HOME;
  const channel = screen.channels.find((one) => one.id === store.channel) ?? screen.channels[0];
  if (!isHome && channel.id !== store.channel) return go(channel.id);
  for (const id of ["log", "composer"]) byId(id).hidden = isHome;
  byId(HOME).hidden = !isHome;
  if (isHome) {
    title("Home", HOME);
    showHome(screen.home);
    // Slack retries much later if the bot was stopped, so open the Home tab again now.
    if (isBack) openHome();
  } else showChannel(channel);
  showGuide();
  showSide();
  showTrouble();
  if (beside?.kind === "thread") beside.node.refresh();
  showModal(screen.modal);
}

function showChannel(channel) {
  const log = byId("log");
  const isDirect = channel.kind === "direct";
  title(isDirect ? channel.name : `#${channel.name}`, channel.id);
  invite(isDirect);
  log.setAttribute("aria-label", byId("where").textContent);
  log.dataset.channel = `${store.me} ${channel.id}`;
  showMessages(log, topLevel(channel.id), openThread);
  if (!document.hidden) markRead(channel.id);
}

function title(name, place) {
  byId("where").textContent = name;
  byId("about").textContent = ABOUT[place] ?? DIRECT;
  document.title = `${name} · Gatehouse sandbox`;
}

/** Go to a channel, or to the Home tab. */
function go(channel) {
  store.channel = channel;
  markNew(channel);
  if (channel === HOME) openHome();
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
  if (store.channel === HOME) openHome();
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

/** Carry out one of the first steps: go to its channel as its person, and send its text. */
async function take(step) {
  if (step.as !== store.me) await become(step.as);
  go(step.channel);
  if (step.blocks) await say(step.text + (await blockThird()));
  else if (step.text) await say(step.text);
  if (!step.blocks && beside) closeBeside();
}

/**
 * Block an organization that the greedy scripts don't call unless somebody chooses it. If there is
 * room, open the panel, which can unblock it.
 */
async function blockThird() {
  const { organizations } = await get("/page/services");
  const { data_center, organization_id } = organizations[2];
  await post("/page/panel/block", { data_center, organization_id, code: 1070 });
  const hasRoom = matchMedia("(min-width: 1021px)").matches;
  if (beside?.kind !== "services" && hasRoom) await openServices();
  return organization_id;
}

let isLost = false;

function lost(gone) {
  isLost = gone;
  showTrouble();
  if (!gone) refresh();
}

const TROUBLE = {
  lost: "The sandbox doesn’t answer. Is it still running?",
  starting: "Gatehouse is restarting. What you send now is delivered as soon as it is ready.",
  stopped: "Gatehouse has stopped. See the terminal for its log.",
};

/** Show a notice while the sandbox or the bot isn't running. */
function showTrouble() {
  const place = byId("trouble");
  const kind = isLost ? "lost" : store.screen.bot;
  if (place.dataset.kind === kind) return;
  place.dataset.kind = kind;
  place.hidden = !(kind in TROUBLE);
  if (place.hidden) return;
  place.replaceChildren(TROUBLE[kind]);
  if (kind === "stopped") place.append(startButton());
}

function startButton() {
  const start = () => post("/page/restart", {});
  return el("button", { type: "button", class: "action", onclick: start, text: "Start it" });
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
  byId("services").addEventListener("click", () =>
    beside?.kind === "services" ? closeBeside() : openServices(),
  );
  byId("scrim").addEventListener("click", () =>
    document.body.classList.contains("side-open") ? openSide(false) : closeBeside(),
  );
  addEventListener("hashchange", () => go(location.hash.slice(1) || "C0GENERAL"));
  document.addEventListener("visibilitychange", () => !document.hidden && refresh());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]"))
      return;
    if (document.body.classList.contains("side-open")) openSide(false);
    else if (beside && document.activeElement !== byId("message")) closeBeside();
  });
  if (store.channel === HOME) openHome();
  await refresh();
  listen(refresh, lost);
  byId("message").focus();
}

start();

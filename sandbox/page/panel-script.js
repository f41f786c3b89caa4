// A section of the panel: a greedy script, with and without the gateway.

import { el, freshId } from "./dom.js";
import { options, organizationOptions } from "./panel-options.js";

const ABOUT = "It calls one organization as often as it can for 30 seconds.";
const OTHER_API = ["api weather", "weather (another API, 30 calls a minute)"];
const WAYS = [
  [
    "directly",
    "Run directly",
    "Directly, with the inventory service’s own token. It never pauses. Meanwhile, type " +
      "/ratelimits check and the organization’s ID: Gatehouse finds the block and posts an alert.",
  ],
  [
    "gateway",
    "Run through the gateway",
    "Through the gateway, as its client “script”. Each call waits for its turn. It gets 80 of " +
      "100 calls a minute; a fifth is kept for people. See /ratelimits and the organization’s ID. " +
      "Of another API, it gets every call: see /ratelimits weather.",
  ],
];

/** The section; `act(name, body)` presses a button of the panel. */
export function greedyScript(act) {
  const runs = WAYS.map((way, at) => run(way, at, act));
  const section = el(
    "section",
    {},
    el("h3", { text: "Run a greedy script" }),
    el("p", { class: "note", text: ABOUT }),
    runs,
  );
  section.show = (state) => runs.forEach((node) => node.show(state));
  return section;
}

function run([through, title, about], at, act) {
  const where = el("select", { id: freshId("panel") });
  const results = el("dl", { class: "got", "aria-label": `Results: ${title}` });
  const last = el("p", { class: "note" });
  let isRunning = false;
  const press = () => {
    if (isRunning) return act("greedy", { through });
    const [data_center, organization_id] = where.value.split(" ");
    return act("greedy", { through, data_center, organization_id });
  };
  const button = el("button", { type: "button", class: "action", onclick: press, text: title });
  const node = el(
    "div",
    { class: "way", role: "group", "aria-label": title },
    el("p", { class: "note", text: about }),
    el("label", { for: where.id, text: "Organization" }),
    where,
    el("div", { class: "actions" }, button),
    results,
    last,
  );
  node.show = ({ organizations, greedy }) => {
    if (!where.options.length) {
      where.append(...organizationOptions(organizations), ...options([OTHER_API]));
      // The two scripts call different organizations, because a direct run blocks its organization.
      where.selectedIndex = at;
    }
    const shown = greedy[through];
    isRunning = Boolean(shown?.running);
    button.textContent = isRunning ? "Stop" : title;
    if (shown) show(results, last, shown);
  };
  return node;
}

function show(results, last, shown) {
  const now = JSON.stringify(shown);
  if (results.dataset.now === now) return;
  results.dataset.now = now;
  results.replaceChildren(
    ...entry("Sent", shown.sent),
    ...entry("Passed", shown.passed),
    ...(shown.through === "gateway" ? entry("Waiting", shown.waiting) : []),
    ...entry("Refused by the service", counted(shown.refused), total(shown.refused) > 0),
    ...entry("Declined by Gatehouse", counted(shown.declined)),
    ...(shown.failed ? entry("Failed", shown.failed, true) : []),
  );
  last.textContent = shown.last;
}

const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

/** A number and, in brackets, its parts: `12 (code 44: 12)`. */
function counted(counts) {
  if (!total(counts)) return "0";
  const named = (kind) => (/^\d+$/.test(kind) ? `code ${kind}` : kind);
  const parts = Object.entries(counts).map(([kind, count]) => `${named(kind)}: ${count}`);
  return `${total(counts)} (${parts.join(", ")})`;
}

const entry = (name, value, isBad) => [
  el("dt", { text: name }),
  el("dd", { class: isBad ? "bad" : null, text: String(value) }),
];

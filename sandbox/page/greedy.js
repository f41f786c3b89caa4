// The greedy script: one of the team's programs, with and without the gateway.

import { el, freshId } from "./dom.js";
import { post } from "./net.js";

const WAYS = [
  ["directly", "Run directly", "With the inventory’s own token and no manners."],
  [
    "gateway",
    "Run through the gateway",
    "As the client “script”: Gatehouse tells it when to wait.",
  ],
];

/** A part of the panel: the script each way, and what it got. */
export function greedyScript() {
  const ways = WAYS.map((way, at) => wayOf(way, at));
  const note = el("p", {
    class: "note",
    text: "It calls one organization as often as it can for 30 seconds. See /ratelimits afterwards.",
  });
  const part = el(
    "section",
    {},
    el("h3", { text: "Run a greedy script" }),
    note,
    ways.map((way) => way.node),
  );
  part.wire = (after) =>
    ways.forEach((way) => (way.change = after((name, body) => post(`/page/${name}`, body))));
  part.show = (state) => ways.forEach((way) => way.show(state));
  return part;
}

function wayOf([through, title, about], at) {
  const where = el("select", { id: freshId("panel") });
  const status = el("dl", { class: "got", "aria-label": `What it got: ${title}` });
  const said = el("p", { class: "note" });
  const way = { running: false };
  const press = () => {
    if (way.running) return way.change("greedy", { through });
    const [data_center, organization_id] = where.value.split(" ");
    return way.change("greedy", { through, data_center, organization_id });
  };
  const button = el("button", { type: "button", class: "action", onclick: press, text: title });
  way.node = el(
    "div",
    { class: "way", role: "group", "aria-label": title },
    el("p", { class: "note", text: about }),
    el("label", { for: where.id, text: "Organization" }),
    where,
    el("div", { class: "actions" }, button),
    status,
    said,
  );
  way.show = ({ data_centers, greedy }) => {
    if (!where.options.length) {
      where.append(...data_centers.flatMap(options));
      // Each way begins with an organization of its own: the first one is blocked after a direct run.
      where.selectedIndex = at;
    }
    const run = greedy[through];
    way.running = Boolean(run?.running);
    button.textContent = way.running ? "Stop" : title;
    if (run) tell(status, said, run);
  };
  return way;
}

const options = ({ data_center, organizations }) =>
  organizations.map((one) =>
    el("option", {
      value: `${data_center} ${one.organization_id}`,
      text: `${one.name} (${data_center})`,
    }),
  );

function tell(status, said, run) {
  const now = JSON.stringify(run);
  if (status.dataset.now === now) return;
  status.dataset.now = now;
  status.replaceChildren(
    ...entry("Sent", run.sent),
    ...entry("Passed", run.passed),
    ...entry("Refused by the service", kinds(run.refused), total(run.refused) > 0),
    ...entry("Declined by Gatehouse", kinds(run.declined)),
    ...(run.failed ? entry("Failed", run.failed, true) : []),
  );
  said.textContent = run.last;
}

const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

const kinds = (counts) =>
  total(counts)
    ? `${total(counts)} (${Object.entries(counts)
        .map(([kind, count]) => `${kind}: ${count}`)
        .join(", ")})`
    : "0";

const entry = (name, value, isBad) => [
  el("dt", { text: name }),
  el("dd", { class: isBad ? "bad" : null, text: String(value) }),
];

// The services panel: it breaks the services and Slack, and shows the calls they received.

import { el } from "./dom.js";
import { get, post } from "./net.js";
import { blocks } from "./panel-blocks.js";
import { calls } from "./panel-calls.js";
import { lists } from "./panel-lists.js";
import { outages } from "./panel-outages.js";
import { program } from "./panel-program.js";
import { restart } from "./panel-restart.js";
import { greedyScript } from "./panel-script.js";
import { slack } from "./panel-slack.js";

const EVERY_MS = 1500;

/**
 * Make the panel; `close()` hides it. Each section has a `show(state)`, if it shows anything, and
 * `act(name, body)` presses one of the panel's buttons. `ready` resolves once the panel is filled,
 * and `stop()` ends its updates.
 */
export function servicesPanel(close) {
  const act = async (name, body) => {
    await post(`/page/panel/${name}`, body);
    await look();
  };
  const sections = [
    blocks(act),
    greedyScript(act),
    program(act),
    outages(act),
    lists(act),
    slack(act),
    restart(),
    // Last, because it grows while somebody presses a button.
    calls(),
  ];
  const look = async () => {
    const state = await get("/page/services");
    for (const section of sections) section.show?.(state);
  };
  const node = el(
    "aside",
    { class: "beside", "aria-label": "Services" },
    head(close),
    el("div", { class: "panel", tabindex: "0", role: "group", "aria-label": "Simulate" }, sections),
  );
  const timer = setInterval(() => look().catch(() => {}), EVERY_MS);
  node.stop = () => clearInterval(timer);
  node.refresh = () => {};
  node.ready = look();
  return node;
}

function head(close) {
  const button = { type: "button", class: "icon", "aria-label": "Close the services" };
  return el(
    "header",
    { class: "beside-head" },
    el("h2", { text: "Services" }),
    el("button", { ...button, onclick: close, text: "✕" }),
  );
}

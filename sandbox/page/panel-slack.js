// A section of the panel: make the bot's next post fail.

import { el, freshId } from "./dom.js";
import { options } from "./panel-options.js";

const FAILURES = [
  ["ratelimit", "429, try again in 2 s"],
  ["status", "server error (500), twice"],
  ["cut", "no reply (posted, then connection lost)"],
];

/** The section; `act(name, body)` presses a button of the panel. */
export function slack(act) {
  const kind = el("select", { id: freshId("panel") }, options(FAILURES));
  const set = () => act("slack", { kind: kind.value });
  return el(
    "section",
    {},
    el("h3", { text: "Break Slack" }),
    el("label", { for: kind.id, text: "When Gatehouse posts next, Slack answers" }),
    kind,
    el(
      "div",
      { class: "actions" },
      el("button", { type: "button", class: "action", onclick: set, text: "Set" }),
    ),
  );
}

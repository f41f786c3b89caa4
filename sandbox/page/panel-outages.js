// A section of the panel: break a data center, the flow service or the email service.

import { el, freshId } from "./dom.js";
import { options } from "./panel-options.js";

const OUTAGES = [
  ["", "works"],
  ["503", "answers 503"],
  ["401", "answers 401"],
  ["slow", "slow (+4 s)"],
  ["reset", "drops connections"],
];

/** The section; `act(name, body)` presses a button of the panel. */
export function outages(act) {
  const rows = el("div", { class: "outages" });
  const section = el("section", {}, el("h3", { text: "Break a service" }), rows);
  section.show = (state) => {
    if (!rows.children.length) rows.append(...state.outages.map((outage) => row(outage, act)));
    rows.querySelectorAll("select").forEach((select, at) => {
      const { kind } = state.outages[at];
      if (document.activeElement !== select) select.value = kind ?? "";
      select.classList.toggle("troubled", Boolean(kind));
    });
  };
  return section;
}

function row({ service, data_center }, act) {
  const id = freshId("panel");
  const change = (event) => act("outage", { service, data_center, kind: event.target.value });
  return el(
    "div",
    {},
    el("label", { for: id, text: data_center ? `${service} ${data_center}` : service }),
    el("select", { id, onchange: change }, options(OUTAGES)),
  );
}

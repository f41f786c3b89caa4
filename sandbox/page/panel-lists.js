// A section of the panel: edit a flow's list without Gatehouse.

import { el, freshId } from "./dom.js";

/** The section; `act(name, body)` presses a button of the panel. */
export function lists(act) {
  const editors = new Map();
  const section = el("section", {}, el("h3", { text: "Edit a list behind Gatehouse’s back" }));
  section.show = ({ flows }) => {
    for (const flow of flows) {
      if (!editors.has(flow.sid)) {
        editors.set(flow.sid, editor(flow, act));
        section.append(editors.get(flow.sid));
      }
      editors.get(flow.sid).show(flow.identities.join("\n"));
    }
  };
  return section;
}

function editor({ sid, alias }, act) {
  const id = freshId("panel");
  const area = el("textarea", { id, rows: 3, spellcheck: "false" });
  const save = () => {
    const lines = area.value.split("\n").map((line) => line.trim());
    return act("list", { sid, identities: lines.filter(Boolean) });
  };
  const button = { type: "button", class: "action", "aria-label": `Save ${alias}` };
  const node = el(
    "div",
    { class: "flow" },
    el("label", { for: id, text: `Test users of ${alias}, one per line` }),
    area,
    el("button", { ...button, onclick: save, text: "Save" }),
  );
  let shown = null;
  // Unsaved text stays until the list itself changes.
  node.show = (text) => {
    if (text === shown) return;
    shown = text;
    area.value = text;
  };
  return node;
}

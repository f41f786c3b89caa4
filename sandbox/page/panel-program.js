// A section of the panel: a program that asks for a change to test users.

import { el, freshId } from "./dom.js";

const ABOUT =
  "The gateway’s client “script” sends this text in Otto’s name, and a person decides. The same " +
  "text twice is the same request, with one card.";
const TEXT = "add welcome +15550142 for 2h because OPS-7";

/** The section; `act(name, body)` presses a button of the panel. */
export function program(act) {
  const text = el("textarea", { id: freshId("panel"), rows: 2, spellcheck: "false", text: TEXT });
  const answer = el("p", { class: "note", role: "status" });
  const ask = () => act("ask", { text: text.value });
  const section = el(
    "section",
    {},
    el("h3", { text: "Ask as a program" }),
    el("p", { class: "note", text: ABOUT }),
    el("label", { for: text.id, text: "Text after /testusers" }),
    text,
    el(
      "div",
      { class: "actions" },
      el("button", { type: "button", class: "action", onclick: ask, text: "Ask" }),
    ),
    answer,
  );
  section.show = (state) => {
    if (answer.textContent !== state.answer) answer.textContent = state.answer;
  };
  return section;
}

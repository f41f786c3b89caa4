// Block Kit blocks as elements of the page.

import { chart } from "./chart.js";
import { el } from "./dom.js";
import { control } from "./controls.js";
import { inputBlock } from "./inputs.js";
import { textObject } from "./markup.js";
import { table } from "./tables.js";

// Slack doesn't document the length at which its clients fold text. This is an estimate.
const LONG_CHARACTERS = 700;
const LONG_LINES = 10;

const RENDER = {
  section,
  header: (block) => el("h2", { class: "block-header" }, textObject(block.text)),
  context: (block) => el("div", { class: "context" }, block.elements.map(small)),
  divider: () => el("hr"),
  actions: (block, place) =>
    el(
      "div",
      { class: "actions" },
      block.elements.map((one) => control(one, block, place)),
    ),
  table,
  data_visualization: chart,
  input: inputBlock,
};

/** All blocks of a message or a modal. `place` identifies the message or modal for clicks. */
export function blocks(list, place) {
  return list.map((block) => {
    const node = (RENDER[block.type] ?? unknown)(block, place);
    node.dataset.block = block.block_id ?? "";
    return node;
  });
}

function section(block, place) {
  const text = block.text ? folded(block, place) : null;
  const fields = block.fields
    ? el(
        "div",
        { class: "fields" },
        block.fields.map((field) => el("div", {}, textObject(field))),
      )
    : null;
  const beside = block.accessory
    ? el("div", { class: "accessory" }, control(block.accessory, block, place))
    : null;
  return el(
    "div",
    { class: beside ? "section with-accessory" : "section" },
    el("div", {}, text, fields),
    beside,
  );
}

/** The text of a section. Long text without `expand` is folded, as in Slack. */
function folded(block, place) {
  const node = el("div", { class: "section-text" }, textObject(block.text));
  const { text } = block.text;
  const isLong = text.length > LONG_CHARACTERS || text.split("\n").length > LONG_LINES;
  if (block.expand || !place.folds || !isLong) return node;
  node.classList.add("folded");
  const open = () => {
    node.classList.remove("folded");
    more.remove();
  };
  const more = el("button", {
    type: "button",
    class: "quiet see-more",
    onclick: open,
    text: "See more",
  });
  return el("div", {}, node, more);
}

function small(element) {
  return el("span", {}, textObject(element));
}

const unknown = (block) => el("p", { class: "context", text: `[${block.type}]` });

// Block Kit blocks as elements of the page.

import { chart } from "./chart.js";
import { el } from "./dom.js";
import { control } from "./controls.js";
import { inputBlock } from "./inputs.js";
import { picture, richText, textObject } from "./markup.js";
import { dataTable, table } from "./tables.js";

// Slack does not say what is long; this is about where its clients fold.
const LONG_CHARACTERS = 700;
const LONG_LINES = 10;

const RENDER = {
  section,
  header: (block) => el("h2", { class: "block-header" }, textObject(block.text)),
  context: (block) => el("div", { class: "context" }, block.elements.map(small)),
  divider: () => el("hr"),
  actions: (block, place) => el("div", { class: "actions" }, block.elements.map((one) => control(one, block, place))),
  image: (block) => el("p", { class: "context" }, picture(block)),
  rich_text: richText,
  table,
  data_table: dataTable,
  data_visualization: chart,
  input: inputBlock,
  alert: (block) => el("div", { class: `alert ${block.level ?? "default"}` }, textObject(block.text)),
  container,
};

/** All blocks of a message or a modal. `place` says where they stand, for what is pressed in them. */
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
    ? el("div", { class: "fields" }, block.fields.map((field) => el("div", {}, textObject(field))))
    : null;
  const beside = block.accessory
    ? el("div", { class: "accessory" }, control(block.accessory, block, place))
    : null;
  return el("div", { class: beside ? "section with-accessory" : "section" }, el("div", {}, text, fields), beside);
}

/** The text of a section; a long one without `expand` is folded, as Slack may do. */
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
  const more = el("button", { type: "button", class: "quiet see-more", onclick: open, text: "See more" });
  return el("div", {}, node, more);
}

function small(element) {
  return el("span", {}, element.type === "image" ? picture(element) : textObject(element));
}

function container(block, place) {
  const title = block.title ? textObject(block.title) : block.rich_text_title ? richText(block.rich_text_title) : "";
  const inside = blocks(block.child_blocks, place);
  const subtitle = block.subtitle && el("div", { class: "context" }, textObject(block.subtitle));
  if (!block.is_collapsible) return el("div", { class: "card" }, el("strong", {}, title), subtitle, inside);
  const open = !block.default_collapsed;
  return el("details", { class: "card", open }, el("summary", {}, title), subtitle, inside);
}

const unknown = (block) => el("p", { class: "context", text: `[${block.type}]` });

// Tables.

import { el } from "./dom.js";

/** A table. The first row is its header. */
export function table(block) {
  const settings = (column) => block.column_settings?.[column] ?? {};
  const align = (column) =>
    `${settings(column).align ?? ""} ${settings(column).is_wrapped ? "" : "unwrapped"}`;
  const [head, ...rows] = block.rows;
  return frame(
    "Table",
    el("table", { class: "grid-table" }, headRow(head, align), body(rows, align)),
  );
}

const frame = (name, inside) =>
  el("div", { class: "table-frame", tabindex: "0", role: "group", "aria-label": name }, inside);

function headRow(cells, align) {
  const titles = cells.map((cell, column) =>
    el("th", { scope: "col", class: align(column) }, content(cell)),
  );
  return el("thead", {}, el("tr", {}, titles));
}

function body(rows, align) {
  const line = (cells) =>
    cells.map((cell, column) => el("td", { class: align(column) }, content(cell)));
  return el(
    "tbody",
    {},
    rows.map((cells) => el("tr", {}, line(cells))),
  );
}

const content = (cell) => document.createTextNode(cell.text);

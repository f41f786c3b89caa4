// table and data_table blocks.

import { el } from "./dom.js";
import { richText } from "./markup.js";

/** A plain table; its first row is the head. */
export function table(block) {
  const settings = (column) => block.column_settings?.[column] ?? {};
  const align = (column) => `${settings(column).align ?? ""} ${settings(column).is_wrapped ? "" : "unwrapped"}`;
  const [head, ...rows] = block.rows;
  return frame("Table", el("table", { class: "grid-table" }, headRow(head, align), body(rows, align, -1)));
}

/** A table with a caption and pages. */
export function dataTable(block) {
  const [head, ...rows] = block.rows;
  const size = block.page_size ?? 5;
  const align = (column) => (rows.every((row) => row[column].type === "raw_number") ? "right" : undefined);
  const shown = el("table", { class: "grid-table" }, el("caption", { text: block.caption }), headRow(head, align));
  const place = el("p", { class: "rows-shown", role: "status" });
  let page = 0;
  const last = Math.ceil(rows.length / size) - 1;
  const turn = (by) => {
    page = Math.min(last, Math.max(0, page + by));
    const part = rows.slice(page * size, (page + 1) * size);
    shown.querySelector("tbody")?.remove();
    shown.append(body(part, align, block.row_header_column_index ?? 0));
    place.textContent = `Rows ${page * size + 1}–${page * size + part.length} of ${rows.length}`;
    earlier.disabled = page === 0;
    later.disabled = page === last;
  };
  const earlier = el("button", { type: "button", class: "plain", "aria-label": "Earlier rows", onclick: () => turn(-1), text: "‹" });
  const later = el("button", { type: "button", class: "plain", "aria-label": "Later rows", onclick: () => turn(1), text: "›" });
  turn(0);
  const pages = last > 0 ? el("div", { class: "pages" }, earlier, place, later) : null;
  return el("div", {}, frame(block.caption, shown), pages);
}

const frame = (name, inside) => el("div", { class: "table-frame", tabindex: "0", role: "group", "aria-label": name }, inside);

function headRow(cells, align) {
  const titles = cells.map((cell, column) => el("th", { scope: "col", class: align(column) }, content(cell)));
  return el("thead", {}, el("tr", {}, titles));
}

function body(rows, align, headed) {
  const line = (cells) =>
    cells.map((cell, column) =>
      column === headed
        ? el("th", { scope: "row", class: align(column) }, content(cell))
        : el("td", { class: align(column) }, content(cell)),
    );
  return el("tbody", {}, rows.map((cells) => el("tr", {}, line(cells))));
}

const content = (cell) => (cell.type === "rich_text" ? richText(cell) : document.createTextNode(cell.text ?? ""));

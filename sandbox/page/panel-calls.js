// A section of the panel: the latest calls that the services received.

import { clock } from "./dates.js";
import { el } from "./dom.js";

/** The section. */
export function calls() {
  const rows = el("tbody", {});
  const titles = ["When", "Call", "Status"].map((text) => el("th", { scope: "col", text }));
  const table = el("table", { class: "calls" }, el("thead", {}, el("tr", {}, titles)), rows);
  const section = el("section", {}, el("h3", { text: "Last calls to the services" }), table);
  section.show = (state) => {
    const now = JSON.stringify(state.calls.map((call) => [call.number, call.status]));
    if (rows.dataset.now === now) return;
    rows.dataset.now = now;
    rows.replaceChildren(...state.calls.toReversed().map(row));
  };
  return section;
}

function row({ arrived_at, method, path, organization_id, status, code }) {
  const short = path.replace(/FW[0-9a-fA-F]{26,}/, "FW…").replace("/inventory/v1/", "/…/");
  const answer = status ?? "…";
  return el(
    "tr",
    { class: status >= 400 ? "bad" : "" },
    el("td", { text: clock(arrived_at) }),
    el(
      "td",
      {},
      el("code", { text: `${method} ${short}` }),
      organization_id ? el("small", { text: ` ${organization_id}` }) : null,
    ),
    el("td", { text: code ? `${answer} (${code})` : String(answer) }),
  );
}

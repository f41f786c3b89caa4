// The panel that breaks the services, runs a greedy script, and shows what was asked of them.

import { clock } from "./dates.js";
import { el, freshId } from "./dom.js";
import { greedyScript } from "./greedy.js";
import { get, post } from "./net.js";

const EVERY_MS = 1500;
const CODES = [
  ["1070", "1070: too many calls at once"],
  ["44", "44: too many in a minute"],
  ["45", "45: too many in a day"],
];
const TROUBLES = [
  ["", "works"],
  ["status", "answers 503"],
  ["slow", "slow (+4 s)"],
  ["reset", "drops connections"],
];
const SLACK = [
  ["ratelimit", "429, try again in 2 s"],
  ["status", "server error (500), twice"],
  ["cut", "no reply (posted, then connection lost)"],
];
const FLOWS = {
  FW00000000000000000000000000000001: "welcome",
  FW00000000000000000000000000000002: "survey",
};

const control = (name, body) => post(`/page/${name}`, body);
const choices = (pairs) => pairs.map(([value, text]) => el("option", { value, text }));

/** The panel; `refresh()` looks again, `stop()` when it is put away. */
export function servicesPanel(close) {
  const parts = [
    blocking(),
    greedyScript(),
    dataCenters(),
    flows(),
    slack(),
    calls(),
    restarting(),
  ];
  const node = el(
    "aside",
    { class: "beside", "aria-label": "Services" },
    el(
      "header",
      { class: "beside-head" },
      el("h2", { text: "Services" }),
      el("button", {
        type: "button",
        class: "icon",
        "aria-label": "Close the services",
        onclick: close,
        text: "✕",
      }),
    ),
    el("div", { class: "panel", tabindex: "0", role: "group", "aria-label": "Simulate" }, parts),
  );
  const look = async () => {
    const state = await get("/page/services");
    parts.forEach((part) => part.show?.(state));
  };
  const after =
    (change) =>
    async (...args) => {
      await change(...args);
      await look();
    };
  parts.forEach((part) => part.wire?.(after));
  const timer = setInterval(() => look().catch(() => {}), EVERY_MS);
  node.stop = () => clearInterval(timer);
  node.refresh = () => {};
  node.ready = look();
  return node;
}

function blocking() {
  const where = el("select", { id: freshId("panel") });
  const code = el("select", { id: freshId("panel") }, choices(CODES));
  const button = el("button", { type: "button", class: "action danger", text: "Block" });
  const list = el("ul", { class: "blocked" });
  const part = el(
    "section",
    {},
    el("h3", { text: "Block an organization" }),
    el("label", { for: where.id, text: "Organization" }),
    where,
    el("label", { for: code.id, text: "Reason" }),
    code,
    el("div", { class: "actions" }, button),
    list,
  );
  let change;
  part.wire = (after) => {
    change = after(control);
    button.addEventListener("click", () => {
      const [data_center, organization_id] = where.value.split(" ");
      change("block", { data_center, organization_id, code: Number(code.value) });
    });
  };
  part.show = (state) => {
    if (!where.options.length) where.append(...state.data_centers.map(organizations));
    const blocked = state.data_centers.flatMap((one) =>
      one.organizations
        .filter((org) => org.code)
        .map((org) => ({ ...org, data_center: one.data_center })),
    );
    const now = JSON.stringify(blocked.map((org) => [org.organization_id, org.code]));
    if (list.dataset.now === now) return;
    list.dataset.now = now;
    list.replaceChildren(...blocked.map((org) => lifting(org, change)));
  };
  return part;
}

function organizations({ data_center, organizations: all }) {
  const items = all.map((org) =>
    el("option", { value: `${data_center} ${org.organization_id}`, text: org.name }),
  );
  return el("optgroup", { label: data_center }, items);
}

function lifting(org, change) {
  const lift = () =>
    change("block", {
      data_center: org.data_center,
      organization_id: org.organization_id,
      code: null,
    });
  return el(
    "li",
    {},
    el("span", { text: `${org.name} (${org.data_center}), ${org.code}` }),
    el("button", {
      type: "button",
      class: "action",
      "aria-label": `Unblock ${org.name}`,
      onclick: lift,
      text: "Unblock",
    }),
  );
}

function dataCenters() {
  const rows = el("div", { class: "centers" });
  const part = el("section", {}, el("h3", { text: "Break a data center" }), rows);
  let set;
  part.wire = (after) => {
    set = after((data_center, kind) => control("trouble", { data_center, kind }));
  };
  part.show = (state) => {
    if (!rows.children.length)
      rows.append(
        ...state.data_centers.map((one) =>
          center(one.data_center, (value) => set(one.data_center, value)),
        ),
      );
    for (const select of rows.querySelectorAll("select")) {
      const { trouble } = state.data_centers.find((one) => one.data_center === select.name);
      if (document.activeElement !== select) select.value = trouble ?? "";
      select.classList.toggle("troubled", Boolean(trouble));
    }
  };
  return part;
}

function center(name, changed) {
  const id = freshId("panel");
  return el(
    "div",
    {},
    el("label", { for: id }, el("code", { text: name })),
    el("select", { id, name, onchange: (event) => changed(event.target.value) }, choices(TROUBLES)),
  );
}

function flows() {
  const lists = el("div", {});
  const part = el("section", {}, el("h3", { text: "Edit a list behind Gatehouse’s back" }), lists);
  let change;
  part.wire = (after) => (change = after(control));
  part.show = (state) => {
    for (const flow of state.flows) {
      const text = flow.identities.join("\n");
      const old = lists.querySelector(`[data-sid="${flow.sid}"]`);
      if (!old) lists.append(flowEditor(flow.sid, text, (name, body) => change(name, body)));
      else if (old.dataset.text !== text) {
        old.dataset.text = text;
        old.querySelector("textarea").value = text;
      }
    }
  };
  return part;
}

function flowEditor(sid, text, change) {
  const id = freshId("panel");
  const area = el("textarea", { id, rows: 3, spellcheck: "false" });
  area.value = text;
  const name = FLOWS[sid] ?? sid;
  const save = () => {
    const identities = area.value
      .split("\n")
      .map((one) => one.trim())
      .filter(Boolean);
    change("list", { sid, identities });
  };
  const node = el(
    "div",
    { class: "flow" },
    el("label", { for: id, text: `Test users of ${name}, one per line` }),
    area,
    el("button", {
      type: "button",
      class: "action",
      "aria-label": `Save ${name}`,
      onclick: save,
      text: "Save",
    }),
  );
  Object.assign(node.dataset, { sid, text });
  return node;
}

function slack() {
  const what = el("select", { id: freshId("panel") }, choices(SLACK));
  const wait = () => control("slack", { kind: what.value });
  return el(
    "section",
    {},
    el("h3", { text: "Break Slack" }),
    el("label", { for: what.id, text: "When Gatehouse posts next, Slack answers" }),
    what,
    el(
      "div",
      { class: "actions" },
      el("button", { type: "button", class: "action", onclick: wait, text: "Set" }),
    ),
  );
}

function calls() {
  const rows = el("tbody", {});
  const head = ["When", "Call", "Status"].map((text) => el("th", { scope: "col", text }));
  const table = el("table", { class: "calls" }, el("thead", {}, el("tr", {}, head)), rows);
  const part = el("section", {}, el("h3", { text: "Last calls to the services" }), table);
  part.show = (state) => {
    const now =
      String(state.calls.at(-1)?.number ?? 0) + state.calls.filter((one) => !one.status).length;
    if (rows.dataset.now === now) return;
    rows.dataset.now = now;
    rows.replaceChildren(...state.calls.toReversed().map(call));
  };
  return part;
}

function call(one) {
  const status = one.code ? `${one.status} (${one.code})` : (one.status ?? "…");
  const path = one.path.replace(/FW[0-9a-fA-F]{26,}/, "FW…").replace("/inventory/v1/", "/…/");
  return el(
    "tr",
    { class: one.status >= 400 ? "bad" : "" },
    el("td", { text: clock(one.arrived_at) }),
    el(
      "td",
      {},
      el("code", { text: `${one.method} ${path}` }),
      one.organization_id ? el("small", { text: ` ${one.organization_id}` }) : null,
    ),
    el("td", { text: String(status) }),
  );
}

function restarting() {
  const restart = async () => {
    button.disabled = true;
    await post("/page/restart", {});
    button.disabled = false;
  };
  const button = el("button", {
    type: "button",
    class: "action",
    onclick: restart,
    text: "Restart the bot",
  });
  return el(
    "section",
    {},
    el("h3", { text: "Crash and restart" }),
    el("p", {
      class: "note",
      text: "Like a crash (kill -9). Requests and decisions survive; a command in progress is lost.",
    }),
    button,
  );
}

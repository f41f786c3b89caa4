// A section of the panel: block an organization, and end its block.

import { el, freshId } from "./dom.js";
import { options, organizationOptions } from "./panel-options.js";

const CODES = [
  ["1070", "1070: too many calls at once"],
  ["44", "44: too many in a minute"],
  ["45", "45: too many in a day"],
];

/** The section; `act(name, body)` presses a button of the panel. */
export function blocks(act) {
  const where = el("select", { id: freshId("panel") });
  const code = el("select", { id: freshId("panel") }, options(CODES));
  const block = () => {
    const [data_center, organization_id] = where.value.split(" ");
    return act("block", { data_center, organization_id, code: Number(code.value) });
  };
  const button = { type: "button", class: "action danger", onclick: block, text: "Block" };
  const list = el("ul", { class: "blocked" });
  const section = el(
    "section",
    {},
    el("h3", { text: "Block an organization" }),
    el("label", { for: where.id, text: "Organization" }),
    where,
    el("label", { for: code.id, text: "Reason" }),
    code,
    el("div", { class: "actions" }, el("button", button)),
    list,
  );
  section.show = ({ organizations }) => {
    if (!where.options.length) where.append(...organizationOptions(organizations));
    const blocked = organizations.filter((organization) => organization.code);
    const now = JSON.stringify(blocked);
    if (list.dataset.now === now) return;
    list.dataset.now = now;
    list.replaceChildren(...blocked.map((organization) => row(organization, act)));
  };
  return section;
}

/** A blocked organization with a button that ends the block. */
function row({ name, data_center, organization_id, code }, act) {
  const unblock = () => act("block", { data_center, organization_id, code: null });
  const button = { type: "button", class: "action", "aria-label": `Unblock ${name}` };
  return el(
    "li",
    {},
    el("span", { text: `${name} (${data_center}), ${code}` }),
    el("button", { ...button, onclick: unblock, text: "Unblock" }),
  );
}

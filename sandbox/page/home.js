// The bot's Home tab, as it was last published.

import { blocks } from "./blocks.js";
import { byId, el } from "./dom.js";
import { post } from "./net.js";
import { store } from "./store.js";

/** Stands for the Home tab wherever a channel ID is expected. */
export const HOME = "home";

/** Tell the bot that this person opened its Home tab. */
export const openHome = () => post("/page/home", { as: store.me });

/** Show the Home tab. It is drawn again only after the bot has published it again. */
export function showHome(view) {
  const place = byId(HOME);
  const state = `${store.me} ${view?.hash}`;
  if (place.dataset.state === state) return;
  const isSamePerson = place.dataset.state?.startsWith(`${store.me} `);
  const held = isSamePerson ? heldFocus(place) : null;
  place.dataset.state = state;
  place.replaceChildren(el("div", { class: "home-inside content" }, inside(view)));
  if (held) giveFocusBack(place, held);
  if (!isSamePerson) place.scrollTop = 0;
}

function inside(view) {
  if (!view) return el("p", { class: "empty", text: "Gatehouse is getting your Home ready…" });
  return blocks(view.blocks, { where: () => ({ view_id: view.id }), folds: true });
}

function heldFocus(place) {
  const node = document.activeElement;
  if (node === place || !place.contains(node)) return null;
  return { block: node.closest("[data-block]")?.dataset.block, action: node.dataset.action };
}

function giveFocusBack(place, held) {
  const same = [...place.querySelectorAll("[data-action]")].find(
    (one) =>
      one.dataset.action === held.action &&
      one.closest("[data-block]")?.dataset.block === held.block,
  );
  (same ?? place).focus({ preventScroll: true });
}

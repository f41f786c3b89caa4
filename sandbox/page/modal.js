// The modal on top of this person's screen.

import { blocks } from "./blocks.js";
import { el, freshId } from "./dom.js";
import { post } from "./net.js";
import { store } from "./store.js";

let shown = null; // { view, box, fields, back }

/** Show the top modal of the state, or none. */
export function showModal(view) {
  if (!view) return shown && leave();
  if (shown?.view.id === view.id && shown.view.hash === view.hash) return complain(view);
  const kept = shown?.view.id === view.id ? values() : null;
  const back = shown?.back ?? document.activeElement;
  shown?.box.remove();
  open(view, back);
  if (kept) restore(kept);
  complain(view);
}

function open(view, back) {
  const titleId = freshId("modal");
  const place = { where: () => ({ view_id: view.id }), values: () => values() };
  const inside = el(
    "div",
    { class: "modal-body" },
    el("p", { class: "alert error", role: "alert", hidden: true }),
    blocks(view.blocks, place),
  );
  const send =
    view.submit && el("button", { type: "submit", class: "action primary", text: view.submit });
  const form = el(
    "form",
    { novalidate: true, onsubmit: (event) => submit(event, view, send) },
    el("div", { class: "modal-head" }, el("h2", { id: titleId, text: view.title }), cross(view)),
    inside,
    el(
      "div",
      { class: "modal-foot" },
      el("button", {
        type: "button",
        class: "plain",
        onclick: () => dismiss(view),
        text: view.close ?? "Close",
      }),
      send,
    ),
  );
  const box = el("dialog", { class: "modal", "aria-labelledby": titleId }, form);
  box.addEventListener("cancel", (event) => {
    event.preventDefault();
    dismiss(view);
  });
  document.body.append(box);
  shown = { view, box, back, fields: [...box.querySelectorAll(".field")] };
  box.showModal();
  shown.fields[0]?.focusInput();
}

const cross = (view) =>
  el("button", {
    type: "button",
    class: "icon",
    "aria-label": "Dismiss",
    onclick: () => dismiss(view),
    text: "✕",
  });

const values = () =>
  Object.fromEntries(shown.fields.map((field) => [field.dataset.block, field.read()]));

function restore(kept) {
  for (const field of shown.fields) {
    if (field.dataset.block in kept) field.write(kept[field.dataset.block]);
  }
}

async function submit(event, view, send) {
  event.preventDefault();
  if (send.getAttribute("aria-busy")) return;
  shown.complained = false;
  send.setAttribute("aria-busy", "true");
  await Promise.all(shown.fields.map((field) => field.settle?.()));
  if (shown?.view.id !== view.id) return;
  await post("/page/submit", { as: store.me, view_id: view.id, values: values() });
  send.removeAttribute("aria-busy");
}

function dismiss(view) {
  if (shown.isLeaving) return;
  shown.isLeaving = true;
  post("/page/close", { as: store.me, view_id: view.id });
}

function complain(view) {
  shown.view = view;
  const general = shown.box.querySelector(".alert.error[role=alert]");
  general.textContent = view.errors[""] ?? "";
  general.hidden = !view.errors[""];
  for (const field of shown.fields) field.complain(view.errors[field.dataset.block]);
  const wrong = shown.fields.find((field) => view.errors[field.dataset.block]);
  if (wrong && !shown.complained) wrong.focusInput();
  shown.complained = Boolean(wrong);
}

function leave() {
  const { box, back } = shown;
  shown = null;
  box.close();
  box.remove();
  if (back?.isConnected) back.focus();
}

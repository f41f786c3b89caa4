// The buttons and menus in messages, and between the inputs of modals.

import { el, freshId } from "./dom.js";
import { isSafe, textObject } from "./markup.js";
import { menuButton } from "./menu.js";
import { post } from "./net.js";
import { store } from "./store.js";

/** An element that acts immediately. */
export function control(element, block, place) {
  const act = (value) => confirmed(element, () => press(element, block, place, value));
  switch (element.type) {
    case "button":
      return button(element, act);
    case "overflow":
      return overflow(element, act);
    default:
      return select(element, act);
  }
}

async function press(element, block, place, value) {
  const body = {
    as: store.me,
    block_id: block.block_id,
    action_id: element.action_id,
    value: value ?? null,
  };
  return post("/page/press", { ...body, ...place.where(), values: place.values?.() });
}

function button(element, act) {
  const node = el(
    "button",
    {
      type: "button",
      class: `action ${element.style ?? ""}`,
      title: element.accessibility_label,
      "data-action": element.action_id,
      onclick: async () => {
        if (node.getAttribute("aria-busy")) return;
        node.setAttribute("aria-busy", "true");
        await act();
        node.removeAttribute("aria-busy");
        visit(element.url);
      },
    },
    textObject(element.text),
  );
  return node;
}

function visit(address) {
  if (address && isSafe(address)) window.open(address, "_blank", "noopener");
}

function select(element, act) {
  const words = element.placeholder?.text ?? "Choose";
  return el(
    "select",
    {
      "aria-label": words,
      "data-action": element.action_id,
      onchange: (event) => act(event.target.value),
    },
    el("option", { value: "", text: words }),
    element.options.map((one) => el("option", { value: one.value, text: one.text.text })),
  );
}

function overflow(element, act) {
  const chosen = (option) => async () => {
    await act(option.value);
    visit(option.url);
  };
  const items = element.options.map((one) => ({
    text: textObject(one.text),
    about: one.description?.text,
    act: chosen(one),
  }));
  const props = {
    class: "action",
    "aria-label": "More actions",
    "data-action": element.action_id,
    text: "⋯",
  };
  return menuButton(props, items);
}

/** Ask for confirmation first if the bot requires it. */
function confirmed(element, act) {
  const ask = element.confirm;
  if (!ask) return act();
  const asked = document.activeElement;
  return new Promise((done) => {
    const [titleId, textId] = [freshId("confirm"), freshId("confirm")];
    const close = async (sure) => {
      box.close();
      box.remove();
      // Meanwhile, the message or the Home tab may have been drawn again.
      if (!asked.isConnected) sameControl(asked)?.focus({ preventScroll: true });
      if (sure) await act();
      done();
    };
    const style = ask.style === "danger" ? "danger" : "primary";
    const box = el(
      "dialog",
      {
        class: "modal small",
        "aria-labelledby": titleId,
        "aria-describedby": textId,
        oncancel: () => close(false),
      },
      el("h2", { id: titleId, text: ask.title.text }),
      el("p", { id: textId }, textObject(ask.text)),
      el(
        "div",
        { class: "modal-foot" },
        el("button", {
          type: "button",
          class: "plain",
          onclick: () => close(false),
          text: ask.deny.text,
        }),
        el("button", {
          type: "button",
          class: `action ${style}`,
          onclick: () => close(true),
          text: ask.confirm.text,
        }),
      ),
    );
    document.body.append(box);
    box.showModal();
  });
}

/** Return the control that now stands in the place of one that was removed, if any. */
function sameControl(removed) {
  const blockOf = (node) => node.closest("[data-block]")?.dataset.block;
  return [...document.querySelectorAll("[data-action]")].find(
    (node) => node.dataset.action === removed.dataset.action && blockOf(node) === blockOf(removed),
  );
}

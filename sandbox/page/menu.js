// A button that opens a menu: Slack's overflow, and shortcuts.

import { el, freshId } from "./dom.js";

const MARGIN = 6;

/** A button with a menu; `items` are `{ text, about, act }`, `props` are those of the button. */
export function menuButton(props, items) {
  const id = freshId("menu");
  const button = el("button", {
    type: "button",
    "aria-haspopup": "menu",
    "aria-expanded": "false",
    "aria-controls": id,
    ...props,
  });
  const list = el("div", {
    id,
    class: "menu",
    role: "menu",
    "aria-label": props["aria-label"],
    hidden: true,
  });
  const close = (back) => {
    list.hidden = true;
    button.setAttribute("aria-expanded", "false");
    if (back) button.focus();
  };
  list.append(...items.map((item) => entry(item, () => close(true))));
  const open = (at) => {
    list.hidden = false;
    button.setAttribute("aria-expanded", "true");
    stand(list, button);
    list.children[at < 0 ? list.children.length - 1 : at]?.focus({ preventScroll: true });
  };
  button.addEventListener("click", () => (list.hidden ? open(0) : close(true)));
  button.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    open(event.key === "ArrowDown" ? 0 : -1);
  });
  list.addEventListener("keydown", (event) => move(event, list, close));
  const node = el("span", { class: "with-menu" }, button, list);
  node.addEventListener("focusout", (event) => node.contains(event.relatedTarget) || close(false));
  return node;
}

function entry({ text, about, act }, close) {
  const chosen = () => {
    close();
    act();
  };
  const small = about ? el("small", { text: about }) : null;
  return el(
    "button",
    { type: "button", role: "menuitem", tabindex: "-1", onclick: chosen },
    el("span", {}, text),
    small,
  );
}

/** Put the menu below its button, or above it if there is no space, and within the screen. */
function stand(list, button) {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = list;
  const isRoomBelow = at.bottom + MARGIN + height < innerHeight;
  const above = Math.max(MARGIN, at.top - MARGIN - height);
  list.style.top = `${isRoomBelow ? at.bottom + MARGIN : above}px`;
  list.style.left = `${Math.max(MARGIN, Math.min(at.left, innerWidth - width - MARGIN))}px`;
}

function move(event, list, close) {
  const all = [...list.children];
  const at = all.indexOf(document.activeElement);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
  if (event.key === "Escape") close(true);
  else if (next === undefined) return;
  else all.at(next % all.length).focus({ preventScroll: true });
  event.preventDefault();
  event.stopPropagation();
}

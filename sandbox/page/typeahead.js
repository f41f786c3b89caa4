// A select whose options the bot provides while one types (external_select).

import { el, freshId } from "./dom.js";
import { post } from "./net.js";
import { store } from "./store.js";

const PAUSE_MS = 120;

/** A combobox; `chosen(option | null)` hears of every choice. `name` labels it where no label does. */
export function typeahead(element, block, place, chosen, name, props = {}) {
  const listId = freshId("options");
  const list = el("ul", { id: listId, class: "options", role: "listbox", "aria-label": name ?? "Options", hidden: true });
  const input = el("input", {
    type: "text",
    role: "combobox",
    autocomplete: "off",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": listId,
    "aria-label": name,
    placeholder: element.placeholder?.text,
    "data-action": element.action_id,
    ...props,
  });
  const least = element.min_query_length ?? 3;
  const state = { options: [], active: -1, asked: 0, option: element.initial_option ?? null };
  input.value = state.option?.text.text ?? "";

  const show = (open) => {
    list.hidden = !open;
    input.setAttribute("aria-expanded", String(open));
    if (!open) input.removeAttribute("aria-activedescendant");
  };
  const mark = (index) => {
    state.active = index;
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === index)));
    const item = list.children[index];
    if (!item) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", item.id);
    item.scrollIntoView({ block: "nearest" });
  };
  const choose = (option) => {
    state.option = option;
    input.value = option.text.text;
    show(false);
    chosen(option);
  };
  const ask = async () => {
    const typed = input.value.trim();
    if (typed.length < least) return show(false);
    const asked = ++state.asked;
    const wish = { as: store.me, block_id: block.block_id, action_id: element.action_id, typed };
    const answer = await post("/page/suggest", { ...wish, ...place.where() });
    if (asked !== state.asked) return;
    state.options = answer.options ?? [];
    list.replaceChildren(
      ...state.options.map((option) => {
        const pick = (event) => {
          event.preventDefault();
          choose(option);
        };
        return el("li", { id: freshId("option"), role: "option", "aria-selected": "false", onmousedown: pick, text: option.text.text });
      }),
    );
    if (!state.options.length) list.append(el("li", { class: "none", role: "option", "aria-disabled": "true", text: "Nothing found" }));
    mark(-1);
    show(document.activeElement === input);
  };
  let timer;
  input.addEventListener("input", () => {
    state.option = null;
    chosen(null);
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
  });
  input.addEventListener("focus", () => !state.option && ask());
  input.addEventListener("blur", () => {
    const same = state.options.find((one) => one.text.text.toLowerCase() === input.value.trim().toLowerCase());
    if (!state.option && same) choose(same);
    show(false);
  });
  input.addEventListener("keydown", (event) => {
    const count = state.options.length;
    if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      event.stopPropagation();
      show(false);
    } else if (event.key === "ArrowDown" && list.hidden) {
      event.preventDefault();
      ask();
    } else if (["ArrowDown", "ArrowUp"].includes(event.key) && count) {
      event.preventDefault();
      mark((state.active + (event.key === "ArrowDown" ? 1 : count - (state.active < 0 ? 0 : 1))) % count);
    } else if (event.key === "Enter" && !list.hidden) {
      event.preventDefault();
      const option = state.options[Math.max(state.active, 0)];
      if (option) choose(option);
    }
  });
  const node = el("div", { class: "typeahead" }, input, list);
  node.current = () => state.option;
  node.restore = (option) => {
    state.option = option;
    input.value = option?.text.text ?? "";
  };
  return node;
}

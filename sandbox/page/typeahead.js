// A select with options that the bot provides while the person types (external_select).

import { el, freshId } from "./dom.js";
import { post } from "./net.js";
import { store } from "./store.js";

const PAUSE_MS = 120;

/** The texts that match an option: its value, its text, or a whole word of its text. */
const namesOf = ({ value, text: { text } }) =>
  [value, text, ...text.split(/[\s()]+/)].map((name) => name.toLowerCase());

/** A combobox. */
export function typeahead(element, place, props) {
  const box = new Typeahead(element, place, props);
  box.node.current = () => box.option;
  box.node.restore = (option) => box.restore(option);
  box.node.settle = () => box.settle();
  return box.node;
}

class Typeahead {
  constructor(element, place, props) {
    Object.assign(this, { element, place, option: element.initial_option ?? null });
    Object.assign(this, { options: [], active: -1, asked: 0, timer: 0, question: null });
    const id = freshId("options");
    this.list = el("ul", {
      id,
      class: "options",
      role: "listbox",
      "aria-label": "Options",
      hidden: true,
    });
    this.input = el("input", {
      type: "text",
      role: "combobox",
      autocomplete: "off",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": id,
      placeholder: element.placeholder?.text,
      "data-action": element.action_id,
      oninput: () => this.typed(),
      onclick: () => this.list.hidden && this.ask(),
      onblur: () => this.left(),
      onkeydown: (event) => this.key(event),
      ...props,
    });
    this.input.value = this.option?.text.text ?? "";
    this.node = el("div", { class: "typeahead" }, this.input, this.list);
  }

  /** Restore the value from before the modal was drawn again. */
  restore(option) {
    this.option = option;
    this.input.value = option?.text.text ?? "";
  }

  /** Remove the old options. There are none until the bot answers. */
  typed() {
    this.option = null;
    this.options = [];
    this.show(false);
    this.forget();
    this.timer = setTimeout(() => this.ask(), PAUSE_MS);
  }

  /** Ignore the answers to earlier requests. */
  forget() {
    clearTimeout(this.timer);
    this.asked += 1;
    Object.assign(this, { timer: 0, question: null });
  }

  ask() {
    this.forget();
    const typed = this.input.value.trim();
    if (typed.length < (this.element.min_query_length ?? 3)) return this.show(false);
    this.question = this.hear(this.asked, typed);
  }

  async hear(asked, typed) {
    const body = { as: store.me, action_id: this.element.action_id, typed };
    const answer = await post("/page/suggest", { ...body, ...this.place.where() });
    if (asked !== this.asked) return;
    this.question = null;
    this.offer(answer.options ?? []);
  }

  offer(options) {
    this.options = options;
    this.list.replaceChildren(...options.map((option) => this.item(option)));
    if (!options.length) {
      this.list.append(
        el("li", { class: "none", role: "option", "aria-disabled": "true", text: "Nothing found" }),
      );
    }
    this.mark(-1);
    this.show(document.activeElement === this.input);
  }

  item(option) {
    const pick = (event) => {
      event.preventDefault();
      this.choose(option);
    };
    const props = {
      id: freshId("option"),
      role: "option",
      "aria-selected": "false",
      onmousedown: pick,
    };
    return el("li", { ...props, text: option.text.text });
  }

  choose(option) {
    this.forget();
    this.restore(option);
    this.show(false);
  }

  left() {
    this.show(false);
    this.settle();
  }

  /** Choose an option whose full name was typed, even if the bot's answer comes later. */
  async settle() {
    if (this.timer) this.ask();
    await this.question;
    const typed = this.input.value.trim().toLowerCase();
    const same = this.options.filter((one) => namesOf(one).includes(typed));
    if (!this.option && same.length === 1) this.choose(same[0]);
  }

  show(open) {
    this.list.hidden = !open;
    this.input.setAttribute("aria-expanded", String(open));
    if (!open) this.input.removeAttribute("aria-activedescendant");
  }

  mark(index) {
    this.active = index;
    [...this.list.children].forEach((item, at) =>
      item.setAttribute("aria-selected", String(at === index)),
    );
    const item = this.list.children[index];
    if (!item) return this.input.removeAttribute("aria-activedescendant");
    this.input.setAttribute("aria-activedescendant", item.id);
    item.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    if (event.isComposing) return;
    const isOpen = !this.list.hidden;
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key === "Escape" && isOpen) {
      event.stopPropagation();
      this.show(false);
    } else if (event.key in moves) {
      if (isOpen) this.move(moves[event.key]);
      else this.ask();
    } else if (event.key === "Enter" && isOpen) {
      const option = this.options[Math.max(this.active, 0)];
      if (option) this.choose(option);
    } else if (event.key === "Enter" && (this.timer || this.question)) {
      this.settle();
    } else return;
    event.preventDefault();
  }

  move(by) {
    const count = this.options.length;
    const from = this.active < 0 && by < 0 ? 0 : this.active;
    if (count) this.mark((from + by + count) % count);
  }
}

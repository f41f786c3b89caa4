// The inputs of a modal. `read()` returns an input's value. Errors appear below it.

import { momentOf, wall } from "./dates.js";
import { el, freshId } from "./dom.js";
import { textObject } from "./markup.js";
import { typeahead } from "./typeahead.js";

/**
 * A label with its input. `node.read()` returns the value once `node.settle?.()` is done, and
 * `node.dataset.block` is its block_id.
 */
export function inputBlock(block, place) {
  const id = freshId("input");
  const hintId = `${id}-hint`;
  const described = block.optional ? `${id}-optional ${hintId}` : hintId;
  const made = make(block.element, block.optional, place, {
    id,
    "aria-describedby": described,
    "aria-required": String(!block.optional),
  });
  const label = el("label", { for: id }, textObject(block.label));
  // Outside the label, so that it isn't part of the input's accessible name.
  const optional = block.optional
    ? el("span", { class: "optional", id: `${id}-optional`, text: "(optional)" })
    : null;
  const note = el("p", { class: "note", id: hintId }, textObject(block.hint));
  const error = el("p", { class: "error", id: `${id}-error`, hidden: true });
  const head = el("div", { class: "label" }, label, optional);
  const node = el("div", { class: "field" }, head, made.node, note, error);
  node.read = made.read;
  node.write = made.write;
  node.settle = made.settle;
  node.complain = (words) => complain(node, error, made.focus, described, words);
  node.focusInput = () => made.focus.focus();
  return node;
}

function complain(node, error, input, described, words) {
  error.textContent = words ?? "";
  error.hidden = !words;
  node.classList.toggle("wrong", Boolean(words));
  if (words) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
  input.setAttribute("aria-describedby", words ? `${error.id} ${described}` : described);
}

function make(element, isOptional, place, props) {
  const kind = element.type;
  if (kind === "plain_text_input") return line(element, props);
  if (kind === "external_select") return external(element, place, props);
  if (kind === "static_select") return select(element, props, isOptional);
  return moment(element, props);
}

function line(element, props) {
  const shape = { maxlength: element.max_length, autocomplete: "off" };
  const node = element.multiline
    ? el("textarea", { ...props, ...shape, rows: 4 })
    : el("input", { ...props, ...shape, type: "text" });
  node.value = element.initial_value ?? "";
  return {
    node,
    focus: node,
    read: () => node.value,
    write: (value) => (node.value = value ?? ""),
  };
}

function external(element, place, props) {
  const node = typeahead(element, place, props);
  const read = () => node.current();
  const write = (option) => node.restore(option);
  return { node, focus: node.querySelector("input"), read, write, settle: node.settle };
}

function select(element, props, optional) {
  const initial = element.initial_option?.value ?? "";
  const options = element.options.map((one) =>
    el("option", { value: one.value, text: one.text.text }),
  );
  const none =
    initial && !optional
      ? []
      : el("option", { value: "", text: element.placeholder?.text ?? "Choose…" });
  const node = el("select", props, none, options);
  node.value = initial;
  return {
    node,
    focus: node,
    read: () => node.value || null,
    write: (value) => (node.value = value ?? ""),
  };
}

function moment(element, props) {
  const node = el("input", { ...props, type: "datetime-local" });
  const write = (seconds) => (node.value = seconds ? wall(seconds * 1000) : "");
  write(element.initial_date_time);
  return { node, focus: node, read: () => (node.value ? momentOf(node.value) : null), write };
}

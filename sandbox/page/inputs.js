// The inputs of a modal. Each gives what stands in it by `read()`; errors stand beneath.

import { channels, people } from "./choices.js";
import { el, freshId } from "./dom.js";
import { textObject } from "./markup.js";
import { typeahead } from "./typeahead.js";

/** A label with its input; `node.read()` gives the value once `node.settle?.()` is done, `node.dataset.block` its block_id. */
export function inputBlock(block, place) {
  const id = freshId("input");
  const hintId = `${id}-hint`;
  const described = block.optional ? `${id}-optional ${hintId}` : hintId;
  const made = make(block.element, block, place, { id, "aria-describedby": described, "aria-required": String(!block.optional) });
  const grouped = made.node.matches("fieldset");
  const label = grouped
    ? el("legend", {}, textObject(block.label))
    : el("label", { for: id }, textObject(block.label));
  // Beside the label and not in it, so that the input keeps its name.
  const optional = block.optional ? el("span", { class: "optional", id: `${id}-optional`, text: "(optional)" }) : null;
  const note = el("p", { class: "note", id: hintId }, textObject(block.hint));
  const error = el("p", { class: "error", id: `${id}-error`, hidden: true });
  if (grouped) made.node.prepend(label);
  const head = grouped ? optional : el("div", { class: "label" }, label, optional);
  const node = el("div", { class: "field" }, head, made.node, note, error);
  node.read = made.read;
  node.write = made.write;
  node.settle = made.settle;
  node.complain = (words) => complain(node, error, made.focus, described, words);
  node.focusInput = () => (grouped ? firstOf(made.node) : made.focus).focus();
  return node;
}

/** Where the keyboard comes to in a group: what is chosen, or its beginning. */
const firstOf = (group) => group.querySelector("input:checked") ?? group.querySelector("input");

function complain(node, error, input, described, words) {
  error.textContent = words ?? "";
  error.hidden = !words;
  node.classList.toggle("wrong", Boolean(words));
  if (words) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
  input.setAttribute("aria-describedby", words ? `${error.id} ${described}` : described);
}

function make(element, block, place, props) {
  const kind = element.type;
  if (kind === "plain_text_input") return line(element, props);
  if (kind === "external_select") return external(element, block, place, props);
  if (kind === "multi_external_select") return several(element, block, place, props);
  if (kind === "rich_text_input") return rich(props);
  if (kind === "radio_buttons") return choices(element, props, "radio", element.options);
  if (kind === "checkboxes" || kind.startsWith("multi_")) return choices(element, props, "checkbox", optionsOf(element));
  if (kind.endsWith("_select")) return select(element, props, block.optional);
  return typed(element, props);
}

const optionsOf = (element) =>
  element.options ?? element.option_groups?.flatMap((group) => group.options) ?? people(element) ?? channels();

function line(element, props) {
  const shape = { maxlength: element.max_length, placeholder: element.placeholder?.text, autocomplete: "off" };
  const node = element.multiline
    ? el("textarea", { ...props, ...shape, rows: 4 })
    : el("input", { ...props, ...shape, type: "text" });
  node.value = element.initial_value ?? "";
  return { node, focus: node, read: () => node.value, write: (value) => (node.value = value ?? "") };
}

function external(element, block, place, props) {
  const node = typeahead(element, block, place, () => {}, undefined, props);
  const read = () => node.current();
  const write = (option) => node.restore(option);
  return { node, focus: node.querySelector("input"), read, write, settle: node.settle };
}

/** A type-ahead from which one chooses several; what is chosen stands beneath, to be taken away again. */
function several(element, block, place, props) {
  const chosen = new Map();
  const chips = el("ul", { class: "chips" });
  const show = () => chips.replaceChildren(...[...chosen.values()].map(chip));
  const chip = (option) => {
    const away = () => {
      chosen.delete(option.value);
      show();
    };
    const name = option.text.text;
    return el("li", { text: name }, el("button", { type: "button", class: "icon", "aria-label": `Take ${name} away`, onclick: away, text: "✕" }));
  };
  const write = (options) => {
    chosen.clear();
    for (const option of options ?? []) chosen.set(option.value, option);
    show();
  };
  const pick = (option) => {
    if (!option) return;
    write([...chosen.values(), option]);
    box.restore(null);
  };
  const box = typeahead(element, block, place, pick, undefined, props);
  write(element.initial_options);
  const node = el("div", {}, box, chips);
  return { node, focus: box.querySelector("input"), read: () => [...chosen.values()], write, settle: box.settle };
}

function rich(props) {
  const node = el("textarea", { ...props, rows: 4 });
  const written = (text) => ({ type: "rich_text_section", elements: [{ type: "text", text }] });
  const read = () => (node.value ? { type: "rich_text", elements: [written(node.value)] } : null);
  const write = (value) => (node.value = value?.elements?.[0]?.elements?.[0]?.text ?? "");
  return { node, focus: node, read, write };
}

function select(element, props, optional) {
  const initial = element.initial_option?.value ?? element.initial_user ?? element.initial_channel ?? element.initial_conversation ?? "";
  const groups = element.option_groups ?? [{ options: optionsOf(element) }];
  const inside = groups.map((group) => {
    const items = group.options.map((one) => el("option", { value: one.value, text: one.text.text }));
    return group.label ? el("optgroup", { label: group.label.text }, items) : items;
  });
  const none = initial && !optional ? [] : el("option", { value: "", text: element.placeholder?.text ?? "Choose…" });
  const node = el("select", props, none, inside.flat());
  node.value = initial;
  return { node, focus: node, read: () => node.value || null, write: (value) => (node.value = value ?? "") };
}

function choices(element, { id, ...props }, type, options) {
  const initial = element.initial_options ?? [element.initial_option].filter(Boolean);
  const chosen = new Set([...initial.map((one) => one.value), ...(element.initial_users ?? [])]);
  const items = options.map((one) => {
    const input = el("input", { type, name: id, value: one.value, checked: chosen.has(one.value) });
    const about = one.description ? el("small", {}, textObject(one.description)) : null;
    return el("label", { class: "choice" }, input, el("span", {}, textObject(one.text), about));
  });
  const role = type === "radio" ? "radiogroup" : undefined;
  delete props["aria-required"];
  const node = el("fieldset", { id, ...props, role }, items);
  const all = () => [...node.querySelectorAll("input")];
  const read = () => {
    const values = all().filter((input) => input.checked).map((input) => input.value);
    return type === "radio" ? (values[0] ?? null) : values;
  };
  const write = (value) => all().forEach((input) => (input.checked = [value].flat().includes(input.value)));
  return { node, focus: node, read, write };
}

const TYPES = {
  datepicker: ["date", "initial_date"],
  timepicker: ["time", "initial_time"],
  email_text_input: ["email", "initial_value"],
  url_text_input: ["url", "initial_value"],
  number_input: ["number", "initial_value"],
};

function typed(element, props) {
  if (element.type === "datetimepicker") return moment(element, props);
  const [type, initial] = TYPES[element.type] ?? ["text", "initial_value"];
  const range = { min: element.min_value, max: element.max_value, step: element.is_decimal_allowed ? "any" : undefined };
  const node = el("input", { ...props, ...range, type, placeholder: element.placeholder?.text });
  node.value = element[initial] ?? "";
  return { node, focus: node, read: () => node.value || null, write: (value) => (node.value = value ?? "") };
}

function moment(element, props) {
  const node = el("input", { ...props, type: "datetime-local" });
  const local = (seconds) => new Date(seconds * 1000 - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  const write = (seconds) => (node.value = seconds ? local(seconds) : "");
  write(element.initial_date_time);
  return { node, focus: node, read: () => (node.value ? Math.round(new Date(node.value) / 1000) : null), write };
}


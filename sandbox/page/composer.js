// The composer: the message box and the list of commands to choose from.

import { byId, el, freshId } from "./dom.js";
import { menuButton } from "./menu.js";
import { post } from "./net.js";
import { store } from "./store.js";

const input = byId("message");
const list = byId("completions");
const hint = byId("hint");
const isTouched = matchMedia("(pointer: coarse)").matches;
let active = -1;
let sent = "";

/** Set up the composer. Called once. */
export function startComposer() {
  // A multi-line text box can't have aria-expanded, so the hint says what opens.
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-haspopup", "listbox");
  input.setAttribute("aria-controls", "completions");
  input.setAttribute("aria-describedby", "hint");
  input.addEventListener("input", refresh);
  input.addEventListener("keydown", keys);
  input.addEventListener("blur", () => offer([]));
  byId("composer").addEventListener("submit", send);
  byId("shortcuts").replaceWith(shortcuts());
  input.value = sessionStorage.getItem("draft") ?? "";
}

/** The app's global shortcuts, in the same place as in Slack. */
function shortcuts() {
  const run = (shortcut) => () =>
    post("/page/shortcut", { as: store.me, callback_id: shortcut.callback_id });
  const items = store.shortcuts
    .filter((one) => one.type === "global")
    .map((one) => ({ text: one.name, about: one.description, act: run(one) }));
  return menuButton(
    { class: "icon", "aria-label": "Shortcuts", title: "Shortcuts", text: "⚡" },
    items,
  );
}

/** Show in the empty composer what can be written in this channel. */
export function invite(isDirect) {
  input.placeholder = isDirect ? "Message Gatehouse, e.g. help" : "Message, or / for commands";
}

/** Fill the composer with text that is ready to be sent. */
function fillComposer(text) {
  input.value = text;
  input.focus();
  refresh();
}

/** The words that can come next: commands, or the alternatives in the command's hint. */
function candidates() {
  const text = input.value;
  if (!text.startsWith("/")) return [];
  if (!text.includes(" ")) {
    return store.commands
      .filter((one) => one.name.startsWith(text))
      .map((one) => ({
        text: `${one.name} `,
        title: one.name,
        hint: one.usage_hint,
        about: one.description,
      }));
  }
  const [name, ...words] = text.split(" ");
  const command = store.commands.find((one) => one.name === name);
  if (!command || words.length !== 1) return [];
  return alternatives(command.usage_hint)
    .filter((word) => word.startsWith(words[0]) && word !== words[0])
    .map((word) => ({ text: `${name} ${word} `, title: `${name} ${word}`, hint: "", about: "" }));
}

/** The words that can come first in a usage hint such as `[show <id> | refresh | help]`. */
function alternatives(usage) {
  const first = usage
    .replace(/^\[|\]$/g, "")
    .split("|")
    .map((one) => /^[a-z]+/.exec(one.trim())?.[0]);
  return [...new Set(first.filter(Boolean))];
}

function refresh() {
  sessionStorage.setItem("draft", input.value);
  input.style.height = "auto";
  input.style.height = `${Math.min(input.scrollHeight, 180)}px`;
  offer(document.activeElement === input ? candidates() : []);
}

/** Show the words that can come next or, if there are none, how to use the command. */
function offer(found) {
  list.replaceChildren(...found.map(item));
  list.hidden = !found.length;
  mark(-1);
  const command = store.commands.find(
    (one) => input.value === one.name || input.value.startsWith(`${one.name} `),
  );
  if (found.length)
    hint.textContent = isTouched ? counted(found) : `${counted(found)}, choose with the arrow keys`;
  else hint.textContent = command ? `${command.name} ${command.usage_hint}` : "";
}

function counted(found) {
  const word = input.value.includes(" ") ? "word" : "command";
  return found.length === 1 ? `1 ${word}` : `${found.length} ${word}s`;
}

function item(one) {
  const choose = (event) => {
    event.preventDefault();
    fillComposer(one.text);
  };
  const node = el(
    "div",
    { id: freshId("completion"), role: "option", "aria-selected": "false", onmousedown: choose },
    el("strong", { text: one.title }),
    el("span", { class: "usage", text: one.hint }),
    el("span", { class: "about", text: one.about }),
  );
  node.dataset.text = one.text;
  return node;
}

function mark(index) {
  active = index;
  [...list.children].forEach((node, at) =>
    node.setAttribute("aria-selected", String(at === index)),
  );
  const node = list.children[index];
  if (node) input.setAttribute("aria-activedescendant", node.id);
  else input.removeAttribute("aria-activedescendant");
  node?.scrollIntoView({ block: "nearest" });
}

function keys(event) {
  const count = list.hidden ? 0 : list.children.length;
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    if (count && active >= 0) fillComposer(list.children[active].dataset.text);
    else send(event);
  } else if (event.key === "Tab" && count && !event.shiftKey) {
    event.preventDefault();
    fillComposer(list.children[Math.max(active, 0)].dataset.text);
  } else if (event.key === "Escape" && count) {
    offer([]);
  } else if (["ArrowDown", "ArrowUp"].includes(event.key) && count) {
    event.preventDefault();
    mark((active + (event.key === "ArrowDown" ? 1 : active < 0 ? count : count - 1)) % count);
  } else if (event.key === "ArrowUp" && !input.value && sent) {
    event.preventDefault();
    fillComposer(sent);
  }
}

async function send(event) {
  event.preventDefault();
  const text = input.value.trim();
  if (!text) return;
  sent = text;
  input.value = "";
  refresh();
  await say(text);
}

/** Send text or a command to the open channel. */
export async function say(text) {
  // Scroll to the answer, even if the person was reading older messages.
  const log = byId("log");
  log.scrollTop = log.scrollHeight;
  await post(
    "/page/say",
    { as: store.me, channel: store.channel, text },
    { isSaid: text.startsWith("/") },
  );
}

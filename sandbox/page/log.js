// Messages. Only changed messages are drawn again, so choices and open menus in others are kept.

import { blocks } from "./blocks.js";
import { dayOf, messageTime } from "./dates.js";
import { el } from "./dom.js";
import { mrkdwn } from "./markup.js";
import { menuButton } from "./menu.js";
import { post } from "./net.js";
import { replies, store } from "./store.js";

const HUES = [262, 12, 152, 205, 330, 42, 95, 290];

/** Keep the end of a list visible when the list's size changes, if it was visible before. */
export function stayAtEnd(list) {
  const size = () => `${list.clientWidth} ${list.clientHeight}`;
  let [atEnd, known] = [true, size()];
  // After a change of size, the browser scrolls by itself. Only the person's scrolling counts.
  list.addEventListener("scroll", () => size() === known && (atEnd = isAtEnd(list)), {
    passive: true,
  });
  const resized = () => {
    known = size();
    if (atEnd) list.scrollTop = list.scrollHeight;
  };
  new ResizeObserver(resized).observe(list);
}

const isAtEnd = (list) => list.scrollHeight - list.scrollTop - list.clientHeight < 60;

/** Show messages in a list. `openThread(message)` shows a message's replies. */
export function showMessages(list, messages, openThread) {
  const atEnd = isAtEnd(list);
  const held = heldFocus(list);
  const end = {
    key: list.lastElementChild?.dataset.key,
    height: list.lastElementChild?.offsetHeight,
  };
  const before = new Map([...list.children].map((node) => [node.dataset.key, node]));
  const wanted = [];
  let day = null;
  for (const message of messages) {
    if (openThread && dayOf(message.ts) !== day)
      wanted.push(divider((day = dayOf(message.ts)), before));
    if (openThread && isFirstNew(message, wanted)) wanted.push(newMark(before));
    wanted.push(kept(message, before, openThread));
  }
  if (!messages.length && openThread) wanted.push(emptiness(before));
  const same =
    wanted.length === list.children.length &&
    wanted.every((node, at) => node === list.children[at]);
  if (!same) place(list, wanted);
  giveFocusBack(list, held);
  if (atEnd || list.dataset.shown !== list.dataset.channel) toEnd(list, end);
  list.dataset.shown = list.dataset.channel ?? "";
}

/** Scroll to the end, or to the start of the last message if it is taller than the list. */
function toEnd(list, end) {
  const last = list.lastElementChild;
  list.scrollTop = list.scrollHeight;
  if (!last || last.offsetHeight <= list.clientHeight) return;
  const wasTall = last.dataset.key === end.key && end.height > list.clientHeight;
  if (!wasTall) list.scrollTop = last.offsetTop - list.offsetTop - 8;
}

/** Put nodes in order, moving only nodes that are in the wrong place. */
function place(list, wanted) {
  const keep = new Set(wanted);
  for (const node of [...list.children]) if (!keep.has(node)) node.remove();
  wanted.forEach(
    (node, at) => list.children[at] !== node && list.insertBefore(node, list.children[at] ?? null),
  );
}

function kept(message, before, openThread) {
  const below = openThread ? replies(message.channel, message.ts) : [];
  const key = `${store.me} ${message.channel} ${message.ts}`;
  const last = below.at(-1);
  const state = `${message.changes} ${below.length} ${last?.number}.${last?.changes}`;
  const old = before.get(key);
  if (old?.dataset.state === state) return old;
  const node = article(message, below, openThread);
  Object.assign(node.dataset, { key, state, ts: message.ts });
  if (old && old.dataset.state.split(" ")[0] !== String(message.changes))
    node.classList.add("just-changed");
  return node;
}

const isFirstNew = (message, wanted) =>
  store.newSince !== null &&
  message.number > store.newSince &&
  message.author.id !== store.me &&
  !wanted.some((node) => node.dataset.key === "new");

function newMark(before) {
  const node =
    before.get("new") ??
    el(
      "div",
      { class: "day new", role: "separator", "aria-label": "New" },
      el("span", { text: "New" }),
    );
  node.dataset.key = "new";
  return node;
}

function divider(day, before) {
  const old = before.get(day);
  if (old) return old;
  const node = el(
    "div",
    { class: "day", role: "separator", "aria-label": day },
    el("span", { text: day }),
  );
  node.dataset.key = day;
  return node;
}

function emptiness(before) {
  const node = before.get("empty") ?? el("p", { class: "empty", text: "No messages yet." });
  node.dataset.key = "empty";
  return node;
}

function article(message, below, openThread) {
  const who = message.author;
  const time = messageTime(message.ts);
  const head = el(
    "div",
    { class: "who" },
    el("strong", { text: who.name }),
    who.kind === "app" ? el("span", { class: "badge", text: "APP" }) : null,
    time,
    message.changes ? el("span", { class: "edited", text: "edited" }) : null,
  );
  const place = { where: () => ({ channel: message.channel, ts: message.ts }), folds: true };
  const body = message.blocks.length
    ? blocks(message.blocks, place)
    : el("div", { class: "section" }, mrkdwn(message.text));
  return el(
    "article",
    {
      class: message.ephemeral ? "message ephemeral" : "message",
      "aria-label": `${who.name} at ${time.textContent}`,
      tabindex: "-1",
    },
    avatar(who),
    el(
      "div",
      { class: "said" },
      message.ephemeral ? el("p", { class: "only-you", text: "Only visible to you" }) : null,
      head,
      message.command ? el("p", { class: "typed" }, el("code", { text: message.command })) : null,
      el("div", { class: "content" }, body),
      openThread && below.length ? threadLink(message, below, openThread) : null,
      message.ephemeral ? null : tools(message, openThread && !below.length ? openThread : null),
    ),
  );
}

function threadLink(message, below, openThread) {
  const open = () => openThread(message);
  const words = below.length === 1 ? "1 reply" : `${below.length} replies`;
  return el(
    "button",
    { type: "button", class: "replies", onclick: open },
    el("strong", { text: words }),
    el("span", { class: "last-reply" }, mrkdwn(below.at(-1).text.split("\n")[0])),
  );
}

/** The actions for a message: a reply if there are none yet. */
function tools(message, openThread) {
  const reply =
    openThread &&
    el("button", {
      type: "button",
      class: "quiet",
      onclick: () => openThread(message),
      text: "Reply in thread",
    });
  return el("div", { class: "tools" }, reply);
}

function avatar(who) {
  if (who.kind === "app")
    return el("img", { class: "avatar", src: "/page/files/icon.svg", alt: "" });
  const initials = who.name
    .split(/\s+/)
    .map((word) => word[0])
    .slice(0, 2)
    .join("");
  const node = el("span", { class: "avatar", "aria-hidden": "true", text: initials });
  const hue = HUES[[...who.id].reduce((sum, sign) => sum + sign.charCodeAt(0), 0) % HUES.length];
  node.style.setProperty("--hue", hue);
  return node;
}

/** Return the message and the control that have the focus. */
function heldFocus(list) {
  const node = document.activeElement;
  if (!list.contains(node) || node === list) return null;
  const message = node.closest("article");
  const block = node.closest("[data-block]");
  return (
    message && {
      ts: message.dataset.ts,
      block: block?.dataset.block,
      action: node.dataset.action,
      node,
    }
  );
}

function giveFocusBack(list, held) {
  if (!held || held.node.isConnected) return;
  const message = [...list.querySelectorAll("article")].find((one) => one.dataset.ts === held.ts);
  if (!message) return list.focus();
  const same = [...message.querySelectorAll("[data-action]")].find(
    (one) =>
      one.dataset.action === held.action &&
      one.closest("[data-block]")?.dataset.block === held.block,
  );
  (same ?? message).focus({ preventScroll: true });
}

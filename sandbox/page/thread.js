// The thread beside a channel: a message and its replies.

import { el } from "./dom.js";
import { showMessages } from "./log.js";
import { post } from "./net.js";
import { replies, store } from "./store.js";

/** The panel of the open thread. Hiding it calls `close()`. */
export function threadPanel(close) {
  const list = el("div", {
    class: "thread-list",
    tabindex: "0",
    role: "group",
    "aria-label": "Replies",
  });
  const input = el("textarea", { id: "reply", rows: 1, placeholder: "Reply…" });
  const send = async (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (!text) return;
    input.value = "";
    const { channel, ts } = store.thread;
    await post("/page/say", {
      as: store.me,
      channel,
      thread_ts: ts,
      text: text.replace(/^\/+/, ""),
    });
  };
  const isSending = (event) => event.key === "Enter" && !event.shiftKey && !event.isComposing;
  input.addEventListener("keydown", (event) => isSending(event) && send(event));
  const node = el(
    "aside",
    { class: "beside", "aria-label": "Thread" },
    el(
      "header",
      { class: "beside-head" },
      el("h2", { text: "Thread" }),
      el("button", {
        type: "button",
        class: "icon",
        "aria-label": "Close the thread",
        onclick: close,
        text: "✕",
      }),
    ),
    list,
    el(
      "form",
      { class: "composer", onsubmit: send },
      el("label", { for: "reply", class: "unseen", text: "Reply" }),
      input,
    ),
  );
  node.refresh = () => {
    const { channel, ts } = store.thread;
    const parent = store.screen.messages.filter((m) => m.channel === channel && m.ts === ts);
    list.dataset.channel = ts;
    showMessages(list, [...parent, ...replies(channel, ts)], null);
  };
  return node;
}

// The sidebar: the acting person, the channels, and the bot's state.

import { byId, el, svg } from "./dom.js";
import { HOME } from "./home.js";
import { store, unread } from "./store.js";

const BOT = {
  ready: "Gatehouse is running",
  starting: "Gatehouse is starting…",
  stopped: "Gatehouse is not running",
};

/** Fill in the people. Choosing a person calls `chosen(id)`. */
export function startSide(chosen) {
  const select = byId("acting");
  select.replaceChildren(
    ...store.people.map((person) =>
      el("option", { value: person.id, text: `${person.name} (${person.role})` }),
    ),
  );
  select.addEventListener("change", () => chosen(select.value));
  byId("menu").addEventListener("click", () =>
    openSide(!document.body.classList.contains("side-open")),
  );
  // A click on the open channel changes nothing.
  byId("side").addEventListener("click", (event) => {
    if (event.target.closest("a")) openSide(false);
  });
  const small = matchMedia("(max-width: 720px)");
  small.addEventListener("change", () => placeActing(small.matches));
  placeActing(small.matches);
}

/** On a small screen the sidebar is hidden, so the acting person is shown at the top. */
function placeActing(isSmall) {
  if (isSmall) byId("top").append(byId("acting-box"));
  else byId("brand").after(byId("acting-box"));
}

/** Show or hide the sidebar on a small screen. */
export function openSide(open) {
  document.body.classList.toggle("side-open", open);
  byId("menu").setAttribute("aria-expanded", String(open));
}

/** Show the current channels. */
export function showSide() {
  byId("acting").value = store.me;
  const list = (id, kinds, ...first) => {
    const held = document.activeElement?.closest(`#${id} a`)?.getAttribute("href");
    byId(id).replaceChildren(
      ...first,
      ...store.screen.channels.filter((one) => kinds.includes(one.kind)).map(row),
    );
    if (held) byId(id).querySelector(`a[href="${held}"]`)?.focus();
  };
  list("channels", ["public", "private"]);
  list("directs", ["direct"], homeRow());
  const state = byId("bot-state");
  if (state.dataset.state !== store.screen.bot) {
    state.dataset.state = store.screen.bot;
    state.textContent = BOT[store.screen.bot] ?? "";
  }
}

const homeRow = () =>
  el(
    "li",
    {},
    el(
      "a",
      { href: `#${HOME}`, "aria-current": store.channel === HOME ? "page" : null },
      el("span", { class: "sign house", "aria-hidden": "true", text: "⌂" }),
      el("span", { text: "Home" }),
    ),
  );

function row(channel) {
  const fresh = channel.id === store.channel ? 0 : unread(channel.id);
  const isDirect = channel.kind === "direct";
  return el(
    "li",
    {},
    el(
      "a",
      {
        href: `#${channel.id}`,
        class: fresh ? "unread" : "",
        title: fresh ? `${fresh} unread` : null,
        "aria-current": channel.id === store.channel ? "page" : null,
      },
      isDirect
        ? el("span", { class: `sign dot ${store.screen.bot}`, "aria-hidden": "true", text: "●" })
        : null,
      el("span", { text: isDirect ? channel.name : `#${channel.name}` }),
      channel.kind === "private" ? lock() : null,
      fresh ? el("span", { class: "count", "aria-hidden": "true", text: String(fresh) }) : null,
    ),
  );
}

const LOCK = "M3 5V4a2.5 2.5 0 0 1 5 0v1h1v6H2V5zm1.2 0h2.6V4a1.3 1.3 0 0 0-2.6 0z";

const lock = () =>
  svg(
    "svg",
    { class: "lock", viewBox: "0 0 11 12", "aria-hidden": "true" },
    svg("path", { d: LOCK, "fill-rule": "evenodd" }),
  );

// The first steps: each is one click, and is ticked when what it asks for has happened.

import { byId, el } from "./dom.js";
import { HOME } from "./home.js";
import { store, topLevel } from "./store.js";

const [OTTO, ADA] = ["U0OPERATOR", "U0APPROVER"];
const [GENERAL, APPROVALS, ALERTS] = ["C0GENERAL", "C0APPROVALS", "C0ALERTS"];
const NUMBER = "+15550142";

const posts = (channel) => topLevel(channel).filter((m) => m.author.kind === "app" && !m.ephemeral);
const newest = () => Math.max(0, ...store.screen.messages.map((m) => m.number));
const isAnswered = (channel, since) =>
  topLevel(channel).some((m) => m.author.kind === "app" && m.number > since);

const STEPS = [
  {
    title: "Ask for a test user",
    about: `Otto asks to add ${NUMBER} to the flow “welcome” for two hours.`,
    tip: "Otto’s request waits in #approvals. Nothing has changed yet.",
    as: OTTO,
    channel: GENERAL,
    text: `/testusers add welcome ${NUMBER} for 2h because trying the new draft`,
    isDone: () => posts(APPROVALS).length > 0,
  },
  {
    title: "Approve it as Ada",
    about: "Ada is an approver. The card waits for her in #approvals.",
    tip: "You are Ada now. Press Approve on the card.",
    as: ADA,
    channel: APPROVALS,
    isDone: () =>
      posts(APPROVALS).some((m) => /\*Applied\*.*approved by Ada /.test(JSON.stringify(m.blocks))),
  },
  {
    title: "See who can test",
    about: "Otto looks at the list: who can test the flow, until when, and who approved it.",
    tip: "Only Otto sees this reply.",
    as: OTTO,
    channel: GENERAL,
    text: "/testusers list welcome",
    isDone: (since) => isAnswered(GENERAL, since),
  },
  {
    title: "Skip the wait",
    about:
      "The flow “practice” has a rule: up to 4 hours, five times a day, nobody needs to approve.",
    tip: "Applied at once. The card in #approvals names the rule and how often Otto used it today, and has Undo.",
    as: OTTO,
    channel: GENERAL,
    text: `/testusers add practice ${NUMBER} for 2h because trying the new draft`,
    isDone: () =>
      posts(APPROVALS).some((m) => /\*Applied\*.*Rule .*used today/.test(JSON.stringify(m.blocks))),
  },
  {
    title: "Block an organization",
    about: "Another program has used up its limit: an alert opens, and clears by itself.",
    tip: "The alert is in #alerts. Unblock it under Services, and the alert clears by itself.",
    as: OTTO,
    channel: ALERTS,
    text: "/ratelimits check ",
    blocks: true,
    isDone: () => posts(ALERTS).length > 0,
  },
];
const INTRODUCTION =
  "Gatehouse lets a team change who can test a flow, with a second person’s approval, from Slack. It also watches API limits. " +
  "This is the real bot in a Slack-like page on your machine. Try it:";

let items = [];

/** Show the steps; `take(step)` does what one says. */
export function startGuide(take) {
  if (sessionStorage.getItem("guide") === "away") return;
  const tip = el("p", { class: "tip", role: "status" });
  items = STEPS.map((step) => item(step, tip, take));
  const away = () => {
    sessionStorage.setItem("guide", "away");
    items = [];
    byId("guide").replaceChildren();
    document.body.classList.remove("fresh");
  };
  byId("guide").append(
    el("h2", { text: "Get started" }),
    el("p", { class: "introduction", text: INTRODUCTION }),
    el(
      "ol",
      {},
      items.map((one) => one.node),
    ),
    el("button", {
      type: "button",
      class: "icon",
      "aria-label": "Hide this",
      onclick: away,
      text: "✕",
    }),
    tip,
  );
}

function item(step, tip, take) {
  const one = { step, since: Infinity };
  const press = async () => {
    one.since = newest();
    for (const other of items) other.button.removeAttribute("aria-current");
    button.setAttribute("aria-current", "step");
    button.scrollIntoView({ block: "nearest", inline: "center" });
    tip.textContent = step.tip;
    await take(step);
  };
  const done = el("span", { class: "unseen" });
  const button = el("button", { type: "button", onclick: press, text: step.title });
  const node = el("li", {}, button, done, el("p", { class: "about", text: step.about }));
  return Object.assign(one, { button, done, node });
}

/** Tick what has happened; in a channel where nobody has said anything the steps fill the screen. */
export function showGuide() {
  for (const { step, node, done, since } of items) {
    if (node.classList.contains("done") || !step.isDone(since)) continue;
    node.classList.add("done");
    done.textContent = " (done)";
  }
  const isFresh = items.length > 0 && store.channel === GENERAL && !topLevel(GENERAL).length;
  document.body.classList.toggle("fresh", isFresh);
  byId("guide").hidden = store.channel === HOME;
}

// The first steps. A step is ticked once it has happened.

import { byId, el } from "./dom.js";
import { HOME } from "./home.js";
import { store, topLevel } from "./store.js";

const [OTTO, ADA] = ["U0OPERATOR", "U0APPROVER"];
const [GENERAL, APPROVALS, ALERTS] = ["C0GENERAL", "C0APPROVALS", "C0ALERTS"];
const NUMBER = "+15550142";

const posts = (channel) => topLevel(channel).filter((m) => m.author.kind === "app" && !m.ephemeral);
const isOnCard = (words) => posts(APPROVALS).some((m) => words.test(JSON.stringify(m.blocks)));
const newest = () => Math.max(0, ...store.screen.messages.map((m) => m.number));
const isAnswered = (channel, since) =>
  topLevel(channel).some((m) => m.author.kind === "app" && m.number > since);

// A step with `after` can be pressed once that step is done.
const STEPS = [
  {
    title: "Ask for a test user",
    about: `Otto asks to add ${NUMBER} to the flow “welcome” for two hours.`,
    tip: "Otto’s request is in #approvals, where an approver decides.",
    as: OTTO,
    channel: GENERAL,
    text: `/testusers add welcome ${NUMBER} for 2h because trying the new draft`,
    isDone: () => posts(APPROVALS).length > 0,
  },
  {
    title: "Approve it as Ada",
    about: "Ada is an approver. Open #approvals as Ada and press Approve on the card.",
    tip: "You are Ada now. Press Approve on the card.",
    after: "Ask for a test user",
    as: ADA,
    channel: APPROVALS,
    isDone: () => isOnCard(/\*Applied\*.*approved by Ada /),
  },
  {
    title: "See who can test",
    about: "Otto looks at the list: who can test the flow, until when, and who approved it.",
    tip: "You are Otto again, and only Otto sees this reply.",
    after: "Approve it as Ada",
    as: OTTO,
    channel: GENERAL,
    text: "/testusers list welcome",
    isDone: (since) => isAnswered(GENERAL, since),
  },
  {
    title: "Skip the wait",
    about:
      "The flow “practice” has a rule: access of up to 4 hours needs no approval, five times a day.",
    tip: "The rule approved it at once. See the card in #approvals, which has an Undo button.",
    as: OTTO,
    channel: GENERAL,
    text: `/testusers add practice ${NUMBER} for 2h because trying the new draft`,
    isDone: () => isOnCard(/\*Applied\*.*The rule .*requests used/),
  },
  {
    title: "Block an organization",
    about: "The inventory service blocks it, as if another program had used up the limit.",
    tip:
      "The alert appears here. After you press Unblock under Services, it clears at the bot’s " +
      "next test call, within a minute or two.",
    as: OTTO,
    channel: ALERTS,
    text: "/ratelimits check ",
    blocks: true,
    isDone: () => posts(ALERTS).length > 0,
  },
];
const INTRODUCTION =
  "Gatehouse lets a team change who can test a flow, with a second person’s approval, from " +
  "Slack. It also watches API limits. This is the real bot in a Slack-like page on your machine. " +
  "Try it:";

const NEXT =
  "That’s all. Next, look at Home, run a greedy script under Services, or install Gatehouse " +
  "for your team (docs/install.md).";

const tip = el("p", { class: "tip", role: "status" });
let items = [];

/** Show the steps; `take(step)` carries one out. */
export function startGuide(take) {
  if (sessionStorage.getItem("guide") === "away") return;
  items = STEPS.map((step) => item(step, take));
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

/** Return true if another step has to be done before this one. */
const isWaiting = ({ after }) =>
  items.some(({ step, node }) => step.title === after && !node.classList.contains("done"));

function item(step, take) {
  const one = { step, since: Infinity };
  const press = async () => {
    if (button.getAttribute("aria-disabled")) return;
    const isDone = node.classList.contains("done");
    one.since = newest();
    for (const other of items) other.button.removeAttribute("aria-current");
    button.setAttribute("aria-current", "step");
    button.scrollIntoView({ block: "nearest", inline: "center" });
    tip.textContent = isDone ? "" : step.tip;
    // Pressing a step that is done only shows the place where it happened.
    await take(isDone ? { as: step.as, channel: step.channel } : step);
  };
  const done = el("span", { class: "unseen" });
  const button = el("button", { type: "button", onclick: press, text: step.title });
  const node = el("li", {}, button, done, el("p", { class: "about", text: step.about }));
  return Object.assign(one, { button, done, node });
}

/** Tick the steps that are done. While #general is empty, the steps fill the screen. */
export function showGuide() {
  for (const { step, node, done, since } of items) {
    if (node.classList.contains("done") || !step.isDone(since)) continue;
    node.classList.add("done");
    done.textContent = " (done)";
  }
  for (const { step, node, button } of items) {
    // Hide the tip elsewhere, as another person, and when nothing is left to do.
    const isLeft = step.as !== store.me || step.channel !== store.channel;
    const isOver = !step.text && node.classList.contains("done");
    if (button.getAttribute("aria-current")) tip.hidden = isLeft || isOver;
    if (isWaiting(step)) button.setAttribute("aria-disabled", "true");
    else button.removeAttribute("aria-disabled");
  }
  if (items.length && items.every(({ node }) => node.classList.contains("done"))) {
    tip.textContent = NEXT;
    tip.hidden = false;
  }
  const isFresh = items.length > 0 && store.channel === GENERAL && !topLevel(GENERAL).length;
  document.body.classList.toggle("fresh", isFresh);
  byId("guide").hidden = store.channel === HOME;
}

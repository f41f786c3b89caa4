// The first minute: four suggestions that fill the composer.

import { byId, el } from "./dom.js";

const STEPS = [
  {
    title: "List organizations",
    tip: "Send it: every organization of every data center.",
    as: "U0OPERATOR", channel: "C0GENERAL", text: "/orgs",
  },
  {
    title: "Ask for a test user",
    tip: "Send it: Otto asks, and #approvals gets a card. Nothing has changed yet.",
    as: "U0OPERATOR", channel: "C0GENERAL", text: "/testusers add welcome +15550142 for 2h because trying the new draft",
  },
  {
    title: "Approve it as an approver",
    tip: "You are Ada now. Use the card in this channel, or send this to see what is pending.",
    as: "U0APPROVER", channel: "C0APPROVALS", text: "/testusers requests",
  },
  {
    title: "Block an organization",
    tip: "Block it in the panel, send this, and an alert opens here. Lift it, and the alert clears by itself.",
    as: "U0OPERATOR", channel: "C0ALERTS", text: "/ratelimits check ", services: true,
  },
];

/** Show the suggestions; `go(step)` does what one says. */
export function startGuide(go) {
  const place = byId("guide");
  if (sessionStorage.getItem("guide") === "away") return;
  const tip = el("p", { class: "tip", role: "status" });
  const links = STEPS.map((step) => {
    const link = el("a", { href: `#${step.channel}`, text: step.title });
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      for (const one of links) one.removeAttribute("aria-current");
      link.setAttribute("aria-current", "step");
      link.classList.add("done");
      tip.textContent = step.tip;
      await go(step);
    });
    return link;
  });
  const away = () => {
    sessionStorage.setItem("guide", "away");
    place.replaceChildren();
  };
  place.append(
    el("h2", { text: "Your first minute" }),
    el("ol", {}, links.map((link) => el("li", {}, link))),
    el("button", { type: "button", class: "icon", "aria-label": "Put the first minute away", onclick: away, text: "✕" }),
    tip,
  );
}

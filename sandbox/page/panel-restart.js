// A section of the panel: kill the bot and start it again.

import { el } from "./dom.js";
import { post } from "./net.js";

const ABOUT =
  "Like a crash (kill -9). Requests and decisions survive; a command in progress is lost.";

/** The section. */
export function restart() {
  const press = async () => {
    button.disabled = true;
    await post("/page/restart", {});
    button.disabled = false;
  };
  const button = el("button", {
    type: "button",
    class: "action",
    onclick: press,
    text: "Restart the bot",
  });
  return el(
    "section",
    {},
    el("h3", { text: "Crash and restart" }),
    el("p", { class: "note", text: ABOUT }),
    button,
  );
}

// Options that Slack itself provides: people and channels.

import { store } from "./store.js";

const option = (value, text) => ({ value, text: { type: "plain_text", text } });

/** The people to choose from, for the selects that want one; undefined for other selects. */
export function people(element) {
  if (!element.type.includes("users_select")) return undefined;
  return store.people.map((person) => option(person.id, person.name));
}

/** The channels to choose from. */
export const channels = () =>
  store.screen.channels.filter((one) => one.kind !== "direct").map((one) => option(one.id, `#${one.name}`));

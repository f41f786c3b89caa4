// Requests to the sandbox.

import { toast } from "./dom.js";

/** Return the JSON at an address of the sandbox. */
export async function get(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

const SAID = {
  operation_timeout: "Gatehouse did not answer within three seconds.",
  dispatch_failed: "Gatehouse could not be reached, or refused the request.",
};

/** POST a body. The answer's `error` is shown, unless Slackbot posts it. */
export async function post(path, body, { isSaid = false } = {}) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  const said = answer.headers.get("Content-Type")?.includes("json")
    ? JSON.parse(text)
    : { error: text };
  if (said.error && !isSaid) toast(SAID[said.error] ?? said.error);
  return said;
}

/** Call `changed` now and after each change, and `lost` when the connection breaks or returns. */
export function listen(changed, lost) {
  const source = new EventSource("/page/events");
  source.onmessage = () => changed();
  source.onopen = () => lost(false);
  source.onerror = () => lost(true);
}

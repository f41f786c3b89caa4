// Times in the time zone of the acting person.

import { el } from "./dom.js";
import { self } from "./store.js";

const inZone = (language, options) =>
  new Intl.DateTimeFormat(language, { timeZone: self()?.tz, ...options });
const format = (options) => (when) => inZone(undefined, options).format(when);
const time = format({ hour: "numeric", minute: "2-digit" });
const short = format({ day: "numeric", month: "short", year: "numeric" });
const DAY = 86_400_000;

/** A time in this person's time zone: `2026-12-01T09:00`. */
export function wall(when) {
  const shown = {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  };
  const part = Object.fromEntries(
    inZone("en", shown)
      .formatToParts(when)
      .map((one) => [one.type, one.value]),
  );
  return `${part.year}-${part.month}-${part.day}T${part.hour}:${part.minute}`;
}

/** The seconds since 1970 at a time in this person's time zone. */
export function momentOf(shown) {
  const utc = Date.parse(`${shown}Z`);
  const at = (guess) => utc - (Date.parse(`${wall(guess)}Z`) - guess);
  return Math.round(at(at(utc)) / 1000);
}

function pretty(plain) {
  return (when) => {
    const midnight = (date) => Date.parse(wall(date).slice(0, 10));
    const days = (midnight(when) - midnight(Date.now())) / DAY;
    return { "-1": "yesterday", 0: "today", 1: "tomorrow" }[days] ?? plain(when);
  };
}

const seconds24 = format({
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const long = format({ weekday: "long", day: "numeric", month: "long", year: "numeric" });
// Slack's date formats: those that the bot uses, and the simplest others.
const TOKENS = {
  date_num: (when) => wall(when).slice(0, 10),
  date_short_pretty: pretty(short),
  time,
};

/** Slack's `<!date^…>`: `epoch^format^link`, with a fallback. */
export function slackDate(body, fallback) {
  const [epoch, wanted = "{date_short_pretty} at {time}"] = body.split("^");
  const when = new Date(Number(epoch) * 1000);
  if (Number.isNaN(when.getTime())) return el("span", { text: fallback ?? body });
  const words = wanted.replace(/\{(\w+)\}/g, (whole, token) => TOKENS[token]?.(when) ?? whole);
  const full = inZone(undefined, { dateStyle: "full", timeStyle: "long" });
  return el("time", { datetime: when.toISOString(), title: full.format(when), text: words });
}

/** The time at which a message was written. */
export function messageTime(ts) {
  const when = new Date(Number(ts) * 1000);
  return el("time", { class: "when", datetime: when.toISOString(), text: time(when) });
}

/** The day of a message, in words. */
export const dayOf = (ts) => pretty(long)(new Date(Number(ts) * 1000));

/** A time with seconds, for the list of calls. */
export const clock = (seconds) => seconds24(new Date(seconds * 1000));

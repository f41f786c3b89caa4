// Times in the zone of whoever looks.

import { el } from "./dom.js";

const format = (options) => (when) => new Intl.DateTimeFormat(undefined, options).format(when);
const time = format({ hour: "numeric", minute: "2-digit" });
const short = format({ day: "numeric", month: "short", year: "numeric" });
const DAY = 86_400_000;

function pretty(plain) {
  return (when) => {
    const midnight = (date) => new Date(date).setHours(0, 0, 0, 0);
    const days = Math.round((midnight(when) - midnight(Date.now())) / DAY);
    return { "-1": "yesterday", 0: "today", 1: "tomorrow" }[days] ?? plain(when);
  };
}

function ago(when) {
  const seconds = Math.round((when - Date.now()) / 1000);
  const words = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  for (const [unit, size] of [["day", 86_400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(seconds) >= size) return words.format(Math.round(seconds / size), unit);
  }
  return words.format(seconds, "second");
}

const seconds24 = format({ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const long = format({ weekday: "long", day: "numeric", month: "long", year: "numeric" });
const medium = format({ day: "numeric", month: "long", year: "numeric" });
const two = (number) => String(number).padStart(2, "0");
const TOKENS = {
  date_num: (when) => [when.getFullYear(), two(when.getMonth() + 1), two(when.getDate())].join("-"),
  date: medium,
  date_short: short,
  date_long: long,
  date_pretty: pretty(medium),
  date_short_pretty: pretty(short),
  date_long_pretty: pretty(long),
  day_divider_pretty: pretty(long),
  time,
  time_secs: format({ hour: "numeric", minute: "2-digit", second: "2-digit" }),
  ago,
};

/** A `<!date^…>` of Slack: `epoch^format^link`, with a fallback. */
export function slackDate(body, fallback) {
  const [epoch, wanted = "{date_short_pretty} at {time}"] = body.split("^");
  const when = new Date(Number(epoch) * 1000);
  if (Number.isNaN(when.getTime())) return el("span", { text: fallback ?? body });
  const words = wanted.replace(/\{(\w+)\}/g, (whole, token) => TOKENS[token]?.(when) ?? whole);
  const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
  return el("time", { datetime: when.toISOString(), title: full.format(when), text: words });
}

/** The time at which a message was written. */
export function messageTime(ts) {
  const when = new Date(Number(ts) * 1000);
  return el("time", { class: "when", datetime: when.toISOString(), text: time(when) });
}

/** The day of a message, in words. */
export const dayOf = (ts) => pretty(long)(new Date(Number(ts) * 1000));

/** Hours, minutes and seconds, where calls are listed. */
export const clock = (seconds) => seconds24(new Date(seconds * 1000));

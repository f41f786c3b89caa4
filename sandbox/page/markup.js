// Slack's own markup (mrkdwn) and rich text as elements of the page.

import { slackDate } from "./dates.js";
import { el } from "./dom.js";
import { channelName, personName } from "./store.js";

/** Text between two equal marks that aren't inside a word: `*bold*`. */
function between(sign) {
  const inWord = `[\\p{L}\\p{N}${sign}]`;
  const edge = sign === "*" ? "\\*" : sign;
  return `(?<!${inWord})${edge}(\\S(?:[^${sign}\\n]*\\S)?)${edge}(?!${inWord})`;
}

const PIECES = new RegExp(
  [
    "```([\\s\\S]+?)```",
    "`([^`\\n]+)`",
    "<([^<>\\n]+)>",
    ":([a-z0-9_+-]+):",
    between("*"),
    between("_"),
    between("~"),
  ].join("|"),
  "gu",
);

// The emoji that the bot uses. Other names are shown as text.
const EMOJI = {
  alarm_clock: "⏰",
  arrows_counterclockwise: "🔄",
  calendar: "📅",
  gear: "⚙️",
  grey_question: "❔",
  heavy_minus_sign: "➖",
  hourglass: "⌛",
  key: "🔑",
  large_green_circle: "🟢",
  large_orange_circle: "🟠",
  large_yellow_circle: "🟡",
  no_entry: "⛔",
  red_circle: "🔴",
  tada: "🎉",
  warning: "⚠️",
  wastebasket: "🗑️",
  white_check_mark: "✅",
  x: "❌",
};

const decode = (text) => text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

/** mrkdwn as nodes. Lines that begin with `>` are a quotation. */
export function mrkdwn(text) {
  const nodes = [];
  let quote = null;
  const parts = text.split(/(```[\s\S]+?```)/);
  for (const part of parts) {
    if (part.startsWith("```") && part.endsWith("```") && part.length > 6) {
      nodes.push(el("pre", { text: decode(part.slice(3, -3).replace(/^\n/, "")) }));
      quote = null;
      continue;
    }
    part.split("\n").forEach((line, index) => {
      const quoted = /^(?:&gt;|>)\s?(.*)$/.exec(line);
      if (quoted) {
        if (quote) quote.append(el("br"));
        else nodes.push((quote = el("blockquote")));
        quote.append(...inline(quoted[1]));
        return;
      }
      if (index > 0 && !quote) nodes.push(el("br"));
      quote = null;
      nodes.push(...inline(line));
    });
  }
  return nodes;
}

function inline(text) {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(PIECES)) {
    if (found.index > from) nodes.push(decode(text.slice(from, found.index)));
    nodes.push(piece(found));
    from = found.index + found[0].length;
  }
  if (from < text.length) nodes.push(decode(text.slice(from)));
  return nodes;
}

function piece([whole, pre, code, angle, name, bold, italic, strike]) {
  if (pre !== undefined) return el("pre", { text: decode(pre) });
  if (code !== undefined) return el("code", { text: decode(code) });
  if (angle !== undefined) return reference(angle);
  if (name !== undefined) return named(name) ?? whole;
  if (bold !== undefined) return el("strong", {}, inline(bold));
  if (italic !== undefined) return el("em", {}, inline(italic));
  return el("s", {}, inline(strike));
}

function named(name) {
  const sign = EMOJI[name];
  return (
    sign &&
    el("span", { class: "emoji", role: "img", "aria-label": name.replaceAll("_", " "), text: sign })
  );
}

function reference(inside) {
  const [target, label] = inside.split("|", 2);
  const [sign, rest] = [target[0], target.slice(1)];
  if (sign === "@") return mention(`@${personName(rest) ?? label ?? rest}`);
  if (sign === "#") return mention(`#${channelName(rest) ?? (label || rest)}`);
  if (target.startsWith("!date^")) return slackDate(target.slice(6), label && decode(label));
  if (target.startsWith("!subteam^")) return mention(label ?? "@approvers");
  if (sign === "!") return mention(`@${rest}`);
  return link(decode(target), label === undefined ? decode(target) : decode(label));
}

const mention = (text) => el("span", { class: "mention", text: decode(text) });

/** Return true if a link may have this address, because it can't run code in the page. */
export const isSafe = (address) => /^(https?|mailto):/i.test(address);

function link(address, words) {
  if (!isSafe(address)) return words;
  return el("a", { href: address, target: "_blank", rel: "noopener noreferrer", text: words });
}

/** A text object: mrkdwn, or plain text, in which only emoji names are replaced. */
export function textObject(object) {
  if (!object) return [];
  if (object.type === "mrkdwn") return mrkdwn(object.text);
  return object.text.split(/(:[a-z0-9_+-]+:)/).map((part) => {
    const name = /^:([a-z0-9_+-]+):$/.exec(part)?.[1];
    return (name && named(name)) || part;
  });
}

// Creates elements, never from HTML strings, so text from people and services stays text.

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties (attributes; `on…` are listeners; `class`, `text`) and children. */
export function el(tag, props = {}, ...children) {
  return dress(document.createElement(tag), props, children);
}

/** An SVG element with attributes and children. */
export function svg(tag, props = {}, ...children) {
  return dress(document.createElementNS(SVG, tag), props, children);
}

function dress(node, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "text") node.textContent = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

let last = 0;

/** An id that no other element has. */
export const freshId = (word) => `${word}-${++last}`;

/** Show a short notice at the bottom of the page, and announce it to screen readers. */
export function toast(words) {
  const place = byId("toast");
  place.textContent = words;
  place.classList.add("shown");
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => place.classList.remove("shown"), 6000);
}

// Charts of data_visualization blocks. A table below each chart has the same numbers.

import { el, svg } from "./dom.js";

// The drawing is scaled to the available space. On a phone it is narrow and its text readable.
const phone = matchMedia("(max-width: 480px)");
let width = 640;
const HEIGHT = 230;
const LEFT = 46;
const BELOW = 24; // room for the labels beneath
const TOP = 12;

/** A chart with its title and its data. */
export function chart(block) {
  const body = block.chart;
  width = phone.matches ? 300 : 640;
  const drawn = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${HEIGHT}`,
      role: "img",
      "aria-label": `${block.title}: ${spoken(body)}`,
    },
    axes(body),
  );
  return el(
    "figure",
    { class: `chart ${body.type}` },
    el("figcaption", { text: block.title }),
    drawn,
    el("details", {}, el("summary", { text: "Numbers" }), numbers(body)),
  );
}

function spoken({ series: [one] }) {
  return `${one.name}, ${one.data.map((point) => `${point.label} ${point.value}`).join(", ")}`;
}

function numbers({ series: [one] }) {
  const rows = [["Label", one.name], ...one.data.map((point) => [point.label, point.value])];
  const lines = rows.map((row, index) =>
    el(
      "tr",
      {},
      row.map((cell, column) => el(index && column ? "td" : "th", { text: String(cell) })),
    ),
  );
  return el("table", { class: "numbers" }, el("tbody", {}, lines));
}

function ticks(highest) {
  const rough = Math.max(highest, 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const whole = Number.isInteger(highest) ? Math.max(step, 1) : step;
  return Array.from({ length: Math.ceil(highest / whole) + 1 || 2 }, (_, n) => n * whole);
}

function axes(body) {
  const labels = body.axis_config.categories;
  const highest = Math.max(1, ...body.series[0].data.map((point) => point.value));
  const marks = ticks(highest);
  const top = marks.at(-1);
  const foot = HEIGHT - BELOW;
  const y = (value) => foot - (value / top) * (foot - TOP);
  const slot = (width - LEFT - 8) / labels.length;
  const x = (index) => LEFT + slot * (index + 0.5);
  const grid = marks.map((value) => [
    svg("line", { class: "grid", x1: LEFT, x2: width - 8, y1: y(value), y2: y(value) }),
    svg("text", {
      class: "tick",
      x: LEFT - 8,
      y: y(value) + 4,
      "text-anchor": "end",
      text: shortNumber(value),
    }),
  ]);
  const every = Math.ceil((Math.max(...labels.map((label) => label.length)) * 7.2) / slot);
  const names = labels.map((label, index) =>
    index % every
      ? null
      : svg("text", {
          class: "tick",
          x: x(index),
          y: foot + 18,
          "text-anchor": "middle",
          text: label,
        }),
  );
  return [
    ...grid.flat(),
    ...names.filter(Boolean),
    ...title(body),
    ...bars(body, { labels, x, y, slot }),
  ];
}

function title({ axis_config: { y_label: text } }) {
  const middle = (HEIGHT - BELOW + TOP) / 2;
  return text
    ? [
        svg("text", {
          class: "axis",
          transform: `rotate(-90) translate(${-middle} 11)`,
          "text-anchor": "middle",
          text,
        }),
      ]
    : [];
}

function bars({ series: [{ name, data }] }, { labels, x, y, slot }) {
  const wide = Math.min(44, slot * 0.76);
  return data.map(({ label, value }) => {
    const height = Math.max(y(0) - y(value), value > 0 ? 1.5 : 0);
    const left = x(labels.indexOf(label)) - wide / 2 + 0.5;
    const place = {
      x: left,
      y: y(0) - height,
      width: Math.max(wide - 1, 1),
      height,
      rx: Math.min(3, wide / 4),
    };
    return svg(
      "rect",
      { class: "bar", ...place },
      svg("title", { text: `${name}, ${label}: ${value}` }),
    );
  });
}

const shortNumber = (value) =>
  value >= 10_000 ? `${value / 1000}k` : String(Math.round(value * 100) / 100);

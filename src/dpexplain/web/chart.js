// Effects as horizontal bars with error bars of two standard errors, in SVG. Colours come from the page's style sheet.
import { identity, setText, svgElement } from "./dom.js";
import { signed } from "./effects.js";

/** Signs that do not need colour. */
export const MARKS = { positive: "▸", negative: "◂", uncertain: "?" };
const NICE = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
const NARROW = 520;

/** The smallest round number at or above `largest`: the axis holds still while a slider moves. */
export function axisLimit(largest) {
  if (!(largest > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(largest));
  return unit * (NICE.find((nice) => nice * unit >= largest * (1 - 1e-12)) ?? 10);
}

/** Draws into `root`; `update(effects, words)` takes effects from `rank`, already cut, and what each end of the axis means. */
export function createChart(root) {
  const hatch = identity("hatch");
  const axis = svgElement("g", { class: "axis" });
  const rows = svgElement("g", { class: "rows" });
  const pattern = svgElement("pattern", { id: hatch, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  pattern.append(svgElement("rect", { width: 5, height: 5, class: "hatch-ground" }), svgElement("rect", { width: 2, height: 5, class: "hatch-line" }));
  const svg = svgElement("svg", { role: "img", class: "bars" }, svgElement("defs", {}, pattern), axis, rows);
  root.append(svg);
  const known = new Map();
  let latest = null;

  const draw = (still = false) => {
    if (latest === null) return;
    svg.classList.toggle("still", still);
    const { effects, words } = latest;
    const frame = layout(root.clientWidth || 640, effects);
    svg.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
    svg.setAttribute("height", frame.height);
    svg.setAttribute("aria-label", words.label);
    drawAxis(axis, frame, words);
    const wanted = new Set(effects.map((effect) => effect.index));
    for (const [index, row] of known) if (!wanted.has(index)) known.delete(index) && row.root.remove();
    effects.forEach((effect, position) => {
      if (!known.has(effect.index)) known.set(effect.index, createRow(rows, hatch));
      known.get(effect.index).place(effect, position, frame);
    });
  };
  new ResizeObserver(() => draw(true)).observe(root); // a resized page shows the same bars: nothing should move
  return {
    update(effects, words) {
      latest = { effects, words };
      draw();
    },
  };
}

/** Where everything goes: names left and numbers right of the plot, or above it where the page is narrow. */
function layout(width, effects) {
  const narrow = width < NARROW;
  const limit = axisLimit(Math.max(...effects.map(({ value, error }) => Math.abs(value) + 2 * (error ?? 0)), 0));
  const left = narrow ? 2 : Math.min(Math.max(...effects.map(({ name, note }) => 7.4 * (name.length + (note ? note.length + 2 : 0))), 90) + 14, width * 0.36);
  const right = narrow ? 2 : 128;
  const row = narrow ? 48 : 34;
  const top = 30;
  const middle = left + (width - left - right) / 2;
  const scale = (width - left - right) / 2 / limit;
  const bottom = top + row * effects.length;
  return { width, narrow, limit, left, right, row, top, bottom, height: bottom + 30, middle, x: (value) => middle + scale * value };
}

function drawAxis(axis, frame, words) {
  const digits = Math.max(0, 1 - Math.floor(Math.log10(frame.limit)));
  const lines = [-1, -0.5, 0, 0.5, 1].flatMap((share) => {
    const x = frame.x(share * frame.limit);
    const anchor = share === -1 ? "start" : share === 1 ? "end" : "middle";
    const text = share === 0 ? "0" : signed(share * frame.limit, digits);
    return [
      svgElement("line", { class: share === 0 ? "zero" : "grid", x1: x, x2: x, y1: frame.top - 4, y2: frame.bottom + 2 }),
      svgElement("text", { class: "tick", x, y: frame.bottom + 20, "text-anchor": frame.narrow ? anchor : "middle" }, text),
    ];
  });
  const ends = [
    svgElement("text", { class: "end negative", x: frame.middle - 12, y: 16, "text-anchor": "end" }, `◂ ${words.away}`),
    svgElement("text", { class: "end positive", x: frame.middle + 12, y: 16 }, `${words.towards} ▸`),
  ];
  axis.replaceChildren(...lines, ...ends);
}

function createRow(rows, hatch) {
  const bar = svgElement("rect", { class: "bar", rx: 2.5 });
  const spread = svgElement("rect", { class: "spread", height: 1.5 });
  const caps = [0, 1].map(() => svgElement("rect", { class: "spread", width: 1.5, height: 9 }));
  const title = svgElement("title");
  const name = svgElement("tspan", { class: "name" });
  const note = svgElement("tspan", { class: "note" });
  const label = svgElement("text", { class: "label" }, name, note);
  const number = svgElement("tspan", { class: "number" });
  const mark = svgElement("tspan", { class: "mark" });
  const plusMinus = svgElement("tspan", { class: "note" });
  const value = svgElement("text", { class: "value", "text-anchor": "end" }, mark, number, plusMinus);
  const root = svgElement("g", { class: "row" }, title, bar, spread, ...caps, label, value);
  rows.append(root);
  return {
    root,
    place(effect, position, frame) {
      const error = effect.error ?? 0;
      const y = frame.top + position * frame.row;
      const centre = frame.narrow ? 33 : frame.row / 2;
      const height = frame.narrow ? 13 : 17;
      root.setAttribute("class", `row ${effect.reading}${effect.error === null ? " unknown" : ""}`);
      root.dataset.index = effect.index;
      root.style.transform = `translate(0px, ${y}px)`;
      bar.setAttribute("fill", effect.reading === "uncertain" ? `url(#${hatch})` : "currentColor");
      box(bar, frame.x(Math.min(effect.value, 0)), centre - height / 2, Math.abs(frame.x(effect.value) - frame.x(0)), height);
      const [from, to] = [frame.x(effect.value - 2 * error), frame.x(effect.value + 2 * error)];
      box(spread, from, centre - 0.75, effect.error === null ? 0 : to - from, 1.5);
      caps.forEach((cap, i) => box(cap, (i ? to : from) - 0.75, centre - 4.5, effect.error === null ? 0 : 1.5, 9));
      setText(title, `${effect.name}: ${signed(effect.value, 4)}${effect.error === null ? ", error unknown" : ` ± ${(2 * error).toFixed(4)}`}`);
      label.setAttribute("x", frame.narrow ? frame.left : 0);
      label.setAttribute("y", frame.narrow ? 18 : centre + 5);
      value.setAttribute("x", frame.width - (frame.narrow ? 2 : 0));
      value.setAttribute("y", frame.narrow ? 18 : centre + 5);
      setText(mark, `${MARKS[effect.reading]} `);
      setText(number, signed(effect.value));
      setText(plusMinus, effect.error === null ? " ± ?" : ` ± ${(2 * error).toFixed(3)}`);
      fit(label, name, note, effect, frame.narrow ? frame.width - 140 : frame.left - 14);
    },
  };
}

function box(rect, x, y, width, height) {
  rect.setAttribute("x", x.toFixed(2));
  rect.setAttribute("y", y.toFixed(2));
  rect.setAttribute("width", Math.max(width, 0).toFixed(2));
  rect.setAttribute("height", height);
}

/** The name, then its note where there is room, cut with an ellipsis where there is none. */
function fit(label, name, note, effect, room) {
  setText(name, effect.name);
  setText(note, effect.note ? `  ${effect.note}` : "");
  if (label.getComputedTextLength() <= room) return;
  setText(note, "");
  for (let cut = effect.name.length - 1; cut > 1 && label.getComputedTextLength() > room; cut--) setText(name, `${effect.name.slice(0, cut)}…`);
}

// Effects as horizontal bars from zero, or as steps from one answer to another, with error bars of two standard errors, in SVG.
import { identity, setText, svgElement } from "./dom.js";

/** Symbols for the sign of an effect, for readers who cannot use colour. */
export const MARKS = { positive: "▸", negative: "◂", uncertain: "?", none: "=" };
const NICE = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
const NARROW = 520;

/** The smallest round number at or above `largest`: the axis holds still while a slider moves. */
export function axisLimit(largest) {
  if (!(largest > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(largest));
  return unit * (NICE.find((nice) => nice * unit >= largest * (1 - 1e-12)) ?? 10);
}

/** Round places from at or below `low` to at or above `high`, about `count` of them. */
export function niceTicks(low, high, count = 5) {
  const span = high - low > 0 ? high - low : Math.abs(high) || 1;
  const rough = span / (count - 1);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * ([1, 2, 5, 10].find((nice) => nice * unit >= rough * (1 - 1e-9)) ?? 10);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(Math.ceil(high / step - 1e-9), first + 1);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Effects as bars from zero, the axis even on both sides of it. */
export function barsAxis(effects, scale) {
  const limit = axisLimit(Math.max(...effects.map(({ value, error }) => Math.abs(value) + 2 * (error ?? 0)), 0));
  return { ticks: [-1, -0.5, 0, 0.5, 1].map((share) => share * limit), zero: 0, tick: (value) => (value === 0 ? "0" : scale.tick(value)) };
}

/** Steps between answers: `places` are the average and the answer. */
export function stepsAxis(steps, places, scale) {
  const ends = steps.flatMap(({ start, value, error }) => [start, start + value - 2 * (error ?? 0), start + value + 2 * (error ?? 0)]);
  const all = [...places, ...ends];
  const ticks = niceTicks(Math.min(...all), Math.max(...all));
  return { ticks, zero: null, tick: (value) => scale.place(value, ticks[1] - ticks[0]) };
}

/** Draws into `root`; `update(effects, axis, words)` takes effects already ranked and cut: {index, name, note, value, error, reading} and,
 * for steps, {start}; {place} is a mark instead of a bar. `words` has the label, how numbers are written, and what each end means. */
export function createChart(root) {
  const hatch = identity("hatch");
  const axis = svgElement("g", { class: "axis" });
  const rows = svgElement("g", { class: "rows" });
  const pattern = svgElement("pattern", { id: hatch, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  pattern.append(svgElement("rect", { width: 5, height: 5, class: "hatch-ground" }), svgElement("rect", { width: 2, height: 5, class: "hatch-line" }));
  const svg = svgElement("svg", { role: "img", class: "bars", "aria-label": "Nothing to show yet" }, svgElement("defs", {}, pattern), axis, rows);
  root.append(svg);
  const known = new Map();
  let latest = null;

  const draw = (still = false) => {
    if (latest === null) return;
    svg.classList.toggle("still", still);
    const { effects, words } = latest;
    const frame = layout(root.clientWidth || 640, effects, latest.axis, words);
    svg.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
    svg.setAttribute("height", frame.height);
    svg.setAttribute("aria-label", words.label);
    drawAxis(axis, frame, words);
    const wanted = new Set(effects.map((effect) => effect.index));
    for (const [index, row] of known) if (!wanted.has(index)) known.delete(index) && row.root.remove();
    effects.forEach((effect, position) => {
      if (!known.has(effect.index)) known.set(effect.index, createRow(rows, hatch));
      known.get(effect.index).place(effect, position, frame, words);
    });
  };
  new ResizeObserver(() => draw(true)).observe(root); // a resized page shows the same bars: nothing should move
  return {
    update(effects, chosen, words) {
      latest = { effects, axis: chosen, words };
      draw();
    },
  };
}

/** The layout: names left and numbers right of the plot, or above it on narrow pages. */
function layout(width, effects, axis, words) {
  const narrow = width < NARROW;
  const left = narrow ? 2 : Math.min(Math.max(...effects.map(({ name, note, place }) => (place === undefined ? 7.4 : 8.4) * (name.length + (note ? note.length + 2 : 0))), 90) + 14, width * 0.36);
  const longest = Math.max(...effects.map((effect) => numbersOf(effect, words).length), 6);
  const right = narrow ? 2 : 16 + 7.6 * longest;
  const row = narrow ? 48 : 34;
  const top = words.away ? 30 : 12;
  const [low, high] = [axis.ticks[0], axis.ticks.at(-1)];
  const scale = (width - left - right - (narrow ? 4 : 20)) / (high - low);
  const bottom = top + row * effects.length;
  return { width, narrow, left, right, numbers: 24 + 7.6 * longest, row, top, bottom, height: bottom + 30, axis, x: (value) => left + (narrow ? 2 : 10) + scale * (value - low) };
}

/** The text beside a bar. Its length determines the width of the column of numbers. */
function numbersOf(effect, words) {
  if (effect.place !== undefined) return effect.text;
  const spread = effect.isRest ? "" : effect.error === null ? " ± ?" : ` ± ${words.spread(2 * effect.error)}`;
  return `▸ ${words.number(effect.value)}${spread}`;
}

function drawAxis(axis, frame, words) {
  const { ticks, zero, tick } = frame.axis;
  const every = frame.narrow && ticks.length > 5 ? 2 : 1;
  const lines = ticks.flatMap((value, i) => {
    const x = frame.x(value);
    const anchor = i === 0 ? "start" : i === ticks.length - 1 ? "end" : "middle";
    return [
      svgElement("line", { class: value === zero ? "zero" : "grid", x1: x, x2: x, y1: frame.top - 4, y2: frame.bottom + 2 }),
      i % every ? null : svgElement("text", { class: "tick", x, y: frame.bottom + 20, "text-anchor": frame.narrow ? anchor : "middle" }, tick(value)),
    ];
  });
  const ends = !words.away ? [] : [
    svgElement("text", { class: "end negative", x: frame.x(0) - 12, y: 16, "text-anchor": "end" }, `◂ ${words.away}`),
    svgElement("text", { class: "end positive", x: frame.x(0) + 12, y: 16 }, `${words.towards} ▸`),
  ];
  axis.replaceChildren(...lines.filter((line) => line !== null), ...ends);
}

function createRow(rows, hatch) {
  const bar = svgElement("rect", { class: "bar", rx: 2.5 });
  const link = svgElement("rect", { class: "link", width: 1 });
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
  const root = svgElement("g", { class: "row" }, title, bar, link, spread, ...caps, label, value);
  rows.append(root);

  const placeText = (effect, centre, frame) => {
    label.setAttribute("x", frame.narrow ? frame.left : 0);
    label.setAttribute("y", frame.narrow ? 18 : centre + 5);
    value.setAttribute("x", frame.width - (frame.narrow ? 2 : 0));
    value.setAttribute("y", frame.narrow ? 18 : centre + 5);
    const beside = effect.place === undefined ? frame.numbers : 24 + 8.4 * effect.text.length; // where the answer itself stands
    fit(label, name, note, effect, frame.narrow ? frame.width - beside : frame.left - 14);
  };
  const placeBar = (effect, centre, frame, words) => {
    const height = frame.narrow ? 13 : 17;
    const [from, to] = [effect.start ?? 0, (effect.start ?? 0) + effect.value].map(frame.x);
    bar.setAttribute("fill", effect.reading === "uncertain" ? `url(#${hatch})` : "currentColor");
    box(bar, Math.min(from, to), centre - height / 2, Math.max(Math.abs(to - from), 1), height);
    const reach = effect.error === null ? 0 : 2 * effect.error;
    const end = (effect.start ?? 0) + effect.value;
    const [low, high] = [frame.x(end - reach), frame.x(end + reach)];
    box(spread, low, centre - 0.75, effect.error === null ? 0 : high - low, 1.5);
    caps.forEach((cap, i) => box(cap, (i ? high : low) - 0.75, centre - 4.5, effect.error === null ? 0 : 1.5, 9));
    box(link, to - 0.5, centre + height / 2, effect.start === undefined ? 0 : 1, frame.row - height);
    setText(mark, `${MARKS[effect.reading]} `);
    setText(number, words.number(effect.value));
    const bare = effect.isRest || effect.reading === "none"; // no error to state
    setText(plusMinus, bare ? "" : effect.error === null ? " ± ?" : ` ± ${words.spread(reach)}`);
    setText(title, `${effect.name}: ${words.number(effect.value)}${bare ? "" : effect.error === null ? ", error unknown" : ` ± ${words.spread(reach)}`}`);
  };
  const placeMark = (effect, centre, frame) => {
    const height = frame.narrow ? 13 : 17;
    bar.setAttribute("fill", "currentColor");
    box(bar, frame.x(effect.place) - 1.5, centre - height / 2, 3, height);
    box(spread, 0, 0, 0, 0);
    caps.forEach((cap) => box(cap, 0, 0, 0, 0));
    box(link, frame.x(effect.place) - 0.5, centre + height / 2, effect.isLast ? 0 : 1, frame.row - height);
    setText(mark, "");
    setText(number, effect.text);
    setText(plusMinus, "");
    setText(title, `${effect.name}: ${effect.text}`);
  };
  return {
    root,
    place(effect, position, frame, words) {
      const y = frame.top + position * frame.row;
      const centre = frame.narrow ? 33 : frame.row / 2;
      const kind = effect.place === undefined ? `${effect.reading}${effect.error === null ? " unknown" : ""}` : "place";
      root.setAttribute("class", `row ${kind}`);
      root.dataset.index = effect.index;
      root.style.transform = `translate(0px, ${y}px)`;
      if (effect.place === undefined) placeBar(effect, centre, frame, words);
      else placeMark(effect, centre, frame);
      placeText(effect, centre, frame);
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

// One answer on a page: the sentence, the waterfall from the average to the answer, and what would change it. Shared by both pages.
import { changesOf, rankedChanges } from "./changes.js";
import { barsAxis, createChart, stepsAxis } from "./chart.js";
import { setText } from "./dom.js";
import { summary } from "./effects.js";
import { fillCounts, partsOf } from "./frame.js";
import { sentenceOf, waterfallSteps } from "./steps.js";
import { createStepsTable, createTable } from "./table.js";

const STEPS_SHOWN = 10;

/** `update({values, error, contributions, details}, record)`: slopes in labels, contributions in the answer's own units or null. */
export function createAnswer(at, { names, features, outcome, scale }) {
  const waterfall = createChart(at("waterfall"));
  const bars = createChart(at("chart"));
  const stepsTable = createStepsTable(at("steps-table"), `Contributions to the model’s answer${inUnit(scale)}, largest first`);
  const caption = () => `Effects on ${outcome}${inUnit(scale)}, strongest first`;
  const table = createTable(at("table"), caption());
  const words = { number: scale.difference, spread: scale.spread };
  const count = at("count");
  let ranked = [];
  let expected = ""; // about errors, where none are known
  let cap = ""; // that a cap on the slopes binds
  let shared = ""; // which features go together, so that a plane shares their effects
  let speaking = 0;

  const describe = () => [summary(ranked, outcome, scale, 3, expected), cap, shared].filter(Boolean).join(" ");
  const showBars = () => {
    const limit = count.value === "all" ? ranked.length : Number(count.value);
    const label = `Bar chart. ${describe()} All values are in the table that follows.`;
    bars.update(ranked.slice(0, limit), barsAxis(ranked.slice(0, limit), scale), { ...words, away: "away", towards: "towards", label });
  };
  const showSteps = (given, parts) => {
    const steps = waterfallSteps(given, parts, STEPS_SHOWN);
    const ends = [
      { index: "base", name: given.average ?? "the average", place: given.base, text: scale.format(given.base) },
      { index: "answer", name: "this record", place: given.answer, text: scale.format(given.answer), isLast: true },
    ];
    const label = `Waterfall chart. ${sentenceOf(given, scale)} ${describeSteps(steps, scale)} All contributions are in the table that follows.`;
    waterfall.update([ends[0], ...steps, ends[1]], stepsAxis(steps, [given.base, given.answer], scale), { ...words, label });
    stepsTable.update(waterfallSteps(given, parts, given.values.length), words);
  };
  count.addEventListener("change", showBars);
  fillCounts(count, names.length);
  return {
    update({ values, error, contributions, details }, record, wait = 0) {
      expected = details?.expected?.text ?? "";
      cap = details?.cap ?? "";
      shared = details?.shared?.text ?? "";
      ranked = rankedChanges(changesOf(features, record), values, error, scale);
      showBars();
      table.update(ranked, words);
      at("whole").hidden = at("reading-whole").hidden = contributions === null;
      at("summary").setAttribute("aria-live", contributions === null ? "polite" : "off");
      at("answer").classList.toggle("unknown", error === null);
      at("whole").classList.toggle("unknown", contributions?.error === null);
      if (contributions !== null) showSteps(contributions, partsOf(features, record));
      const text = contributions === null ? describe() : sentenceOf(contributions, scale);
      clearTimeout(speaking);
      speaking = setTimeout(() => {
        setText(at(contributions === null ? "summary" : "sentence"), text);
        if (contributions !== null) setText(at("summary"), describe());
      }, wait); // a screen reader should hear where a slider stopped, not every step
    },
    strongest: () => ranked,
    /** What a positive effect leads towards from now on; shown with the next answer's numbers. */
    setOutcome(text) {
      outcome = text;
      table.setCaption(caption());
      for (const part of document.querySelectorAll(".outcome")) setText(part, text);
    },
  };
}

function inUnit(scale) {
  return scale.unit ? ` in percentage ${scale.unit}` : "";
}

/** The largest steps in words. */
function describeSteps(steps, scale) {
  return `${steps.slice(0, 3).map(({ name, note, value }) => `${name}${note ? ` ${note}` : ""}: ${scale.difference(value)}`).join("; ")}.`;
}

// The published page: wires the release's mathematics to the form, the chart and the table.
import { MARKS, createChart } from "./chart.js";
import { unpack } from "./data.js";
import { element, setText } from "./dom.js";
import { encode, featuresOf } from "./domain.js";
import { rank, signed, summary } from "./effects.js";
import { buildForm, startingRecord } from "./form.js";
import { fillCounts, notesOf, offerTable, offerThemes } from "./frame.js";
import { presets } from "./presets.js";
import { explain, prepare } from "./solve.js";
import { createTable } from "./table.js";

const at = (id) => document.getElementById(id);

function start(data) {
  const release = prepare(data.release);
  const features = featuresOf(data.domain, data.names);
  const words = { away: "away", towards: "towards", label: "" };
  const chart = createChart(at("chart"));
  const table = createTable(at("table"), `Effects on ${data.outcome} for the record in the form, strongest first`);
  const strip = offerStrip(at("strip"), at("chart"));
  const count = at("count");
  let ranked = [];
  let speaking = 0;

  const show = () => {
    const limit = count.value === "all" ? ranked.length : Number(count.value);
    chart.update(ranked.slice(0, limit), { ...words, label: `Bar chart. ${summary(ranked, data.outcome)} All values are in the table that follows.` });
  };
  const speak = () => setText(at("summary"), summary(ranked, data.outcome));
  const answer = (record) => {
    at("answer").classList.toggle("stale", record === null);
    if (record === null) return;
    mark(record);
    const { values, error } = explain(release, encode(features, record));
    const notes = notesOf(features, record);
    ranked = rank(data.names, values, error).map((effect) => ({ ...effect, note: notes[effect.index] }));
    show();
    strip(ranked);
    table.update(ranked);
    clearTimeout(speaking);
    speaking = setTimeout(speak, 350); // a screen reader should hear where the slider stopped, not every step
  };
  const examples = presets(features, release);
  const mark = offerPresets(at("presets"), examples, (record) => form.set(record));
  const form = buildForm(at("fields"), features, oncePerFrame(answer));

  fillCounts(count, data.names.length);
  count.addEventListener("change", show);
  form.set(examples[0]?.record ?? startingRecord(features));
}

/** Sliders report faster than screens redraw. */
function oncePerFrame(call) {
  let waiting = null;
  return (argument) => {
    if (waiting === null) requestAnimationFrame(() => {
      const latest = waiting.argument;
      waiting = null;
      call(latest);
    });
    waiting = { argument };
  };
}

/** Buttons for the examples; the returned function shows which of them, if any, the form holds. */
function offerPresets(root, examples, choose) {
  const buttons = examples.map(({ label, record }) => {
    const button = element("button", { type: "button", class: "chip", "aria-pressed": "false" }, label);
    button.addEventListener("click", () => choose(record));
    return button;
  });
  root.append(...buttons);
  const same = (a, b) => a.every((value, i) => value === b[i]);
  return (record) => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(same(examples[i].record, record))));
}

/** Where the form hides the chart, as on a phone, the strongest effects stay in view at the foot of the window. */
function offerStrip(strip, chart) {
  new IntersectionObserver(([seen]) => strip.classList.toggle("away", seen.isIntersecting)).observe(chart);
  return (effects) => {
    const shown = effects.slice(0, 3).map(({ name, value, reading }) => {
      const number = element("b", { class: reading }, `${MARKS[reading]} ${signed(value, 2)}`);
      return element("span", {}, element("span", { class: "name" }, name), number);
    });
    strip.replaceChildren(...shown);
  };
}

offerThemes(at("theme"));
offerTable(at("show-table"), at("table"));
at("print").addEventListener("click", () => print());
start(unpack(JSON.parse(at("data").textContent)));

// The published page: wires the release's mathematics to the form, the chart and the table.
import { createAnswer } from "./answer.js";
import { MARKS } from "./chart.js";
import { unpack } from "./data.js";
import { element } from "./dom.js";
import { encode, featuresOf } from "./domain.js";
import { buildForm, startingRecord } from "./form.js";
import { offerTable, offerThemes, partsOf } from "./frame.js";
import { presets } from "./presets.js";
import { scaleOf } from "./scale.js";
import { explain, prepare } from "./solve.js";
import { inOwnUnits, waterfallSteps } from "./steps.js";
import { surrogateContributions } from "./surrogate.js";
import { choicesOf, offerTargets } from "./targets.js";

const at = (id) => document.getElementById(id);

function start(data) {
  const choices = choicesOf(data);
  const prepared = new Map();
  const releaseOf = (choice) => prepared.get(choice) ?? prepared.set(choice, prepare(choice.release)).get(choice);
  let chosen = choices[0];
  const features = featuresOf(data.domain, data.names);
  const scale = scaleOf(data.scale);
  const shown = createAnswer(at, { names: data.names, features, outcome: chosen.outcome, scale });
  shown.setOutcome(chosen.outcome);
  const strip = offerStrip(at("strip"), at("waterfall"), scale);

  const answer = (record) => {
    for (const card of document.querySelectorAll(".answer")) card.classList.toggle("stale", record === null);
    if (record === null) return;
    mark(record);
    const point = encode(features, record);
    const found = explain(releaseOf(chosen), point);
    const added = chosen.surrogate ? surrogateContributions(chosen.surrogate, point) : found.contributions;
    const contributions = added ? inOwnUnits(added, scale) : null;
    shown.update({ ...found, contributions }, record, 350);
    strip(contributions === null ? shown.strongest() : waterfallSteps(contributions, partsOf(features, record), 3), contributions);
  };
  const examples = presets(features, releaseOf(chosen), scale.kind);
  const mark = offerPresets(at("presets"), examples, (record) => form.set(record));
  const redraw = oncePerFrame(answer);
  let latest = null;
  const form = buildForm(at("fields"), features, (record) => redraw((latest = record)));
  offerTargets(at("target-line"), at("target"), choices.map(({ name }) => name), (position) => {
    chosen = choices[position];
    shown.setOutcome(chosen.outcome);
    redraw(latest);
  });
  form.set(examples[0]?.record ?? startingRecord(features));
}

/** At most one `call` a frame, with the latest argument: sliders report faster than screens redraw. */
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

/** On small screens, where the form hides the chart, a bar at the foot of the window shows the answer and its strongest effects. */
function offerStrip(strip, chart, scale) {
  new IntersectionObserver(([seen]) => strip.classList.toggle("away", seen.isIntersecting)).observe(chart.parentElement.hidden ? at("chart") : chart);
  const entry = (name, text, reading) => element("span", {}, element("span", { class: "name" }, name), element("b", { class: reading }, text));
  return (effects, contributions) => {
    const shown = effects.slice(0, contributions === null ? 3 : 2).map(({ name, value, reading }) => entry(name, `${MARKS[reading]} ${scale.difference(value)}`, reading));
    strip.replaceChildren(...(contributions === null ? [] : [entry("answer here", scale.format(contributions.answer), "")]), ...shown);
  };
}

offerThemes(at("theme"));
offerTable(at("show-steps"), at("steps-table"));
offerTable(at("show-table"), at("table"));
at("print").addEventListener("click", () => print());
start(unpack(JSON.parse(at("data").textContent)));

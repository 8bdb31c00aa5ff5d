// The numbers as a table. Screen readers always reach it, others see it on demand; data attributes have full precision.
import { element, setText } from "./dom.js";

const CHANGES = { positive: "towards", negative: "away", uncertain: "sign uncertain", none: "no change" };
const STEPS = { positive: "raises", negative: "lowers", uncertain: "sign uncertain", none: "no difference" };

/** Slopes: `update(effects, words)` takes effects from `rank`; `note` is the record's own value. */
export function createTable(root, caption) {
  return tableOf(root, caption, ["Feature", "Change", "Effect", "± 2 errors", "Reading"], CHANGES);
}

/** Contributions: `update(steps, words)` takes one step for each feature. */
export function createStepsTable(root, caption) {
  return tableOf(root, caption, ["Feature", "This record", "Contribution", "± 2 errors", "Reading"], STEPS);
}

function tableOf(root, caption, head, readings) {
  const body = element("tbody");
  const cells = head.map((text) => element("th", { scope: "col" }, text));
  const heading = element("caption", {}, caption);
  root.append(element("table", { class: "effects" }, heading, element("thead", {}, element("tr", {}, ...cells)), body));
  const rows = [];
  return {
    setCaption: (text) => setText(heading, text),
    update(effects, words) {
      while (rows.length < effects.length) rows.push(createLine(body, readings));
      effects.forEach((effect, position) => rows[position](effect, words));
    },
  };
}

function createLine(body, readings) {
  const name = element("th", { scope: "row" });
  const [note, value, error, reading] = [0, 1, 2, 3].map(() => element("td"));
  const line = element("tr", {}, name, note, value, error, reading);
  body.append(line);
  return (effect, words) => {
    line.dataset.index = effect.index;
    line.dataset.value = effect.exact?.value ?? effect.value;
    line.dataset.error = effect.exact?.error ?? effect.error ?? "";
    line.className = effect.reading;
    setText(name, effect.name);
    setText(note, effect.note ?? "");
    setText(value, words.number(effect.value));
    const isUnknown = effect.error === null && effect.reading !== "none";
    setText(error, isUnknown ? "unknown" : words.spread(2 * effect.error));
    setText(reading, `${readings[effect.reading]}${isUnknown ? ", if the noise is small" : ""}`);
  };
}

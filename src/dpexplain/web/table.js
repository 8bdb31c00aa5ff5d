// The same numbers as a table: always there for screen readers, at full precision in data attributes, shown to others on demand.
import { element, setText } from "./dom.js";
import { signed } from "./effects.js";

const READINGS = { positive: "towards", negative: "away", uncertain: "sign uncertain" };

/** `update(effects)` takes effects from `rank`; `note` is the record's own value. */
export function createTable(root, caption) {
  const head = ["Feature", "This record", "Effect", "± 2 errors", "Reading"];
  const body = element("tbody");
  const cells = head.map((text) => element("th", { scope: "col" }, text));
  root.append(element("table", { class: "effects" }, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...cells)), body));
  const rows = [];
  return {
    update(effects) {
      while (rows.length < effects.length) rows.push(createLine(body));
      effects.forEach((effect, position) => rows[position](effect));
    },
  };
}

function createLine(body) {
  const name = element("th", { scope: "row" });
  const [note, value, error, words] = [0, 1, 2, 3].map(() => element("td"));
  const line = element("tr", {}, name, note, value, error, words);
  body.append(line);
  return (effect) => {
    line.dataset.index = effect.index;
    line.dataset.value = effect.value;
    line.dataset.error = effect.error ?? "";
    line.className = effect.reading;
    setText(name, effect.name);
    setText(note, effect.note ?? "");
    setText(value, signed(effect.value, 4));
    setText(error, effect.error === null ? "unknown" : (2 * effect.error).toFixed(4));
    setText(words, `${READINGS[effect.reading]}${effect.error === null ? ", if the noise is small" : ""}`);
  };
}

// What would change the answer: slopes as changes of this record's values, in words. A category changes from the record's own value to another one.
import { inWords, present, titleOf, valuesOf } from "./domain.js";
import { rank } from "./effects.js";

/** One entry for each encoded column: {name, note, sign, from}; `from` is the column that a category would leave, or null. */
export function changesOf(features, record) {
  return features.flatMap((feature, i) => {
    const name = titleOf(feature);
    if (feature.kind === "text") return present(feature, record[i]).map((there, j) => ({ name: feature.vocabulary[j], note: there ? "taken out" : "added", sign: there ? -1 : 1, from: null }));
    if (feature.kind === "categorical") return valuesOf(feature).map((value) => changeOfCategory(feature, name, record[i], value));
    const [low, high] = endsOf(feature);
    const isReversed = feature.kind === "binary" && record[i] === high;
    return [{ name, note: isReversed ? `${inWords(feature, high)} → ${inWords(feature, low)}` : `${inWords(feature, low)} → ${inWords(feature, high)}`, sign: isReversed ? -1 : 1, from: null }];
  });
}

function changeOfCategory(feature, name, own, value) {
  const leaving = valuesOf(feature).indexOf(own ?? feature.missing ?? feature.other);
  if (value === own) return { name, note: `${inWords(feature, own)}, this record`, sign: 0, from: null };
  return { name, note: `${inWords(feature, own)} → ${inWords(feature, value)}`, sign: 1, from: leaving < 0 ? null : feature.start + leaving };
}

function endsOf(feature) {
  const values = feature.kind === "ordinal" || feature.kind === "binary" ? valuesOf(feature) : [feature.low, feature.high];
  return [values[0], values[values.length - 1]];
}

/** Changes by magnitude in the answer's own units, the slopes they come from under `exact`. The error of a difference is at most the sum of two. */
export function rankedChanges(changes, values, error, scale) {
  const change = changes.map(({ sign, from }, i) => sign * values[i] - (from === null ? 0 : values[from]));
  const spread = error === null ? null : changes.map(({ sign, from }, i) => Math.abs(sign) * error[i] + (from === null ? 0 : error[from]));
  return rank(changes.map(({ name }) => name), change.map(scale.slope), spread === null ? null : spread.map(scale.slope)).map((effect) => ({
    ...effect,
    note: changes[effect.index].note,
    exact: { value: values[effect.index], error: error === null ? null : error[effect.index] },
  }));
}

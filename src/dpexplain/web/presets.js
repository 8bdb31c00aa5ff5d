// Example records to start from. They come from the release's synthetic reference or from the domain, never from a person.
import { decode, isDate, middle, valuesOf } from "./domain.js";

/** [{label, record}], the same for the same release. */
export function presets(features, release, kind = "label") {
  return release.reference ? fromReference(features, release, kind) : fromDomain(features);
}

function fromReference(features, release, kind) {
  const { labels } = release.reference;
  const near = Array.from(labels, (_, r) => (isWhole(release, r) ? -distance(release, r) : -Infinity));
  const best = (score) => score.reduce((chosen, value, r) => (value > score[chosen] ? r : chosen), 0);
  // An example should also be an ordinary record: distance from the centre counts against it.
  const among = (wanted) => best(Array.from(labels, (label, r) => wanted(label) + 0.15 * near[r]));
  const ordered = Array.from(labels).sort((a, b) => a - b);
  const median = ordered[Math.floor(ordered.length / 2)];
  const chosen = kind === "value"
    ? { "Typical": best(near), "High answer": among((y) => y), "Middle answer": among((y) => -Math.abs(y - median)), "Low answer": among((y) => -y) }
    : { "Typical": best(near), "Model leans towards": among((y) => y), "Borderline": among((y) => -Math.abs(y)), "Model leans away": among((y) => -y) };
  return Object.entries(chosen).map(([label, row]) => ({ label, record: decode(features, pointOf(release, row)) }));
}

function pointOf({ layout, reference, mean }, row) {
  const point = new Float64Array(mean.length);
  layout.forEach(({ start, stop, kind }, k) => {
    const code = reference.points[k][row];
    if (kind === "number") point[start] = code / 4096;
    else if (code < stop - start) point[start + code] = 1;
  });
  return point;
}

/** Whether a record has a value of every category: none of them lies nearer to the centre than the most frequent one. */
function isWhole({ layout, reference }, row) {
  return layout.every(({ start, stop }, k) => stop - start === 1 || reference.points[k][row] < stop - start);
}

function distance(release, row) {
  return Math.sqrt(pointOf(release, row).reduce((sum, x, j) => sum + (x - release.mean[j]) ** 2, 0));
}

function fromDomain(features) {
  if (features[0].kind === "text") return [{ label: "A few words", record: features.map(middle) }];
  const end = (last) => features.map((feature) => (feature.kind === "numeric" || isDate(feature) ? (last ? feature.high : feature.low) : valuesOf(feature).at(last ? -1 : 0)));
  return [
    { label: "Middle of every range", record: features.map(middle) },
    { label: "Lowest values", record: end(false) },
    { label: "Highest values", record: end(true) },
  ];
}

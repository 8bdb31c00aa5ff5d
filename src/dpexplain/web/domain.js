// A domain's public description (Python's `domain.to_dict()`), and the strict encoding of one record as a point of [0, 1]ⁿ.

/** One entry per feature: {kind, name, start, columns, …}, whatever short form the description was written in. */
export function featuresOf(description, names) {
  const listed = description.kind === "tabular" ? description.features : description.kind === "text" ? [textOf(description)] : columnsOf(description, names);
  let start = 0;
  return listed.map((feature) => {
    const placed = { ...feature, start, columns: columnsIn(feature) };
    start += placed.columns;
    return placed;
  });
}

/** What people call a feature: its title, or else its name, with the unit in brackets (domain/labelled.py). */
export function titleOf({ name, title, unit }) {
  return unit ? `${title ?? name} (${unit})` : (title ?? name);
}

/** A text is one feature with a column for each word of its vocabulary. */
function textOf({ vocabulary, column }) {
  return { kind: "text", name: column ?? "text", vocabulary };
}

/** The different words of a text, by the rule of Python's `domain/text.py`. */
export function wordsOf(text) {
  const found = text.matchAll(/<br\s*\/?>|([\p{L}\p{N}]+(?:['’][\p{L}\p{N}]+)*)/giu);
  return new Set(Array.from(found, (match) => (match[1] ?? "").toLowerCase().replaceAll("’", "'")).filter((word) => word !== ""));
}

/** Bare columns: numbers between their bounds; for kinds this page does not know, between 0 and 1 under the released names. */
function columnsOf(description, names) {
  const { low = 0, high = 1 } = description.kind === "encoded" ? description : {};
  const at = (bound, i) => (Array.isArray(bound) ? bound[i] : bound);
  return names.map((name, i) => ({ kind: "numeric", name, low: at(low, i), high: at(high, i) }));
}

/** The values of a feature that has a list of them. */
export function valuesOf(feature) {
  if (feature.kind === "ordinal") return feature.levels;
  if (feature.kind === "binary") return feature.values ?? [false, true];
  return feature.other === undefined ? feature.values : [...feature.values, feature.other];
}

function columnsIn(feature) {
  if (feature.kind === "text") return feature.vocabulary.length;
  return feature.kind === "categorical" ? valuesOf(feature).length : 1;
}

/** Whether a feature is a calendar day or an instant: text such as 2026-03-01 or 2026-03-01T12:30:00, read as UTC. */
export function isDate(feature) {
  return feature.kind === "date" || feature.kind === "datetime";
}

/** Whole days or seconds since 1970, by Python's `domain/dates.py`; NaN for what is no date. */
export function stepsOf(feature, text) {
  const zoned = /T/.test(text) && !/(Z|[+-]\d\d:?\d\d)$/.test(text) ? `${text}Z` : text;
  return Math.floor(Date.parse(zoned) / (feature.kind === "date" ? 86400000 : 1000));
}

function dateText(feature, steps) {
  const text = new Date(steps * (feature.kind === "date" ? 86400000 : 1000)).toISOString();
  return feature.kind === "date" ? text.slice(0, 10) : text.slice(0, 19);
}

function dateAt(feature, share) {
  const [low, high] = [stepsOf(feature, feature.low), stepsOf(feature, feature.high)];
  return dateText(feature, Math.round(low + share * (high - low)));
}

/** Whether the domain declares what stands for a missing value, so that one may be asked about (Python's `substitute`). */
export function mayBeMissing(feature) {
  const isOther = feature.kind === "categorical" && (feature.other !== undefined || feature.optional === true);
  return feature.missing !== undefined || isOther;
}

function isAbsent(value) {
  return value === null || value === "" || Number.isNaN(value);
}

/** The value itself, or what stands for a missing one; null for none of the values. */
function standIn(feature, value) {
  if (!isAbsent(value)) return value;
  return feature.missing ?? (feature.kind === "categorical" ? (feature.other ?? null) : value);
}

/** Why a value cannot be asked about, or null when it can. Nothing is clamped: another point has another explanation. */
export function refusal(feature, value) {
  if (feature.kind === "text") return wordsOf(value).size > 0 ? null : "Enter a text with at least one word.";
  if (isAbsent(value) && mayBeMissing(feature)) return null;
  if (isDate(feature)) {
    const steps = stepsOf(feature, String(value));
    const inside = stepsOf(feature, feature.low) <= steps && steps <= stepsOf(feature, feature.high);
    return inside ? null : `Enter a ${feature.kind === "date" ? "date" : "time"} from ${feature.low} to ${feature.high}.`;
  }
  if (feature.kind !== "numeric") return valuesOf(feature).includes(value) ? null : "Choose one of the listed values.";
  const fits = Number.isFinite(value) && feature.low <= value && value <= feature.high;
  return fits ? null : `Enter a number from ${readable(feature.low)} to ${readable(feature.high)}.`;
}

/** A point of [0, 1]ⁿ from one value per feature, by the same arithmetic as Python's `domain.encode_query`. */
export function encode(features, record) {
  const last = features[features.length - 1];
  const point = new Float64Array(last.start + last.columns);
  features.forEach((feature, i) => {
    const value = standIn(feature, record[i]);
    if (feature.kind === "numeric") point[feature.start] = (value - feature.low) / (feature.high - feature.low);
    else if (isDate(feature)) point[feature.start] = (stepsOf(feature, value) - stepsOf(feature, feature.low)) / (stepsOf(feature, feature.high) - stepsOf(feature, feature.low));
    else if (feature.kind === "text") present(feature, value).forEach((there, j) => (point[feature.start + j] = Number(there)));
    else if (feature.kind !== "categorical") point[feature.start] = step(valuesOf(feature).indexOf(value), valuesOf(feature).length);
    else if (value !== null) point[feature.start + valuesOf(feature).indexOf(value)] = 1;
  });
  return point;
}

/** For each word of the vocabulary, whether the text has it. */
export function present(feature, text) {
  const words = wordsOf(text);
  return feature.vocabulary.map((word) => words.has(word));
}

function step(position, count) {
  return position === count - 1 ? 1 : position * (1 / (count - 1));
}

/** The record nearest to an encoded point, numbers rounded to the feature's step: for examples, not for queries. */
export function decode(features, point) {
  return features.map((feature) => {
    const x = point[feature.start];
    if (feature.kind === "text") return feature.vocabulary.filter((_, j) => point[feature.start + j] === 1).join(" ") || feature.vocabulary[0];
    if (feature.kind === "numeric") return rounded(feature, feature.low + x * (feature.high - feature.low));
    if (isDate(feature)) return dateAt(feature, x);
    const values = valuesOf(feature);
    if (feature.kind !== "categorical") return values[Math.round(x * (values.length - 1))];
    const block = Array.from(point.subarray(feature.start, feature.start + feature.columns));
    if (mayBeMissing(feature) && block.every((entry) => entry === 0)) return null;
    return values[block.indexOf(Math.max(...block))];
  });
}

/** A number at the feature's step, within its bounds. */
export function rounded(feature, value) {
  const size = stepOf(feature);
  const nearest = Number((Math.round(value / size) * size).toPrecision(12));
  return Math.min(Math.max(nearest, feature.low), feature.high);
}

/** Whole numbers where they are declared, or where the bounds are whole and not close together; else the power of ten near a thousandth of the range. */
export function stepOf({ low, high, integer }) {
  if (integer) return 1;
  if (Number.isInteger(low) && Number.isInteger(high) && high - low >= 10 && high - low <= 1e4) return 1;
  return 10 ** Math.floor(Math.log10((high - low) / 100));
}

/** What a field shows before anything is chosen: the middle of the range or of the levels, the first value, no; a few words. */
export function middle(feature) {
  if (feature.kind === "text") return feature.vocabulary.slice(0, 5).join(" ");
  if (feature.kind === "numeric") return rounded(feature, feature.low + (feature.high - feature.low) / 2);
  if (isDate(feature)) return dateAt(feature, 0.5);
  const values = valuesOf(feature);
  return feature.kind === "ordinal" ? values[Math.floor((values.length - 1) / 2)] : values[0];
}

/** A feature's value in words. */
export function inWords(feature, value) {
  if (feature.kind !== "text" && isAbsent(value)) return "not known";
  if (feature.kind === "numeric") return readable(value);
  return value === true ? "yes" : value === false ? "no" : String(value);
}

export function readable(number) {
  return Number.isInteger(number) && Math.abs(number) < 1e15 ? String(number) : String(Number(number.toPrecision(6)));
}

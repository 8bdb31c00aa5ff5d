// An explanation as ranked effects with their reading. Charts, tables and summaries all start here.

/** The sign of an effect. It is uncertain where the interval of ±2 errors contains zero; there is none where the value is the one it is compared with. */
export function reading(value, error) {
  if (value === 0 && !error) return "none";
  if (error !== null && Math.abs(value) <= 2 * error) return "uncertain";
  return value >= 0 ? "positive" : "negative";
}

/** Effects by magnitude, ties in column order: [{index, name, value, error, reading}]. `error` may be null. */
export function rank(names, values, error) {
  const effects = Array.from(values, (value, index) => {
    const spread = error === null ? null : error[index];
    return { index, name: names[index], value, error: spread, reading: reading(value, spread) };
  });
  return effects.sort((a, b) => Math.abs(b.value) - Math.abs(a.value) || a.index - b.index);
}

/** A signed number with a true minus. */
export function signed(value, digits = 3) {
  const text = Math.abs(value).toFixed(digits);
  return value < 0 ? `−${text}` : `+${text}`;
}

/** The strongest effects that are not known to be uncertain, in words and in the answer's own units; `expected` is said where errors are not known. */
export function summary(effects, outcome, scale, count = 3, expected = "") {
  const certain = effects.filter(({ reading: sign }) => sign === "positive" || sign === "negative").slice(0, count);
  if (certain.length === 0) return "At this privacy level the sign of no effect is certain here.";
  const phrases = certain.map(({ name, note, value }) => `${name}${note ? ` ${note}` : ""} ${scale.difference(value)}${scale.unit ? `\u00a0${scale.unit}` : ""}, ${value >= 0 ? "towards" : "away"}`);
  const doubt = certain[0].error === null ? ` ${expected || "How much of this is privacy noise is not known for this mechanism:"} ${expected ? "No" : "no"} sign here is certain.` : "";
  return `Strongest effects on ${outcome}: ${phrases.join("; ")}.${doubt}`;
}

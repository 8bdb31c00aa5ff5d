// The units of answers: labels in [-1, 1] as probabilities, classes or a model's own numbers, and how people read them (core/answer_scale.py).

const RANGES = { label: [-1, 1], probability: [0, 1], class: [0, 1] };

/** From Python's `AnswerScale.to_dict()`; nothing, as in old releases, means plain labels. */
export function scaleOf(description) {
  const kind = description?.kind ?? "label";
  const [low, high] = description ? [description.low, description.high] : RANGES.label;
  const half = high / 2 - low / 2;
  const inPercent = kind === "probability" || kind === "class";
  const decimals = (value, isDifference) => (inPercent ? percentDecimals(value, isDifference) : ownDecimals(high - low, isDifference));
  const number = (value, isDifference = false) => {
    const shown = inPercent ? 100 * value : value;
    return grouped(shown, decimals(shown, isDifference), isDifference);
  };
  return {
    kind,
    low,
    high,
    inPercent,
    unit: inPercent ? "points" : "",
    answer: (label) => (kind === "label" ? label : (low + high) / 2 + label * half),
    slope: (label) => label * half,
    number,
    difference: (value) => number(value, true),
    spread: (error) => number(Math.abs(error), true).replace("+", ""),
    format: (value) => `${number(value)}${inPercent ? "\u00a0%" : ""}`,
    tick: (value) => number(value, true).replace(/(\.\d*[1-9])0+$|\.0+$/, "$1"),
    /** An answer on an axis whose ticks are `step` apart, with as many decimals as the step has. */
    place: (value, step) => {
      const factor = inPercent ? 100 : 1;
      return `${grouped(factor * value, Math.max(0, -Math.floor(Math.log10(factor * step) + 1e-9)), false)}${inPercent ? "\u00a0%" : ""}`;
    },
  };
}

/** Whole per cents in the middle of the scale, tenths near its ends; differences to a tenth of a point, tiny ones to a hundredth. */
function percentDecimals(percent, isDifference) {
  const size = Math.abs(percent);
  if (isDifference) return size >= 0.005 && size < 0.095 ? 2 : 1;
  if ((size >= 9.95 && size <= 90.05) || size < 0.005 || Math.abs(size - 100) < 0.005) return 0;
  return size < 0.95 ? 2 : 1;
}

/** Answers to a thousandth of their range or finer, differences ten times finer; negative for tens and hundreds. */
function ownDecimals(range, isDifference) {
  return (isDifference ? 1 : 0) - Math.floor(Math.log10(range / 1000));
}

/** Rounded, thousands grouped, with a true minus and, where it is a difference, a plus. */
function grouped(value, decimals, withSign) {
  const unit = 10 ** Math.max(-decimals, 0);
  const rounded = Math.round(value / unit) * unit;
  const digits = Math.max(decimals, 0);
  const text = Math.abs(decimals > 0 ? value : rounded).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const isZero = !/[1-9]/.test(text);
  if (value < 0 && !isZero) return `−${text}`;
  return withSign ? `+${text}` : text;
}

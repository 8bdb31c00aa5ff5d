// Contributions as steps from the average to the answer, and the sentence that describes them (plots/steps.py does the same in Python).
import { reading } from "./effects.js";

/** The `top` largest contributions in order of size, then the others as one step, whose error is not the sum of theirs. */
export function waterfallSteps({ values, error, base }, labels, top = 10) {
  const order = Array.from(values.keys()).sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]) || a - b);
  const most = order.length > top + 1 ? top : order.length;
  let start = base;
  const steps = order.slice(0, most).map((index) => {
    const [value, spread] = [values[index], error === null ? null : error[index]];
    const step = { index, ...labels[index], start, value, error: spread, reading: reading(value, spread) };
    start += value;
    return step;
  });
  if (most === order.length) return steps;
  const value = order.slice(most).reduce((sum, index) => sum + values[index], 0);
  const rest = { index: "rest", name: `${order.length - most} other values`, note: "", start, value, error: null, reading: reading(value, null), isRest: true };
  return [...steps, rest];
}

/** The first sentence of every answer. Where a plane passes the end of the scale, it names the end, and where the steps start or what they add up to. */
export function sentenceOf({ answer, base, average = "the average", exact = false }, scale) {
  const [within, start] = [answer, base].map((place) => Math.min(Math.max(place, scale.low), scale.high));
  const [here, there] = [scale.format(within), scale.format(start)];
  const alike = here === there && (start === base || scale.format(answer) === scale.format(base));
  const end = alike ? "together these values make no difference" : "these values make the difference";
  const sentence = `The model’s answer here is ${exact ? "" : "about "}${here}; ${average} is ${there}; ${end}.`;
  const beyond = [start === base ? "" : `start at ${scale.format(base)}`, within === answer ? "" : `add up to ${scale.format(answer)}`].filter(Boolean);
  return beyond.length ? `${sentence} They ${beyond.join(" and ")}: a straight line passes the end of the scale.` : sentence;
}

/** Labels of the mathematics in the answer's own units. */
export function inOwnUnits({ values, error, base, answer }, scale) {
  return { values: values.map(scale.slope), error: error === null ? null : error.map(scale.slope), base: scale.answer(base), answer: scale.answer(answer) };
}

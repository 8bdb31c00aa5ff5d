// Widths that let a wanted share of rows count: the same mathematics as Python's estimation/nearest.py.

const WIDTH_STEPS = 8;
const WIDEST_STEP = 60 * WIDTH_STEPS;

function shareAt(squared, least, base, width) {
  let [total, squares] = [0, 0];
  squared.forEach((value, r) => {
    const local = Math.exp(-(Math.max(value, 0) - least) / width ** 2) * base[r];
    total += local;
    squares += local * local;
  });
  return total ** 2 / (squared.length * squares);
}

function chooseWidth(squared, base, share) {
  const least = squared.reduce((found, value) => Math.min(found, Math.max(value, 0)), Infinity);
  let [few, enough] = [-WIDEST_STEP, WIDEST_STEP];
  while (enough - few > 1) {
    const step = Math.floor((few + enough) / 2);
    if (shareAt(squared, least, base, 2 ** (step / WIDTH_STEPS)) >= share) enough = step;
    else few = step;
  }
  return 2 ** (enough / WIDTH_STEPS);
}

/** α for one question: the release's own, or a Gaussian whose width fits the squared distances of public points. */
export function alphaFor(release, squared) {
  const { weight, alpha, reference } = release;
  if (weight.kind !== "nearest") return alpha;
  const width = chooseWidth(squared, reference.inverse_weight, weight.share);
  return (d) => Math.exp(-((d / width) ** 2));
}

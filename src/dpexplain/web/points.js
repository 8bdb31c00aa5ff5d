// The public reference points, stored by attribute: a category's position, or the number itself.

import { dot } from "./linear.js";

/** ‖scale·(x_r - z)‖² and φ·x_r for every reference row, stored by attribute: a category's position, or the number itself. */
export function compare(layout, columns, z, phi, count) {
  const squared = new Float64Array(count);
  const products = new Float64Array(count);
  layout.forEach(({ start, stop, kind, scale = 1 }, k) => {
    const codes = columns[k];
    if (kind === "number") return compareNumber(codes, z[start], phi[start], scale, squared, products);
    const far = new Float64Array(stop - start + 1).fill(dot(z.subarray(start, stop), z.subarray(start, stop)));
    for (let c = 0; c < stop - start; c++) far[c] += 1 - 2 * z[start + c];
    const share = [...phi.subarray(start, stop), 0];
    for (let r = 0; r < count; r++) {
      squared[r] += scale * scale * far[codes[r]];
      products[r] += share[codes[r]];
    }
  });
  return { squared, products };
}

function compareNumber(numbers, here, slope, scale, squared, products) {
  for (let r = 0; r < numbers.length; r++) {
    const apart = scale * (numbers[r] - here);
    squared[r] += apart * apart;
    products[r] += slope * numbers[r];
  }
}

/** Σ_r pull_r x_r. */
export function gather(layout, columns, pull, n) {
  const out = new Float64Array(n);
  layout.forEach(({ start, stop, kind }, k) => {
    const codes = columns[k];
    if (kind === "number") {
      out[start] = dot(pull, codes);
      return;
    }
    const sums = new Float64Array(stop - start + 1);
    for (let r = 0; r < pull.length; r++) sums[codes[r]] += pull[r];
    out.set(sums.subarray(0, stop - start), start);
  });
  return out;
}

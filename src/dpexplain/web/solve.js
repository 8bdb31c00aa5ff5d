// The explanation of a point, computed from a release alone: the same mathematics as Python's `release.explain`, to 1e-9.
//
// The fitted plane, which is the default, is in fitted.js. The paper's plane is here: in the eigenbasis of the released covariance V diag(w) Vᵀ, with h = Vᵀ(mean - z), the quadratic around z is A = diag(w) + hhᵀ and
// b = t0·h + Vᵀt1; the answer minimises pᵀAp - 2b·p in the ball ‖p‖ ≤ radius. A second solve, with b moved by the reference rows'
// residuals under the local weight, makes the answer local. No DOM here: this file runs in node too.

import { fittedPlane, prepareFitted } from "./fitted.js";
import { dot, intoBasis, outOfBasis } from "./linear.js";
import { alphaFor } from "./nearest.js";
import { compare, gather } from "./points.js";

/** α(d): how much a record at distance d counts (core/weights.py). */
export function weightFunction(weight) {
  const capped = (height, c) => (d) => Math.min(height, c / (2 * d * (1 + d)));
  if (weight.kind === "stable") return capped(1, weight.c);
  if (weight.kind === "inverse") return capped(1e12, weight.c);
  if (weight.kind === "gaussian") return (d) => Math.exp(-((d / weight.width) ** 2));
  if (weight.kind === "nearest") return null; // chosen for each question: nearest.js
  if (weight.kind === "window") return (d) => (d <= weight.radius ? 1 : 0);
  throw new Error(`unknown weight ${weight.kind}`);
}

/** (diag(w) + λI + hhᵀ)⁻¹ b by Sherman and Morrison. */
function solveShifted(w, h, b, multiplier) {
  const n = w.length;
  const p = new Float64Array(n);
  const y = new Float64Array(n);
  let hx = 0;
  let hy = 0;
  for (let i = 0; i < n; i++) {
    const d = 1 / (w[i] + multiplier);
    p[i] = d * b[i];
    y[i] = d * h[i];
    hx += h[i] * p[i];
    hy += h[i] * y[i];
  }
  const pull = hx / (1 + hy);
  for (let i = 0; i < n; i++) p[i] -= y[i] * pull;
  return p;
}

/** The minimiser of pᵀ(diag(w) + hhᵀ)p - 2b·p in the ball, and its multiplier λ ≥ 0.
 *
 * 1/‖p(λ)‖ is concave and nearly linear, so Newton's steps from λ = 0 rise to the root; the bracket guards against rounding. */
export function solveInBall(w, h, b, radius) {
  let multiplier = 0;
  let p = solveShifted(w, h, b, multiplier);
  let size = Math.sqrt(dot(p, p));
  if (size <= radius) return { p, multiplier };
  let low = 0;
  let high = Math.sqrt(dot(b, b)) / radius;
  for (let i = 0; i < 200; i++) {
    if (size > radius) low = multiplier;
    else high = multiplier;
    let next = multiplier + ((size / radius - 1) * size * size) / dot(p, solveShifted(w, h, p, multiplier));
    if (!(next >= low && next <= high)) next = (low + high) / 2;
    const done = Math.abs(next - multiplier) <= 1e-15 * next;
    multiplier = next;
    p = solveShifted(w, h, b, multiplier);
    if (done) break;
    size = Math.sqrt(dot(p, p));
  }
  return { p, multiplier };
}

/** (1/N) Σ (a_r/ā - 1)(y_r - φ·(x_r - z))(x_r - z), with a_r = α(‖x_r - z‖)·i_r and ā their mean. */
export function localCorrection(release, z, phi) {
  const { layout } = release;
  const { columns, labels, inverse_weight: inverse } = release.reference;
  const count = labels.length;
  const { squared, products } = compare(layout, columns, z, phi, count);
  const alpha = alphaFor(release, squared);
  const weights = Float64Array.from(squared, (value, r) => alpha(Math.sqrt(Math.max(value, 0))) * inverse[r]);
  const mean = weights.reduce((sum, value) => sum + value, 0) / count;
  if (!(mean > 0)) return new Float64Array(z.length);
  const offset = dot(phi, z);
  const pull = Float64Array.from(weights, (value, r) => (value / mean - 1) * (labels[r] - products[r] + offset));
  const total = pull.reduce((sum, value) => sum + value, 0);
  return gather(layout, columns, pull, z.length).map((value, j) => (value - total * z[j]) / count);
}

/** One standard error per value: calibration·√(diag(K²)·s²), K the inverse of A + λI restricted to the sphere's tangent where λ > 0. */
export function standardErrors(release, h, multiplier, p) {
  const { eigenvalues: w, eigenvectors: V, noise } = release;
  const n = w.length;
  const D = Float64Array.from(w, (value) => 1 / (value + multiplier));
  const times = (x) => x.map((value, i) => D[i] * value);
  const y = times(h);
  const root = Math.sqrt(1 + dot(h, y));
  const k1 = y.map((value) => value / root);
  const k2 = multiplier > 0 ? tangent(times(p), k1, p) : new Float64Array(n);
  const [a1, a2, b1, b2] = [k1, k2, times(k1), times(k2)].map((k) => outOfBasis(V, k));
  const [s11, s22, s12] = [dot(k1, k1), dot(k2, k2), dot(k1, k2)];
  const met = noise.sigma_t1 ** 2 + noise.sigma_s2 ** 2 * dot(p, p) + noise.sigma_s1 ** 2 * dot(h, p) ** 2;
  return Float64Array.from(noise.calibration, (calibration, i) => {
    let d0 = 0;
    for (let j = 0; j < n; j++) d0 += (V[i * n + j] * D[j]) ** 2;
    const cross = a1[i] ** 2 * s11 + a2[i] ** 2 * s22 + 2 * a1[i] * a2[i] * s12;
    const d = d0 - 2 * a1[i] * b1[i] - 2 * a2[i] * b2[i] + cross;
    return calibration * Math.sqrt(Math.max(d, 1e-12 * d0) * met);
  });
}

function tangent(scaled, k1, p) {
  const along = dot(k1, p);
  const q = scaled.map((value, i) => value - k1[i] * along);
  const size = Math.sqrt(dot(p, q));
  return q.map((value) => value / size);
}

/** Everything that does not depend on the point. Call it once. */
export function prepare(release) {
  const prepared = { ...release, alpha: weightFunction(release.weight), labels: intoBasis(release.eigenvectors, release.t1) };
  if (!release.reference) return prepared;
  const number = (codes) => Float64Array.from(codes, (code) => code / 4096); // numbers are released in 4096ths
  const columns = release.reference.points.map((codes, k) => (release.layout[k].kind === "number" ? number(codes) : codes));
  const whole = { ...prepared, solveInBall, reference: { ...release.reference, columns } };
  return release.fitted ? { ...whole, fitted: prepareFitted(whole) } : whole;
}

/** {values, error, plane, intercept, contributions: {values, error, base, answer, baseError, answerError} | null} at the encoded point z. */
export function explain(release, z) {
  if (release.fitted && release.plane === "fitted") return fittedPlane(release, z);
  const { eigenvalues: w, eigenvectors: V, mean, t0, radius, labels } = release;
  const h = intoBasis(V, mean.map((value, i) => value - z[i]));
  const b = h.map((value, i) => t0 * value + labels[i]);
  let { p, multiplier } = solveInBall(w, h, b, radius);
  if (release.reference) {
    const moved = intoBasis(V, localCorrection(release, z, outOfBasis(V, p)));
    ({ p, multiplier } = solveInBall(w, h, b.map((value, i) => value + moved[i]), radius));
  }
  const values = outOfBasis(V, p);
  return { values, error: standardErrors(release, h, multiplier, p), plane: "paper", intercept: 0, contributions: addedBy(release, z, values, 0) };
}

/** Contributions of a plane whose errors are known for slopes only. */
function addedBy(release, z, values, answer) {
  if (!release.fitted) return null;
  const { average } = release.fitted;
  const added = Float64Array.from(release.layout, ({ start, stop }) => {
    let sum = 0;
    for (let j = start; j < stop; j++) sum += values[j] * (z[j] - average[j]);
    return sum;
  });
  return { values: added, error: null, base: answer - added.reduce((sum, value) => sum + value, 0), answer };
}

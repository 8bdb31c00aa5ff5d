// The fitted plane at a point: the same mathematics as Python's estimation/moment_planes.py, which has the derivation.
//
// Where all rows count alike the plane is t0 + φ0·(x - mean). What a local weight changes is read off the residuals of public points: with local
// weights s, centre m and u = x - mean - m, δ solves (A + κI)δ = Σ s r u - β Σ (g/N)(r - r̄)(x - mean) by a few conjugate gradients; φ = φ0 + δ.

import { dot, intoBasis, outOfBasis } from "./linear.js";
import { alphaFor } from "./nearest.js";
import { compare, gather } from "./points.js";

const sum = (values) => values.reduce((total, value) => total + value, 0);
const axpy = (a, x, y) => y.map((value, i) => value + a * x[i]);

/** (C + κI)⁻¹x. */
function invert(release, x) {
  const p = intoBasis(release.eigenvectors, x);
  return outOfBasis(release.eigenvectors, p.map((value, i) => value * release.fitted.inverse[i]));
}

/** x_r·v for every point. */
function onto(release, v) {
  const { layout, reference, fitted } = release;
  return compare(layout, reference.columns, new Float64Array(v.length), v, fitted.labels.length).products;
}

const back = (release, pull) => gather(release.layout, release.reference.columns, pull, release.mean.length);

/** Everything that does not depend on the point. */
export function prepareFitted(release) {
  const { fitted, mean, t0 } = release;
  const count = fitted.labels.length;
  const level = t0 - dot(mean, fitted.slopes);
  const residuals = onto(release, fitted.slopes).map((value, r) => fitted.labels[r] - level - value);
  const level0 = dot(fitted.raked, residuals) / count;
  const pull = residuals.map((value, r) => (fitted.raked[r] * (value - level0)) / count);
  const meanSquare = dot(fitted.raked, residuals.map((value) => value ** 2)) / count;
  return { ...fitted, residuals, meanSquare, level0, slope0: axpy(-sum(pull), mean, back({ ...release, fitted }, pull)), ...noiseOf(release, fitted), variances: varianceOf({ ...release, fitted }, fitted.raked.map((value) => value / count)), samples: {} };
}

/** The variance of each column over points with these shares: squares of codes are the codes themselves. */
function varianceOf(release, share) {
  const mean = back(release, share);
  const squares = Float64Array.from(mean);
  release.layout.forEach(({ start, kind }, k) => {
    if (kind === "number") squares[start] = release.reference.columns[k].reduce((total, value, r) => total + share[r] * value * value, 0);
  });
  return squares.map((value, j) => value - mean[j] ** 2);
}

/** The scaled root of the posterior covariance, and how much of each direction is left to the plane through all rows. */
function noiseOf({ mean, eigenvalues, eigenvectors: V }, fitted) {
  const n = mean.length;
  const root = V.map((value, i) => value * fitted.factors[Math.floor(i / n)] * fitted.spread[i % n]);
  return { root, left: fitted.inverse.map((value, k) => 1 - eigenvalues[k] * value) };
}

/** A⁻¹(x - mean) of every `every`th point, row by row; computed once. */
function movedBy(release, every) {
  const { layout, reference, mean, fitted } = release;
  if (fitted.samples[every]) return fitted.samples[every];
  const n = mean.length;
  const rows = Math.ceil(fitted.labels.length / every);
  const moved = new Float64Array(rows * n);
  for (let i = 0; i < rows; i++) {
    const x = new Float64Array(n);
    layout.forEach(({ start, stop, kind }, k) => {
      const code = reference.columns[k][i * every];
      if (kind === "number") x[start] = code;
      else if (code < stop - start) x[start + code] = 1;
    });
    moved.set(invert(release, x.map((value, j) => value - mean[j])), i * n);
  }
  return (fitted.samples[every] = moved);
}

/** {share, s}: the share of effective rows, and local weights that sum to 1. */
function localWeights(release, z) {
  const { layout, reference, fitted } = release;
  const { inverse_weight: inverse, columns } = reference;
  const { squared } = compare(layout, columns, z, new Float64Array(z.length), inverse.length);
  const alpha = alphaFor(release, squared);
  let local = squared.map((value, r) => alpha(Math.sqrt(Math.max(value, 0))) * inverse[r]);
  if (!(sum(local) > 0)) local = Float64Array.from(inverse);
  const share = sum(local) ** 2 / (local.length * dot(local, local));
  const weighed = local.map((value, r) => value * fitted.raked[r]);
  const total = sum(weighed);
  return { share, s: weighed.map((value) => value / total) };
}

/** (A + κI)⁻¹right by conjugate gradients; `middle` is the local centre. */
function solveLocally(release, s, middle, right) {
  const { ridge, steps } = release.fitted;
  let found = new Float64Array(right.length);
  let rest = right;
  let ahead = invert(release, rest);
  let size = dot(rest, ahead);
  for (let i = 0; i < steps; i++) {
    const offset = dot(ahead, middle);
    const weighed = onto(release, ahead).map((value, r) => s[r] * (value - offset));
    const bent = axpy(ridge, ahead, axpy(-sum(weighed), middle, back(release, weighed)));
    const length = size / Math.max(dot(ahead, bent), 1e-300);
    found = axpy(length, ahead, found);
    rest = axpy(-length, bent, rest);
    const step = invert(release, rest);
    const left = dot(rest, step);
    ahead = axpy(left / Math.max(size, 1e-300), ahead, step);
    size = left;
  }
  return found;
}

export function fittedPlane(release, z) {
  const { mean, t0, fitted } = release;
  const { share, s } = localWeights(release, z);
  const middle = back(release, s);
  const centre = axpy(-1, mean, middle);
  const pull = s.map((value, r) => value * fitted.residuals[r]);
  const level = sum(pull);
  const right = axpy(-share, fitted.slope0, axpy(-level, middle, back(release, pull)));
  const free = axpy(1, fitted.slopes, solveLocally(release, s, middle, right));
  const values = held(release, free);
  const away = axpy(-1, z, middle);
  const intercept = t0 + dot(centre, fitted.slopes) + level - share * fitted.level0 - dot(away, values);
  const variances = variancesOf(release, z, s, share, centre, away, axpy(-1, fitted.slopes, free));
  const error = variances.slopes.map(Math.sqrt);
  const details = values === free ? {} : { cap: `These slopes were cut to the requested radius ${release.radius}: the data say that they are longer.` };
  if (release.shared) details.shared = release.shared;
  return { values, error, plane: "fitted", intercept, contributions: contributionsOf(release, z, values, intercept, variances), details };
}

/** Slopes in the ball where one was asked for: the nearest in what they predict for rows that count alike. */
function held(release, values) {
  const { radius, eigenvalues: w, eigenvectors: V, solveInBall } = release;
  if (radius === null || Math.sqrt(dot(values, values)) <= radius) return values;
  const target = intoBasis(V, values).map((value, i) => value * w[i]);
  return outOfBasis(V, solveInBall(w, new Float64Array(w.length), target, radius).p);
}

/** What contributions, base and answer multiply the slopes with: [(start, stop, factors)], base and answer last. */
function directionsOf(release, z, away) {
  const offset = axpy(-1, release.fitted.average, z);
  const blocks = release.layout.map(({ start, stop }) => ({ start, factors: offset.subarray(start, stop), level: 0 }));
  const answer = away.map((value) => -value);
  return [...blocks, { start: 0, factors: axpy(-1, offset, answer), level: 1 }, { start: 0, factors: answer, level: 1 }];
}

const along = ({ start, factors }, row) => {
  let total = 0;
  for (let j = 0; j < factors.length; j++) total += factors[j] * row[start + j];
  return total;
};

/** {slopes, added}: variances of the slopes, and of contributions, base and answer. */
function variancesOf(release, z, s, share, centre, away, change) {
  const { fitted } = release;
  const n = z.length;
  const every = share < fitted.broad ? 1 : fitted.every; // near the query there are few points, so that all are looked at
  const samples = movedBy(release, every);
  const rows = samples.length / n;
  const limit = fitted.limit / share;
  const kept = Math.min(1, fitted.kept * share) ** 2;
  const counted = fitted.left.map((value) => kept + (1 - kept) * value ** 2);
  const near = varianceOf(release, s);
  const narrow = near.map((value, j) => Math.sqrt(Math.min(Math.max(fitted.variances[j] / Math.max(value, 1e-300), 1), fitted.narrowest)));
  const seen = (share * s.length) / (share * s.length + fitted.pooled); // few points' own residuals say little
  const shift = invert(release, centre);
  const directions = directionsOf(release, z, away);
  const slopes = Float64Array.from({ length: n }, (_, j) => noiseAlong(fitted, counted, { start: j, factors: [1] }, n));
  const added = directions.map((one) => noiseAlong(fitted, counted, one, n) + one.level * fitted.t0_error ** 2);
  for (let i = 0; i < rows; i++) {
    const r = i * every;
    const weight = Math.min(Math.max(s.length * s[r] - share * fitted.raked[r], -limit), limit);
    const square = seen * fitted.residuals[r] ** 2 + (1 - seen) * fitted.meanSquare;
    const pull = (weight ** 2 * square * fitted.doubt) / Math.sqrt(share) / rows;
    const moved = axpy(-1, shift, samples.subarray(i * n, i * n + n)).map((value, j) => value * narrow[j]);
    for (let j = 0; j < n; j++) slopes[j] += pull * moved[j] ** 2;
    directions.forEach((one, k) => (added[k] += pull * (along(one, moved) + one.level) ** 2));
  }
  const wrong = wrongChange(fitted, share, change);
  for (let j = 0; j < n; j++) slopes[j] += wrong({ start: j, factors: [1] });
  directions.forEach((one, k) => (added[k] += wrong(one)));
  return { slopes, added };
}

/** The variance along a direction that comes from what may be wrong about the change of the slopes near the query. */
function wrongChange(fitted, share, change) {
  const level = fitted.shares.reduce((all, value, j) => all + value * change[j] ** 2, 0);
  const each = fitted.usual.map((value, j) => (level * value + (1 - share) * fitted.unseen[j]) / share ** fitted.nearer);
  return ({ start, factors }) => {
    let own = 0;
    let usual = 0;
    for (let j = 0; j < factors.length; j++) {
      own += factors[j] * change[start + j];
      usual += factors[j] ** 2 * each[start + j];
    }
    return fitted.own * own ** 2 + usual;
  };
}

/** dᵀW diag(counted) Wᵀd for the root W of the posterior covariance. */
function noiseAlong({ root }, counted, { start, factors }, n) {
  const sums = new Float64Array(n);
  for (let j = 0; j < factors.length; j++) for (let k = 0; k < n; k++) sums[k] += factors[j] * root[(start + j) * n + k];
  return dot(counted, sums.map((value) => value ** 2));
}

function contributionsOf(release, z, values, answer, { slopes, added: variances }) {
  const { average, average_error: shaken } = release.fitted;
  const parts = release.layout.map(({ start, stop }) => {
    let value = 0;
    let squares = 0;
    for (let j = start; j < stop; j++) {
      value += values[j] * (z[j] - average[j]);
      squares += values[j] ** 2 + (stop - start === 1 ? slopes[j] : 0);
    }
    return { value, squares };
  });
  const total = parts.reduce((all, { value }) => all + value, 0);
  const squares = parts.reduce((all, part) => all + part.squares, 0);
  const count = parts.length;
  return {
    values: Float64Array.from(parts, ({ value }) => value),
    error: Float64Array.from(parts, (part, k) => Math.sqrt(variances[k] + shaken ** 2 * part.squares)),
    base: answer - total,
    answer,
    baseError: Math.sqrt(variances[count] + shaken ** 2 * squares),
    answerError: Math.sqrt(variances[count + 1]),
  };
}

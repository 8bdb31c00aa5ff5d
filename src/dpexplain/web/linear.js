// Vectors and row-major square matrices.

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** Vᵀx for a row-major square matrix. */
export function intoBasis(V, x) {
  const n = x.length;
  const out = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const row = i * n;
    for (let j = 0; j < n; j++) out[j] += V[row + j] * x[i];
  }
  return out;
}

/** Vx for a row-major square matrix. */
export function outOfBasis(V, x) {
  const n = x.length;
  const out = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const row = i * n;
    let sum = 0;
    for (let j = 0; j < n; j++) sum += V[row + j] * x[j];
    out[i] = sum;
  }
  return out;
}

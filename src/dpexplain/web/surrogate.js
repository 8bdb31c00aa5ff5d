// A stand-in for the model: tables over bins of single features and pairs (release/surrogates.py). The same answers and SHAP values as Python's, to
// the digits that the tables are rounded to. No DOM here: this file runs in node too.

/** The bin of an encoded record: between edges for a number, the column that is 1 for a category (the last bin: none). */
function binOf({ start, stop, edges }, z) {
  if (edges !== null) {
    let low = 0;
    let high = edges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (edges[middle] < z[start]) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  for (let i = start; i < stop; i++) if (z[i] > 0.5) return i - start;
  return stop - start;
}

/** {values, error, base, answer} in labels, one value for each feature: base + Σ values = answer. */
export function surrogateContributions(surrogate, z) {
  const values = new Float64Array(surrogate.features);
  let base = surrogate.constant;
  for (const { feature, grid, table } of surrogate.singles) values[feature] += table[binOf(grid, z)];
  for (const { first, second, grids, table, along, across, mean } of surrogate.pairs) {
    const a = binOf(grids[0], z);
    const b = binOf(grids[1], z);
    values[first] += (along[a] - mean + table[a][b] - across[b]) / 2;
    values[second] += (across[b] - mean + table[a][b] - along[a]) / 2;
    base += mean;
  }
  const answer = values.reduce((sum, value) => sum + value, base);
  return { values, error: Float64Array.from(surrogate.error), base, answer };
}

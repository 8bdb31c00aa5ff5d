// Run by tests/e2e/test_web_modules.py, which writes the cases that Python computed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { axisLimit } from "../../src/dpexplain/web/chart.js";
import { unpack } from "../../src/dpexplain/web/data.js";
import { decode, encode, featuresOf, middle, refusal, rounded, wordsOf } from "../../src/dpexplain/web/domain.js";
import { rank, signed, summary } from "../../src/dpexplain/web/effects.js";
import { presets } from "../../src/dpexplain/web/presets.js";
import { explain, prepare, solveInBall } from "../../src/dpexplain/web/solve.js";

const cases = JSON.parse(readFileSync(process.env.CASES, "utf-8"));
const opened = cases.map((entry) => ({ ...entry, data: unpack(entry.data) }));
const far = (a, b) => Math.max(...Array.from(a, (value, i) => Math.abs(value - b[i])));

test("explanations and errors equal Python's", () => {
  assert.ok(opened.length >= 8);
  for (const { data, point, values, error } of opened) {
    const answer = explain(prepare(data.release), Float64Array.from(point));
    assert.ok(far(answer.values, values) < 1e-9, `values differ by ${far(answer.values, values)}`);
    assert.ok(far(answer.error, error) < 1e-9, `errors differ by ${far(answer.error, error)}`);
  }
});

test("records are encoded to the last bit as Python does, and come back", () => {
  for (const { data, record, point } of opened) {
    const features = featuresOf(data.domain, data.names);
    assert.deepEqual(Array.from(encode(features, record)), point);
    assert.deepEqual(decode(features, Float64Array.from(point)), record);
  }
});

test("the solution lies on the sphere exactly when the free one is outside", () => {
  const [w, h, b] = [[0.1, 0.5, 2], [0.3, -0.2, 0.1], [1, -2, 0.5]].map((values) => Float64Array.from(values));
  const inside = solveInBall(w, h, b, 100);
  assert.equal(inside.multiplier, 0);
  const { p, multiplier } = solveInBall(w, h, b, 1);
  assert.ok(multiplier > 0 && Math.abs(Math.hypot(...p) - 1) < 1e-14);
});

test("examples can be asked about and do not change", () => {
  const { data } = opened[0];
  const features = featuresOf(data.domain, data.names);
  const examples = presets(features, data.release);
  assert.deepEqual(examples, presets(features, data.release));
  for (const { record } of [...examples, ...presets(features, {}), { record: features.map(middle) }])
    features.forEach((feature, i) => assert.equal(refusal(feature, record[i]), null));
});

test("descriptions in short form, and kinds from the future, become columns", () => {
  const [first, second] = featuresOf({ kind: "encoded", width: 2, low: [0, -1], high: 5 }, ["a", "b"]);
  assert.deepEqual([first.low, first.high, second.low, second.high, second.start], [0, 5, -1, 5, 1]);
  assert.equal(featuresOf({ kind: "hologram" }, ["a", "b", "c"])[2].high, 1);
});

test("numbers are refused outside their bounds and rounded inside them", () => {
  const feature = { kind: "numeric", name: "x", low: 0.25, high: 0.75 };
  assert.equal(refusal(feature, 0.25), null);
  for (const value of [0.2, 0.8, NaN, Infinity]) assert.match(refusal(feature, value), /0.25 to 0.75/);
  assert.equal(rounded(feature, 0.33333), 0.333);
  assert.equal(rounded(feature, 9), 0.75);
});

test("effects are ranked with ties in column order, and read with their errors", () => {
  const effects = rank(["a", "b", "c", "d"], [0.1, -0.3, 0.3, 0], [0.01, 0.2, 0.1, 0]);
  assert.deepEqual(effects.map((effect) => effect.name), ["b", "c", "a", "d"]);
  assert.deepEqual(effects.map((effect) => effect.reading), ["uncertain", "positive", "positive", "uncertain"]);
  assert.equal(summary(effects, "it", 1), "Strongest effects on it: c +0.30, towards.");
  const unknown = rank(["a"], [0.2], null);
  assert.equal(unknown[0].error, null);
  assert.match(summary(unknown, "it", 1), /^Strongest effects on it: a \+0\.20, towards\. .*no sign here is certain\.$/);
  assert.equal(rank(["a"], [0], null)[0].reading, "positive");
  assert.equal(signed(-0.5, 1), "−0.5");
});

test("the axis ends at a round number that holds the longest bar", () => {
  const ends = [0, 0.011, 0.1, 0.21, 0.99, 7].map((largest) => Number(axisLimit(largest).toPrecision(3)));
  assert.deepEqual(ends, [1, 0.015, 0.1, 0.3, 1, 8]);
});

test("texts are cut into the words that Python finds", () => {
  for (const [text, words] of JSON.parse(readFileSync(process.env.TEXTS, "utf-8"))) assert.deepEqual([...wordsOf(text)].sort(), words, text);
  const [feature] = featuresOf({ kind: "text", vocabulary: ["good", "bad"], column: "review" }, ["good", "bad"]);
  assert.equal(feature.name, "review");
  assert.equal(refusal(feature, "Bad!"), null);
  assert.match(refusal(feature, " … "), /at least one word/);
  assert.equal(middle(feature), "good bad");
});

// Run by tests/e2e/test_web_modules.py, which writes the cases that Python computed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { axisLimit, niceTicks } from "../../src/dpexplain/web/chart.js";
import { changesOf, rankedChanges } from "../../src/dpexplain/web/changes.js";
import { unpack } from "../../src/dpexplain/web/data.js";
import { decode, encode, featuresOf, middle, refusal, rounded, wordsOf } from "../../src/dpexplain/web/domain.js";
import { rank, signed, summary } from "../../src/dpexplain/web/effects.js";
import { presets } from "../../src/dpexplain/web/presets.js";
import { scaleOf } from "../../src/dpexplain/web/scale.js";
import { explain, prepare, solveInBall } from "../../src/dpexplain/web/solve.js";
import { inOwnUnits, sentenceOf, waterfallSteps } from "../../src/dpexplain/web/steps.js";

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

test("planes, intercepts and contributions equal Python's", () => {
  const planes = opened.filter(({ plane }) => plane);
  assert.ok(planes.length >= 4);
  for (const { data, point, plane, intercept, contributions: given } of planes) {
    const answer = explain(prepare(data.release), Float64Array.from(point));
    assert.equal(answer.plane, plane);
    assert.ok(Math.abs(answer.intercept - intercept) < 1e-9);
    const found = answer.contributions;
    assert.ok(far(found.values, given.values) < 1e-9 && Math.abs(found.base - given.base) < 1e-9);
    assert.ok(Math.abs(found.base + found.values.reduce((sum, value) => sum + value, 0) - found.answer) < 1e-12);
    if (given.error === null) assert.equal(found.error, null);
    else {
      assert.ok(far(found.error, given.error) < 1e-9, `errors differ by ${far(found.error, given.error)}`);
      assert.ok(Math.abs(found.baseError - given.baseError) < 1e-9 && Math.abs(found.answerError - given.answerError) < 1e-9);
    }
  }
});

test("missing values are read as the domain declares, as Python does", () => {
  const { domain, record, point } = JSON.parse(readFileSync(process.env.GAPS, "utf-8"));
  const features = featuresOf(domain, []);
  const values = features.map(({ name }) => record[name]);
  assert.deepEqual(Array.from(encode(features, values)), point);
  assert.deepEqual(features.map((feature, i) => refusal(feature, values[i])), features.map(() => null));
  assert.match(refusal({ kind: "numeric", name: "x", low: 0, high: 1 }, NaN), /Enter a number/);
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

test("an example has a value of every category, and a record without one is not known", () => {
  const feature = { kind: "categorical", name: "job", values: ["rare", "usual"], optional: true, start: 0, columns: 2 };
  const reference = { labels: [0.5, 0.5], points: [[2, 1]] };
  const release = { layout: [{ start: 0, stop: 2, kind: "category" }], mean: [0.01, 0.4], reference };
  assert.deepEqual(presets([feature], release).map(({ record }) => record), Array(4).fill(["usual"]));
  const numbers = presets([feature], release, "value").map(({ label }) => label);
  assert.deepEqual(numbers, ["Typical", "High answer", "Middle answer", "Low answer"]);
  assert.deepEqual(decode([feature], new Float64Array(2)), [null]);
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
  assert.equal(rounded({ kind: "numeric", name: "late", low: 0, high: 6, integer: true }, 0.09), 0);
});

test("effects are ranked with ties in column order, and read with their errors", () => {
  const effects = rank(["a", "b", "c", "d"], [0.1, -0.3, 0.3, 0], [0.01, 0.2, 0.1, 0]);
  assert.deepEqual(effects.map((effect) => effect.name), ["b", "c", "a", "d"]);
  assert.deepEqual(effects.map((effect) => effect.reading), ["uncertain", "positive", "positive", "none"]);
  const scale = scaleOf({ kind: "probability", low: 0, high: 1 });
  assert.equal(summary(effects, "it", scale, 1), "Strongest effects on it: c +30.0\u00a0points, towards.");
  const unknown = rank(["a"], [0.2], null);
  assert.equal(unknown[0].error, null);
  assert.match(summary(unknown, "it", scaleOf(null), 1), /^Strongest effects on it: a \+0\.2000, towards\. .*no sign here is certain\.$/);
  assert.match(summary(unknown, "it", scaleOf(null), 1, "A guess."), /towards\. A guess\. No sign here is certain\.$/);
  assert.equal(rank(["a"], [0], null)[0].reading, "none");
  assert.equal(rank(["a"], [0], [0.1])[0].reading, "uncertain");
  assert.equal(signed(-0.5, 1), "−0.5");
});

test("ticks have no zeros at their end", () => {
  const ticks = [-3, -1.5, 0.05, 10].map(scaleOf(null).tick);
  assert.deepEqual(ticks, ["−3", "−1.5", "+0.05", "+10"]);
  assert.deepEqual([0.1, 0.125].map(scaleOf({ kind: "probability", low: 0, high: 1 }).tick), ["+10", "+12.5"]);
});

test("the axis ends at a round number that holds the longest bar", () => {
  const ends = [0, 0.011, 0.1, 0.21, 0.99, 7].map((largest) => Number(axisLimit(largest).toPrecision(3)));
  assert.deepEqual(ends, [1, 0.015, 0.1, 0.3, 1, 8]);
});

test("an axis of answers begins and ends at round numbers", () => {
  assert.deepEqual(niceTicks(0.238, 0.655), [0.2, 0.4, 0.6, 0.8]);
  assert.deepEqual(niceTicks(-0.02, 0.31), [-0.1, 0, 0.1, 0.2, 0.3, 0.4]);
  assert.ok(niceTicks(0.5, 0.5).length >= 2);
  const ticks = niceTicks(0.247, 0.258); // no two ticks may read the same
  const scale = scaleOf({ kind: "probability", low: 0, high: 1 });
  assert.deepEqual(ticks.map((tick) => scale.place(tick, ticks[1] - ticks[0])), ["24.5\u00a0%", "25.0\u00a0%", "25.5\u00a0%", "26.0\u00a0%"]);
  assert.equal(scaleOf({ kind: "value", low: 0, high: 1e5 }).place(12000, 2000), "12,000");
});

test("answers and contributions read as Python's do", () => {
  const { formats, contributions } = JSON.parse(readFileSync(process.env.SCALES, "utf-8"));
  const plain = (text) => text.replaceAll("−", "-").replaceAll("\u00a0", " ").replaceAll("’", "'");
  for (const { scale, value, answer, difference, spread } of formats) {
    const read = scaleOf(scale);
    const unit = read.unit ? ` ${read.unit}` : "";
    assert.deepEqual([read.format(value), `${read.difference(value)}${unit}`, read.spread(value)].map(plain), [answer, difference, spread]);
  }
  for (const { given, scale, sentence, steps, labels } of contributions) {
    assert.equal(plain(sentenceOf(given, scaleOf(scale))), sentence);
    const parts = labels.map((name) => ({ name, note: "" }));
    const found = waterfallSteps(given, parts, 5).map(({ name, start, value, error }) => [name, start, value, error]);
    found.forEach((step, i) => {
      assert.deepEqual([step[0], step[3]], [steps[i][0], steps[i][3]]);
      assert.ok(far(step.slice(1, 3), steps[i].slice(1, 3)) < 1e-12);
    });
    assert.equal(found.length, steps.length);
  }
  const own = inOwnUnits({ values: Float64Array.of(0.2), error: Float64Array.of(0.02), base: -0.5, answer: -0.3 }, scaleOf({ kind: "value", low: 0, high: 100 }));
  assert.deepEqual([own.base, own.answer, own.values[0], own.error[0]], [25, 35, 10, 1]);
});

test("a category changes from the record's own value to another, and errors add up at most", () => {
  const features = featuresOf({ kind: "tabular", features: [{ kind: "numeric", name: "age", low: 17, high: 97 }, { kind: "categorical", name: "trade", values: ["sales", "law"] }, { kind: "binary", name: "married", title: "Married", unit: "now" }] }, []);
  const changes = changesOf(features, [40, "sales", true]);
  assert.deepEqual(changes.map(({ name, note }) => `${name}: ${note}`), ["age: 17 → 97", "trade: sales, this record", "trade: sales → law", "Married (now): yes → no"]);
  const ranked = rankedChanges(changes, [0.1, 0.4, -0.2, 0.3], [0.01, 0.02, 0.03, 0.04], scaleOf({ kind: "probability", low: 0, high: 1 }));
  assert.deepEqual(ranked.map(({ index }) => index), [2, 3, 0, 1]);
  assert.ok(far(ranked.map(({ value }) => value), [-0.3, -0.15, 0.05, 0]) < 1e-12);
  assert.ok(far(ranked.map(({ error }) => error), [0.025, 0.02, 0.005, 0]) < 1e-12);
  assert.deepEqual(ranked[0].exact, { value: -0.2, error: 0.03 });
  const [text] = featuresOf({ kind: "text", vocabulary: ["good", "bad"] }, ["good", "bad"]);
  assert.deepEqual(changesOf([text], ["a good film"]).map(({ note, sign }) => [note, sign]), [["taken out", -1], ["added", 1]]);
});

test("texts are cut into the words that Python finds", () => {
  for (const [text, words] of JSON.parse(readFileSync(process.env.TEXTS, "utf-8"))) assert.deepEqual([...wordsOf(text)].sort(), words, text);
  const [feature] = featuresOf({ kind: "text", vocabulary: ["good", "bad"], column: "review" }, ["good", "bad"]);
  assert.equal(feature.name, "review");
  assert.equal(refusal(feature, "Bad!"), null);
  assert.match(refusal(feature, " … "), /at least one word/);
  assert.equal(middle(feature), "good bad");
});

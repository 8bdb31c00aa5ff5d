"""The four parts of an error: they add up to the bar, each is what it is called, and files that tell fewer apart say so."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import ReleaseCorrupt, WeakBudget
from dpexplain.estimation import local_reference, reference_planes
from dpexplain.estimation.error_parts import APART, BIAS, COMMON, NOISE, PARTS, SAMPLING, SHRINKAGE
from dpexplain.estimation.global_slopes import Guess, NoisyEquations
from dpexplain.estimation.mixed_planes import mix
from dpexplain.estimation.moment_planes import DRAWN
from dpexplain.noise.seeded import SeededNoise
from dpexplain.release import file as container
from dpexplain.release.compiled import compile_release

ROWS = 4_000
DOMAIN = dpx.Domain(
    [dpx.Numeric("age", 0, 100), dpx.Numeric("gain", 0, 1000), dpx.Categorical("work", values=["a", "b", "c"]), dpx.Binary("own")]
)
WEIGHTS = [dpx.weights.Stable(), dpx.weights.Gaussian(0.7), dpx.weights.Gaussian(0.3)]


def people(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(0, 100, rows),
        "gain": np.minimum(rng.gamma(1.0, 150, rows), 1000),
        "work": rng.choice(list("abc"), rows, p=[0.6, 0.3, 0.1]),
        "own": rng.random(rows) < 0.3,
    }


def model(table):
    steep = 0.004 * np.asarray(table["gain"], dtype=float) * (np.asarray(table["work"]) == "a")
    return np.tanh(np.asarray(table["age"], dtype=float) / 40 - 1 + steep - 0.7 * np.asarray(table["own"], dtype=float))


def make(epsilon=1.0, seed=0, rows=ROWS, **options):
    table = people(rows)
    if options.pop("labels", False):
        data = dpx.PrivateData(table, DOMAIN, labels=model(table))
    else:
        data = dpx.PrivateData(table, DOMAIN, model=model, output="value", bounds=(-1, 1))
    return dpx.release(data, dpx.Budget(epsilon, 1e-6), noise=SeededNoise(seed), **options)


@pytest.fixture(scope="module")
def releases():
    found = {"labels": make(labels=True), "moments": make(), "reference": make(reference=4_096)}
    return found | {"compiled": compile_release(found["moments"])}


def parts_of(found):
    """Mean squares of the parts, (queries, 4); 0 for those that are not named."""
    return np.square([[one.details["error_parts"].get(name, 0.0) for name in PARTS] for one in found])


@pytest.mark.parametrize("kind", ["labels", "moments", "reference", "compiled"])
@pytest.mark.parametrize("weight", WEIGHTS, ids=str)
@pytest.mark.parametrize("options", [{}, {"anchor": [0.2] * 9}, {"radius": 0.3}], ids=str)
def test_squares_of_the_parts_add_up_to_that_of_the_error(releases, kind, weight, options):
    found = releases[kind].explain_many(people(9, seed=3), weight, **options)
    for one in found:
        assert list(one.details["error_parts"]) == list(PARTS)
        assert min(one.details["error_parts"].values()) > 0
    assert parts_of(found).sum(axis=1) == pytest.approx(np.square(found.error).mean(axis=1), rel=1e-9)
    one = {name: column[0] for name, column in people(9, seed=3).items()}
    alone = releases[kind].explain(one, weight, **({**options, "anchor": 0.2} if "anchor" in options else options))
    assert alone.details["error_parts"] == pytest.approx(found[0].details["error_parts"], rel=1e-6)


def parts_by_definition(planes, query, weight, anchor):
    """The parts of one query by the formulas of `estimation/moment_planes.py`, with matrices in place of their traces."""
    (share,), (local,), (middle,) = planes._local_shares(query[None], weight)
    away, n = middle - query, len(query)
    along = planes._solve(local[None], middle[None], away[None])[0]
    turn = along / (1 + away @ along) if anchor else np.zeros(n)
    by = np.eye(n) - np.outer(turn, away)
    fitted = planes.fit(query[None], weight).values[0]
    kept = min(1.0, 2.0 * share) ** 2
    root = planes.factors[:, None] * planes.eigenvectors * np.sqrt(kept + (1 - kept) * np.square(planes.left))
    noise, spread = (np.square(by @ root * one).sum() for one in (planes.slopes.noise, planes.slopes.spread))
    change = fitted - planes.slopes.values
    usual, own = planes.local_change.variances(change[None], np.array([share]))[0], 0.25 * np.square(by @ change).sum()
    level = np.square(turn * planes.t0_error).sum()
    total = np.square(planes.fit(query[None], weight, np.array([0.1]) if anchor else None).errors).sum()
    bent = np.square(by * np.sqrt(usual)).sum()
    pulled = total - spread - level - bent - own
    drawn = min(DRAWN / len(planes.labels) / planes.doubt * np.sqrt(share), 1.0) * pulled
    return np.array([noise + level, spread - noise, bent + own + pulled - drawn, drawn]) / n


@pytest.mark.parametrize("kind", ["labels", "moments"])
@pytest.mark.parametrize("weight", WEIGHTS, ids=str)
@pytest.mark.parametrize("anchor", [False, True])
def test_parts_of_planes_from_moments_are_those_of_their_definitions(releases, kind, weight, anchor):
    planes = releases[kind].planes
    queries = DOMAIN.encode(people(4, seed=5))
    found = planes.fit(queries, weight, np.full(4, 0.1) if anchor else None)
    for query, parts in zip(queries, found.parts.sum(axis=1), strict=True):
        assert parts == pytest.approx(parts_by_definition(planes, query, weight, anchor), rel=1e-6, abs=1e-12)


def test_the_noise_of_slopes_is_by_how_much_they_vary_with_the_noise():
    rng = np.random.default_rng(1)
    eigenvalues, vectors = np.geomspace(3e-4, 0.3, 12), np.linalg.qr(rng.standard_normal((12, 12)))[0]
    phi, error = vectors @ (0.3 * rng.standard_normal(12)), 1e-3
    found = []
    for _ in range(300):
        t1 = (vectors * eigenvalues) @ (vectors.T @ phi) + error * rng.standard_normal(12)
        made = NoisyEquations(eigenvalues, vectors, t1, error, 0.0, np.arange(0))
        for guess in (None, Guess(phi + 0.1, 0.2, few=1e-3)):
            slopes = made.slopes(guess)
            found.append((slopes.values @ vectors, slopes.noise, slopes.spread))
    for kind in (found[::2], found[1::2]):
        values, noise, spread = (np.array(one) for one in zip(*kind, strict=True))
        stated = np.sqrt(np.square(noise).mean(axis=0))
        assert 0.8 <= np.median(values.std(axis=0) / stated) <= 1.25
        assert (noise <= spread * (1 + 1e-9)).all()
        assert (noise[:, -3:] > 0.95 * spread[:, -3:]).all()  # what moments determine has noise alone
        assert (noise[:, 0] < 0.7 * spread[:, 0]).all()  # … and what they do not, hardly any


def test_noise_and_shrinkage_vanish_with_a_huge_budget_and_the_rest_stays():
    query = people(6, seed=3)
    by_budget = {epsilon: make(epsilon, reference=4_096).explain_many(query) for epsilon in (0.1, 1.0)}
    with pytest.warns(WeakBudget):
        by_budget[1e5] = make(1e5, reference=4_096).explain_many(query)
    parts = {epsilon: np.sqrt(parts_of(found).mean(axis=0)) for epsilon, found in by_budget.items()}
    hidden = {epsilon: np.hypot(*one[[NOISE, SHRINKAGE]]) for epsilon, one in parts.items()}
    rest = {epsilon: np.hypot(*one[[BIAS, SAMPLING]]) for epsilon, one in parts.items()}
    assert hidden[0.1] > 1.5 * hidden[1.0]
    assert hidden[1e5] < 0.1 * hidden[1.0]
    assert hidden[1e5] < 0.5 * rest[1e5]
    assert rest[1e5] > 0.3 * rest[1.0]
    assert parts[1e5][SHRINKAGE] < 0.3 * parts[1e5][NOISE]
    assert parts[0.1][SHRINKAGE] / parts[0.1][NOISE] > parts[1.0][SHRINKAGE] / parts[1.0][NOISE]


def test_more_records_and_more_rows_have_less_sampling():
    queries, found = DOMAIN.encode(people(6, seed=3)), {}
    for count in (2_048, 32_768):
        records = make(reference=count)._reference_planes.reference
        for rows in (ROWS, 10**9):
            parts = replace(records, rows=rows).fit(queries, dpx.weights.Gaussian(0.7)).parts.sum(axis=1)
            found[count, rows] = parts.mean(axis=0)
    assert found[32_768, 10**9][SAMPLING] < 0.2 * found[2_048, 10**9][SAMPLING]
    assert found[32_768, 10**9][BIAS] > 0.4 * found[2_048, 10**9][BIAS]
    for count in (2_048, 32_768):
        assert found[count, ROWS][SAMPLING] > 1.2 * found[count, 10**9][SAMPLING]
        assert found[count, ROWS][[NOISE, SHRINKAGE, BIAS]] == pytest.approx(
            found[count, 10**9][[NOISE, SHRINKAGE, BIAS]], rel=1e-6
        )


@pytest.mark.parametrize("cause", ["_TABLES", "_DRAWN", "_WRONG"])
@pytest.mark.parametrize("anchor", [None, np.full(5, 0.1)], ids=["fitted", "anchored"])
def test_what_records_are_freed_of_is_missing_from_one_part(releases, cause, anchor, monkeypatch):
    records = releases["reference"]._reference_planes.reference
    part, queries = {"_TABLES": NOISE, "_DRAWN": SAMPLING, "_WRONG": BIAS}[cause], DOMAIN.encode(people(5, seed=3))
    before = records.fit(queries, dpx.weights.Gaussian(0.7), anchor)
    monkeypatch.setattr(reference_planes, cause, 0.0)
    after = records.fit(queries, dpx.weights.Gaussian(0.7), anchor)
    missing = (before.parts - after.parts)[:, APART]
    gone = np.square(before.errors).mean(axis=1) - np.square(after.errors).mean(axis=1)
    assert (missing[:, part] > 0).all()
    assert missing[:, part] == pytest.approx(gone, rel=1e-9, abs=1e-12)
    assert np.delete(missing, part, axis=1) == pytest.approx(np.zeros((5, 3)), abs=1e-12)
    assert after.parts[:, COMMON] == pytest.approx(before.parts[:, COMMON])


def test_where_private_rows_are_fewer_than_columns_that_is_sampling(releases):
    records, queries = releases["reference"]._reference_planes.reference, DOMAIN.encode(people(5, seed=3))
    enough, few = (replace(records, rows=rows).fit(queries, dpx.weights.Gaussian(0.7)) for rows in (10**9, 10))
    assert (few.errors > enough.errors).all()
    more = few.parts - enough.parts
    assert more[:, APART, SAMPLING] == pytest.approx(np.square(few.errors).mean(axis=1) - np.square(enough.errors).mean(axis=1))
    assert more[:, APART, BIAS] == pytest.approx(np.zeros(5), abs=1e-9)


def test_in_a_mixture_noise_is_common_and_the_rest_is_not_and_disagreement_is_bias(releases):
    planes, queries = releases["reference"]._reference_planes, DOMAIN.encode(people(6, seed=3))
    few, (many, _) = (
        planes.moments.fit(queries, WEIGHTS[1]),
        planes.reference.fit_near(queries, WEIGHTS[1], None, None),
    )
    for one, share in ((few, 1.0), (many, 0.0)):
        assert mix(few, many, np.full(6, share)).parts == pytest.approx(one.parts, abs=1e-15)
    half = mix(many, many, np.full(6, 0.5)).parts
    assert half[:, COMMON] == pytest.approx(many.parts[:, COMMON])
    assert half[:, APART] == pytest.approx(many.parts[:, APART] / 2)
    agreeing, apart = (
        mix(replace(few, values=values), many, np.full(6, 0.3)).parts for values in (many.values, many.values + 5.0)
    )
    contradicted = 25.0 - (np.square(few.errors) + np.square(many.errors)).mean(axis=1)
    assert (apart - agreeing)[:, APART, BIAS] == pytest.approx(0.3 * 0.7 * contradicted)
    assert np.delete((apart - agreeing).reshape(6, 8), 4 + BIAS, axis=1) == pytest.approx(np.zeros((6, 7)), abs=1e-12)


@pytest.mark.parametrize("kind", ["moments", "reference"])
def test_a_file_that_cannot_tell_noise_from_shrinkage_names_both_together(releases, kind, tmp_path):
    query = people(5, seed=3)
    header, arrays = container.read(releases[kind]._content())
    stored = [name for name in arrays if name.endswith("_noise")]
    assert stored == (["plane_noise"] if kind == "moments" else ["plane_noise", "reference_noise"])
    for name in stored:
        del arrays[name]
    (tmp_path / "old.dpx").write_bytes(container.write(header, arrays))
    old = dpx.load(tmp_path / "old.dpx")
    for release in (old, compile_release(old)):
        for anchor in (None, [0.2] * 5):
            found, expected = (one.explain_many(query, anchor=anchor) for one in (release, releases[kind]))
            assert found.values == pytest.approx(expected.values, rel=1e-9)
            assert found.error == pytest.approx(expected.error, rel=1e-9)
            for one, other in zip(found, parts_of(expected), strict=True):
                together = np.sqrt([other[NOISE] + other[SHRINKAGE], other[BIAS], other[SAMPLING]])
                wanted = dict(zip(("noise_and_shrinkage", "bias", "sampling"), together, strict=True))
                assert one.details["error_parts"] == pytest.approx(wanted, rel=1e-6)
    old.save(tmp_path / "again.dpx")
    assert (tmp_path / "again.dpx").read_bytes() == (tmp_path / "old.dpx").read_bytes()


@pytest.mark.parametrize("kind", ["moments", "reference"])
def test_a_stored_release_has_the_same_parts(releases, kind, tmp_path):
    releases[kind].save(tmp_path / "new.dpx")
    found, expected = (one.explain_many(people(5, seed=3)) for one in (dpx.load(tmp_path / "new.dpx"), releases[kind]))
    assert parts_of(found) == pytest.approx(parts_of(expected), rel=1e-9)


@pytest.mark.parametrize("name", ["plane_noise", "reference_noise"])
@pytest.mark.parametrize("change", [lambda a: a[:-1], lambda a: -a - 1, lambda a: a * np.nan, lambda a: a + 1e200, None])
def test_damaged_noise_is_refused(releases, name, change, tmp_path):
    header, arrays = container.read(releases["reference"]._content())
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays[name])
    (tmp_path / "x.dpx").write_bytes(container.write(header, arrays))
    with pytest.raises(ReleaseCorrupt):
        dpx.load(tmp_path / "x.dpx")


@pytest.mark.parametrize("kind", ["moments", "reference"])
def test_releases_of_the_first_version_have_parts(kind):
    old = dpx.load(Path(__file__).parents[1] / "golden" / "files" / f"{kind}-0.1.0.dpx")
    found = old.explain({"age": 40, "hours": 30, "work": "public", "married": True})
    parts = found.details["error_parts"]
    assert sum(part**2 for part in parts.values()) == pytest.approx(np.square(found.error).mean(), rel=1e-9)


@pytest.mark.parametrize("options", [{"plane": "paper"}, {"anchor": 0.2, "radius": 0.3}], ids=str)
def test_bars_of_moments_in_a_ball_cover_noise_and_shrinkage_alone(releases, options):
    query = {name: column[0] for name, column in people(1, seed=3).items()}
    found = releases["moments"].explain(query, **options)
    assert found.details["error_parts"] == pytest.approx({"noise_and_shrinkage": np.sqrt(np.square(found.error).mean())})


@pytest.mark.parametrize("cause", ["_DRAWN", "_changes", "bias"])
def test_bars_of_records_in_a_ball_have_parts_that_are_what_causes_them(releases, cause, monkeypatch):
    records = releases["reference"].reference
    queries, weight = DOMAIN.encode(people(5, seed=3)), dpx.weights.Gaussian(0.7)
    solver = replace(records, bias=1e-3).solver(10**9)
    before = solver.answer(queries, weight)
    if cause == "_DRAWN":
        monkeypatch.setattr(local_reference, "_DRAWN", 0.0)
        after = replace(solver).answer(queries, weight)
    else:
        name = "changes" if cause == "_changes" else "bias"
        after = replace(solver, **{name: solver.changes * 0 if name == "changes" else 0.0}).answer(queries, weight)
    part = {"_DRAWN": SAMPLING, "_changes": NOISE, "bias": BIAS}[cause]
    missing = (before.parts - after.parts).sum(axis=1)
    assert before.parts.sum(axis=(1, 2)) == pytest.approx(np.square(before.errors).mean(axis=1), rel=1e-9)
    assert (missing[:, part] > 0.5 * before.parts.sum(axis=1)[:, part]).all()
    assert np.delete(missing, part, axis=1) == pytest.approx(np.zeros((5, 3)), abs=1e-9)


def test_planes_of_independent_features_have_noise_and_sampling(releases):
    found = releases["reference"].lime({name: column[0] for name, column in people(1, seed=3).items()}, model)
    parts = found.details["error_parts"]
    assert parts["shrinkage"] == parts["bias"] == 0
    assert min(parts["noise"], parts["sampling"]) > 0
    assert sum(part**2 for part in parts.values()) == pytest.approx(np.square(found.error).mean(), rel=1e-9)


def test_answers_that_are_paid_for_have_parts_and_a_ledger_repeats_them(tmp_path):
    data = dpx.PrivateData(people(), DOMAIN, model=model, output="value", bounds=(-1, 1), name="people")
    record = {name: column[0] for name, column in people(1, seed=3).items()}
    answers = []
    for _ in range(2):
        explainer = dpx.Explainer(
            data, dpx.Budget(5, 1e-6), dpx.Basic(0.5, 1e-6), ledger=f"sqlite:///{tmp_path / 'x.ledger'}", noise=SeededNoise(1)
        )
        answers.append(explainer.explain(record, request_id="one"))
    assert answers[0].details["error_parts"] == answers[1].details["error_parts"]
    parts = answers[0].details["error_parts"]
    assert set(parts) == set(PARTS)
    assert sum(part**2 for part in parts.values()) == pytest.approx(np.square(answers[0].error).mean(), rel=1e-9)


def test_the_noise_of_answers_is_by_how_much_they_vary_with_the_noise():
    query = people(6, seed=3)
    found = [make(seed=seed, labels=True).explain_many(query) for seed in range(8)]
    real = np.array([one.values for one in found]).std(axis=0, ddof=1)
    stated = np.sqrt(np.median([parts_of(one)[:, NOISE] for one in found]))
    assert 0.6 <= np.sqrt(np.square(real).mean()) / stated <= 1.6

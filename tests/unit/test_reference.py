"""Private reference data: paid once, in the domain's own terms, labelled by the model, and good for any locality."""

import numpy as np
import pandas as pd
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.core import weights
from dpexplain.errors import DataError, ParameterError, ReleaseCorrupt
from dpexplain.noise.seeded import SeededNoise
from dpexplain.release import file as container
from noise_support import run

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 0, 100),
        dpx.Categorical("work", values=["a", "b", "c"]),
        dpx.Binary("married"),
        dpx.Ordinal("school", levels=["low", "middle", "high", "top"]),
        dpx.Numeric("gain", 0, 1000),
    ]
)

pytestmark = pytest.mark.slow
RECORD = {"age": 40, "work": "a", "married": True, "school": "high", "gain": 0}
BUDGET = dpx.Budget(1.0, 1e-6)


def people(m=20_000, unknown=0.0):
    rng = np.random.default_rng(0)
    married = rng.random(m) < 0.4
    age = np.clip(100 * rng.beta(2, 3, m) + 15 * married, 0, 100)
    work = np.where(age > 50, rng.choice(["a", "b"], m), rng.choice(["a", "c"], m, p=[0.8, 0.2]))
    return pd.DataFrame(
        {
            "age": age,
            "work": np.where(rng.random(m) < unknown, "?", work),
            "married": married,
            "school": np.array(["low", "middle", "high", "top"])[rng.integers(0, 4, m)],
            "gain": np.where(rng.random(m) < 0.9, 0.0, rng.uniform(0, 1000, m)),
        }
    )


def model(frame):
    """A black box with an interaction; asked about frames of the domain's columns."""
    score = np.asarray(frame["age"]) / 40 - 1 + (np.asarray(frame["work"]) == "a") * np.asarray(frame["married"])
    return np.where(score + 0.002 * np.asarray(frame["gain"]) > 0.3, 1.0, -1.0)


def private(m=20_000, unknown=0.0, **options):
    return dpx.PrivateData(people(m, unknown), DOMAIN, **({"model": model} | options))


@pytest.fixture(scope="module")
def data_and_release():
    data = private()
    return data, dpx.release(data, BUDGET, reference=16_384, noise=SeededNoise(1))


def test_one_reservation_pays_for_moments_and_marginals(data_and_release):
    data, release = data_and_release
    assert 0.999 < release.guarantee.epsilon <= 1
    assert data.spent.epsilon == pytest.approx(release.guarantee.epsilon)
    with pytest.raises(dpx.BudgetExhausted):
        dpx.release(private(2000), dpx.Budget(0.5, 1e-6), spend=dpx.Budget(1.0, 1e-6), reference=2000)


def test_records_are_the_domains_and_carry_the_models_labels(data_and_release):
    _, release = data_and_release
    reference = release.reference
    assert len(reference) == len(reference.frame) == 16_384
    assert (reference.labels == model(reference.frame)).all()
    assert (DOMAIN.encode(reference.frame) == reference.encoded).all()
    DOMAIN.encode_queries(reference.frame.head(200))  # every one could be asked about
    assert "16,384 records" in repr(reference)


def test_records_resemble_the_private_ones_in_pairs(data_and_release):
    _, release = data_and_release
    ours, theirs = release.reference.encoded, DOMAIN.encode(people())
    assert np.abs(ours.mean(axis=0) - theirs.mean(axis=0)).max() < 0.01
    assert np.abs(np.cov(ours.T) - np.cov(theirs.T)).max() < 0.008
    assert abs((ours[:, -1] == 0).mean() - 0.9) < 0.01  # the atom stays an atom


@pytest.mark.parametrize("weight", [weights.Stable(), weights.Gaussian(0.8), weights.Gaussian(0.4)], ids=str)
def test_any_locality_is_explained_well_and_free(data_and_release, weight):
    data, release = data_and_release
    records = people(300).head(12).to_dict("records")
    spent = data.spent.epsilon
    explanations = release.explain_many(records, weight)
    scores = [
        evaluation.score(one.values, data, record, weight=weight) for one, record in zip(explanations, records, strict=True)
    ]
    # one of these records has 130 effective rows, measured against the best constant there
    narrowest = weight == weights.Gaussian(0.4)
    assert np.mean([score.relative_excess for score in scores]) < (0.06 if narrowest else 0.02)
    assert np.median([score.relative_excess for score in scores]) < 0.02
    assert np.mean([score.cosine for score in scores]) > (0.94 if narrowest else 0.97)
    assert data.spent.epsilon == spent
    assert explanations[0].cost.epsilon == 0
    assert (explanations.error > 0).all()


def test_moments_alone_do_not_explain_narrow_weights(data_and_release):
    data, release = data_and_release
    narrow, records = weights.Gaussian(0.4), people(300).head(12).to_dict("records")
    points = DOMAIN.encode_queries(records)
    alone = release.solver.answer(points, narrow).values
    scores = [
        evaluation.score(v, data, r, weight=narrow, plane="paper").relative_excess for v, r in zip(alone, records, strict=True)
    ]
    assert np.mean(scores) > 0.05


def test_a_weight_that_reaches_no_reference_row_still_gets_an_answer(data_and_release):
    _, release = data_and_release
    explanation = release.explain(RECORD, weight=weights.Window(1e-9))
    assert np.isfinite(explanation.values).all()
    assert np.linalg.norm(release.explain(RECORD, weight=weights.Window(1e-9), plane="paper").values) <= 1 + 1e-9


def test_the_file_keeps_everything(data_and_release, tmp_path):
    _, release = data_and_release
    release.save(tmp_path / "r.dpx")
    again = dpx.load(tmp_path / "r.dpx")
    assert again.reference.frame.equals(release.reference.frame)
    assert (again.reference.labels == release.reference.labels).all()
    narrow = weights.Gaussian(0.5)
    assert (again.explain(RECORD, narrow).values == release.explain(RECORD, narrow).values).all()


@pytest.mark.parametrize(
    "name", ["reference_codes", "reference_labels", "reference_weights", "reference_changes", "reference_bias"]
)
def test_a_file_whose_reference_makes_no_sense_is_refused(data_and_release, tmp_path, name):
    _, release = data_and_release
    release.save(tmp_path / "r.dpx")
    header, arrays = container.read((tmp_path / "r.dpx").read_bytes())
    wrong = {"reference_weights": -1.0, "reference_bias": -1.0}.get(name, 60_000.0)
    for damaged in (arrays | {name: arrays[name][..., :-1]}, arrays | {name: np.full(arrays[name].shape, wrong)}):
        (tmp_path / "bad.dpx").write_bytes(container.write(header, damaged))
        with pytest.raises(ReleaseCorrupt):
            dpx.load(tmp_path / "bad.dpx")


def test_the_same_noise_gives_the_same_records():
    first, second = (dpx.release(private(2000), BUDGET, reference=2000, noise=SeededNoise(3)).reference for _ in range(2))
    assert first.frame.equals(second.frame)


def test_without_a_model_records_have_no_labels_and_moments_explain():
    rows = people(3000)
    data = dpx.PrivateData(rows, DOMAIN, labels=model(rows))
    release = dpx.release(data, BUDGET, reference=2000, noise=SeededNoise(1))
    assert release.reference.labels is None
    assert len(release.reference.frame) == 2000
    expected = release.planes.fit(DOMAIN.encode_query(RECORD)[None], release.weight).values[0]
    assert (release.explain(RECORD).values == expected).all()


def test_missing_values_are_a_category_where_there_are_some_and_only_there():
    some = dpx.release(private(20_000, unknown=0.1), BUDGET, reference=4096, noise=SeededNoise(1)).reference
    none = dpx.release(private(20_000), BUDGET, reference=4096, noise=SeededNoise(1)).reference
    assert some.frame["work"].isna().mean() == pytest.approx(0.1, abs=0.02)
    assert not none.frame["work"].isna().any()


@pytest.mark.parametrize("kind", ["dict", "list", "polars", "pyarrow"])
def test_the_model_is_asked_in_the_kind_of_table_it_knows(kind):
    frame = people(1500)
    rows = {
        "dict": lambda: {name: frame[name].to_numpy() for name in frame},
        "list": lambda: frame.to_dict("records"),
        "polars": lambda: pytest.importorskip("polars").from_pandas(frame),
        "pyarrow": lambda: pytest.importorskip("pyarrow").Table.from_pandas(frame),
    }[kind]()
    seen = []

    def remember_table(table):
        seen.append(type(table))
        return np.ones(len(table) if kind != "dict" else len(table["age"]))

    dpx.release(dpx.PrivateData(rows, DOMAIN, model=remember_table), BUDGET, reference=1024, noise=SeededNoise(1))
    assert set(seen) == {type(rows)}


def test_vectors_stay_vectors():
    rows = np.random.default_rng(0).random((3000, 3))
    data = dpx.PrivateData(rows, dpx.Domain.encoded(3), model=lambda X: np.where(X[:, 0] > X[:, 1], 1.0, -1.0))
    reference = dpx.release(data, BUDGET, reference=2048, noise=SeededNoise(1)).reference
    assert (reference.labels == np.where(reference.encoded[:, 0] > reference.encoded[:, 1], 1, -1)).all()


def test_a_model_that_cannot_answer_is_found_out_before_anything_is_spent():
    def picky(frame):
        if len(frame) != 1500:
            raise KeyError("a column outside the domain")
        return np.ones(len(frame))

    data = dpx.PrivateData(people(1500), DOMAIN, model=picky, output="probability")
    with pytest.raises(DataError, match="cannot label synthetic records"):
        dpx.release(data, BUDGET, reference=True, noise=SeededNoise(1))
    assert data.spent.epsilon == 0


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([dpx.Numeric("x", 0, 1)], "2 to 128 features"),
        ([dpx.Numeric("x", 0, 1), dpx.Categorical("c", values=list(range(300)))], "too wide"),
        ([dpx.Categorical(f"c{i}", values=list(range(200))) for i in range(9)], "cells"),
    ],
)
def test_domains_beyond_the_limits_are_refused_with_the_limit(features, message):
    rows = {feature.name: np.zeros(50) for feature in features}
    data = dpx.PrivateData(rows, dpx.Domain(features), labels=np.ones(50))
    with pytest.raises(ParameterError, match=message):
        dpx.release(data, BUDGET, reference=True)
    assert data.spent.epsilon == 0


def test_a_reference_of_text_or_of_too_many_columns_is_refused_before_anything_is_spent():
    words = dpx.TextDomain([f"w{i}" for i in range(500)])
    data = dpx.PrivateData(["w1 w2"] * 50, words, labels=np.ones(50))
    with pytest.raises(ParameterError, match="text"):
        dpx.release(data, BUDGET, reference=True)
    columns = dpx.Domain([dpx.Binary(f"b{i}") for i in range(500)])
    wide = dpx.PrivateData({f"b{i}": np.zeros(50) for i in range(500)}, columns, labels=np.ones(50))
    with pytest.raises(ParameterError, match="2 to 128 features, got 500"):
        dpx.release(wide, BUDGET, reference=True)
    assert data.spent.epsilon == wide.spent.epsilon == 0


def test_steps_are_announced_by_name_on_a_terminal_only(monkeypatch, data_and_release):
    from dpexplain import progress
    from dpexplain.release import plan_for_data as planning
    from dpexplain.release import reference_building as building

    data, _ = data_and_release
    announced = []
    plan = planning.plan_release(data, BUDGET.mu, 1024)
    statistics, _ = run(plan, data._rows, SeededNoise(1))
    building.build_reference(statistics.marginals, statistics.sketch, data_and_release[1].solver, data, 1024, announced.append)
    assert 3 <= len(announced) <= building.STEPS
    with progress.progress_steps("work", 2) as watch:
        assert watch is progress.no_progress
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_INTERACTIVE", "0")
    with progress.progress_steps("work", 2) as watch:
        watch("step")
        (display,) = progress._displays
        assert [item for item in progress.with_bar([1, 2], "more work") if len(display.tasks) == 2] == [1, 2]  # a line below
        with progress.progress_steps("a part", 1) as part:
            part("of it")
        assert [task.description for task in display.tasks] == ["work: step"]
    assert not progress._displays


def test_a_release_with_reference_shows_its_rehearsals(monkeypatch, data_and_release):
    from contextlib import contextmanager

    from dpexplain.release import announced

    data, seen = data_and_release[0], []

    @contextmanager
    def watch_steps(work, steps):
        yield seen.append
        assert len(seen) == steps

    monkeypatch.setattr(announced, "progress_steps", watch_steps)
    dpx.release(data, BUDGET, noise=SeededNoise(1), reference=1024)
    assert set(seen) == {"rehearsing the noise"}


def test_the_page_says_that_it_leaves_the_records_out(data_and_release, tmp_path):
    _, release = data_and_release
    text = release.publish(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "16,384 reference records, which this page does not use" in text


@pytest.mark.parametrize("wanted", [7, -1, 2.5, 1 << 30])
def test_a_strange_number_of_records_is_refused(wanted):
    with pytest.raises(ParameterError, match="reference"):
        dpx.release(private(1500), BUDGET, reference=wanted)
